import { randomBytes } from 'node:crypto';
import type { CommandVariant } from '../../commands/fast-commands.js';
import type { LearnedPattern } from '../../handle.js';
import { copyOfText } from '../../reads/names.js';

const MAX = { patterns: 512, perNode: 16, nodes: 4096, candidates: 16, successors: 8, elements: 64, identities: 4096 };
const MAX_LENGTH = { key: 512, arguments: 128, element: 64 };
/** Most values of a key part that is not yet an identity: words, numbers, and first words of keys. */
const MAX_VALUES = { word: 32, number: 8, first: 256 };
/** Other reads of an identity count as successors for this many milliseconds after its first read. */
const WINDOW_MS = 500;
/** Reads after which successors are selected, and outcomes of predictions after which a successor is judged. */
const CASES = 16;
const OUTCOMES = 64;
const PAUSE_MS = { first: 10_000, most: 640_000 };
/** Consecutive reads without predicted successors after which learning pauses. */
const UNPREDICTABLE = { reads: 16_384, pauseMs: 4_000 };
/** Milliseconds after which full tables are cleared, because the access patterns may have changed. */
const FULL_MS = 60_000;
const [END, COLON, OPENING, CLOSING] = [0, 58, 123, 125];
/** A random seed prevents chosen collisions. */
const SEED = randomBytes(4).readInt32LE();

/** The variable parts of a key, such as the `42` of `user:42`, and their hash. */
export interface Identity {
  readonly parts: readonly string[];
  readonly hash: number;
}

/** A key pattern that follows another one, and how many of its predictions were used. */
export class Successor {
  followed = 0;
  used = 0;
  unused = 0;
  #pausedUntil = 0;
  #pauseMs = PAUSE_MS.first;

  constructor(readonly pattern: KeyPattern) {}

  /** Whether at least this share of its predictions was used. If not, it is paused, longer each time. */
  isUseful(share: number, time: number): boolean {
    if (this.used + this.unused < OUTCOMES) return time >= this.#pausedUntil;
    const isUseful = this.used >= share * (this.used + this.unused);
    if (!isUseful) this.#pausedUntil = time + this.#pauseMs;
    this.#pauseMs = isUseful ? PAUSE_MS.first : Math.min(2 * this.#pauseMs, PAUSE_MS.most);
    this.used = 0;
    this.unused = 0;
    return isUseful;
  }
}

/** The key patterns that follow a pattern, or that read the elements of its replies. */
export class Successors {
  predicted: readonly Successor[] = [];
  candidates: Successor[] = [];
  cases = 0;
  #casesLeft = CASES;
  #halvedAt = 0;

  /** @param share - the share of the cases that a pattern must follow to be predicted. */
  constructor(readonly share: number) {}

  occurred(cases: number, time: number): void {
    this.cases += cases;
    this.#casesLeft -= cases;
    if (this.#casesLeft > 0) return;
    this.#casesLeft = CASES;
    const { share } = this;
    const likely = this.candidates.filter((one) => one.followed >= share * this.cases && one.isUseful(share, time));
    this.predicted = likely.sort((a, b) => b.followed - a.followed).slice(0, MAX.successors);
    // Successors of the latest cases may still come, so halve at most once per window.
    if (this.cases < 4 * CASES || time - this.#halvedAt < WINDOW_MS) return;
    this.#halvedAt = time;
    this.cases /= 2;
    for (const successor of this.candidates) successor.followed /= 2;
    this.candidates = this.candidates.filter((successor) => successor.followed >= this.cases / 8);
  }

  followedBy(pattern: KeyPattern): void {
    let successor = this.candidates.find((known) => known.pattern === pattern);
    if (successor === undefined && this.candidates.length < MAX.candidates) {
      successor = new Successor(pattern);
      this.candidates.push(successor);
    }
    if (successor !== undefined) successor.followed += 1;
  }
}

/** A command with its key, in which the identity is left open, and its other arguments. */
export class KeyPattern {
  readonly successors = new Successors(0.7);
  readonly elements = new Successors(0.6);

  constructor(
    readonly variant: CommandVariant,
    /** The text of the key before, between and after the parts of its identity. */
    readonly pieces: readonly string[],
    /** The arguments after the key, also as text (`readArguments`). */
    readonly args: readonly string[],
    readonly text: string,
  ) {}

  /** The key with this identity. */
  keyOf({ parts }: Identity): string {
    return parts.reduce((key, part, index) => key + part + this.pieces[index + 1], this.pieces[0] as string);
  }

  /** Hides identities, and all other words with a digit. */
  toString(): string {
    const words = [this.pieces.join('*'), ...this.args].map((text) => text.replace(/[^:{}*]*\d[^:{}*]*/g, '?'));
    return [this.variant.command.name, ...words].join(' ');
  }
}

/** A node in the trie of key parts. */
class TrieNode {
  readonly next = new Map<number, TrieNode>();
  readonly patterns: KeyPattern[] = [];
  /** The number of values that the next part has had. */
  values = { word: 0, number: 0 };

  constructor(
    readonly pieces: readonly string[],
    /** Whether the last part is an identity, or one of a few values of its kind. */
    readonly lastPart: Kind | 'identity',
  ) {}

  get isIdentity(): boolean {
    return this.lastPart === 'identity';
  }
}

/** Words consist of letters, `_`, `-` and `.`; anything else is a number. */
type Kind = 'word' | 'number';

/** The reads of one identity in a window. V8: reused, since replaced objects would die in the old generation. */
class RecentIdentity {
  identity = 0;
  at = Number.NEGATIVE_INFINITY;
  readonly patterns: KeyPattern[] = [];
  /** The number of its reads, and how many of them were issued before the last reply. */
  count = 0;
  earlier = 0;
  reply = -1;
  /** The pattern of the list that has returned the identity as an element. */
  list: KeyPattern | undefined;

  begin(identity: number, at: number, list?: KeyPattern): void {
    this.identity = identity;
    this.at = at;
    this.list = list;
    this.count = 0;
    this.earlier = 0;
  }

  has(pattern: KeyPattern): boolean {
    for (let index = 0; index < this.count; index += 1) if (this.patterns[index] === pattern) return true;
    return false;
  }
}

/**
 * Learns which reads follow each other. `:`, `{` and `}` end the parts of a key. A part that has had many values is an
 * identity. Reads of one identity within a window follow each other if a reply has arrived between them.
 */
export class KeyPatterns {
  /** The number of replies received. */
  replies = 0;
  all: KeyPattern[] = [];
  #root = new TrieNode([''], 'word');
  #nodes = 0;
  #fullSince: number | undefined;
  readonly #recent = new Array<RecentIdentity | undefined>(MAX.identities);
  /** The identity of the last key examined. */
  identity: Identity = { parts: [], hash: SEED };
  #unpredictable = 0;
  #pausesUntil = 0;

  /** Records a read; returns its pattern, if its key has an identity. */
  read(variant: CommandVariant, key: string, text: string, sent: unknown, time: number): KeyPattern | undefined {
    const pattern = this.#patternOf(variant, key, text, sent, time, 1);
    if (pattern !== undefined) this.note(pattern, this.identity, time);
    return pattern;
  }

  /** Records a read of this pattern and identity. */
  note(pattern: KeyPattern, { hash }: Identity, time: number): void {
    const recent = this.#slot(hash);
    if (recent.identity !== hash || time - recent.at >= WINDOW_MS) recent.begin(hash, time);
    if (recent.has(pattern)) return;
    // Reads issued before the next reply leave in one batch anyway.
    if (recent.reply !== this.replies) recent.earlier = recent.count;
    recent.reply = this.replies;
    for (let index = 0; index < recent.earlier; index += 1) recent.patterns[index]?.successors.followedBy(pattern);
    recent.list?.elements.followedBy(pattern);
    if (recent.count <= MAX.successors) {
      pattern.successors.occurred(1, time);
      recent.patterns[recent.count] = pattern;
      recent.count += 1;
    }
    const hasNext = pattern.successors.predicted.length > 0 || (recent.list?.elements.predicted.length ?? 0) > 0;
    this.#unpredictable = hasNext ? 0 : this.#unpredictable + 1;
    if (this.#unpredictable > UNPREDICTABLE.reads) {
      this.#unpredictable -= UNPREDICTABLE.reads / 8;
      this.#pausesUntil = time + UNPREDICTABLE.pauseMs;
    }
  }

  /** Records a list that a caller has received; returns the pattern of its read, and the elements as identities. */
  listed(variant: CommandVariant, key: string, text: string, sent: unknown, elements: string[], time: number) {
    const pattern = this.#patternOf(variant, key, text, sent, time, 0);
    if (pattern === undefined) return undefined;
    pattern.elements.occurred(elements.length, time);
    const identities = elements.map((element) => ({ parts: [element], hash: combined(SEED, identityHashOf(element)) }));
    for (const { hash } of identities) this.#slot(hash).begin(hash, time, pattern);
    return { pattern, identities };
  }

  /** The learned patterns, for `coalescer.cache.patterns()`. */
  learned(): LearnedPattern[] {
    const shown = ({ candidates, predicted, cases }: Successors) =>
      candidates.map((successor) => {
        const share = Math.min(1, successor.followed / Math.max(cases, 1));
        return { pattern: String(successor.pattern), share, isPredicted: predicted.includes(successor) };
      });
    const all = this.all.map((pattern) => {
      return { pattern: String(pattern), followers: shown(pattern.successors), elements: shown(pattern.elements) };
    });
    return all.filter(({ followers, elements }) => followers.length + elements.length > 0);
  }

  #slot(identity: number): RecentIdentity {
    const slot = (identity ^ (identity >>> 15)) & (MAX.identities - 1);
    this.#recent[slot] ??= new RecentIdentity();
    return this.#recent[slot];
  }

  /** @param minParts - the number of identity parts that the key must have. */
  #patternOf(variant: CommandVariant, key: string, text: string, sent: unknown, time: number, minParts: 0 | 1) {
    if (time < this.#pausesUntil || key.length > MAX_LENGTH.key || text.length > MAX_LENGTH.arguments) return undefined;
    const node = this.#nodeOf(key, time);
    if (this.identity.parts.length < minParts) return undefined;
    const known = node?.patterns.find((pattern) => pattern.variant === variant && pattern.text === text);
    if (known !== undefined || node === undefined || node.patterns.length === MAX.perNode) return known;
    if (this.#isFull(this.all.length >= MAX.patterns, time)) return undefined;
    const args = Array.isArray(sent) ? sent.slice(1).map((argument) => copyOfText(String(argument))) : [];
    const pattern = new KeyPattern(variant, node.pieces, args, copyOfText(text));
    this.all.push(pattern);
    node.patterns.push(pattern);
    return pattern;
  }

  /** The node of a whole key. Sets `identity`. */
  #nodeOf(key: string, time: number): TrieNode | undefined {
    const identity = { parts: [] as string[], hash: SEED };
    this.identity = identity;
    let node: TrieNode | undefined = this.#root;
    let start = 0;
    let hash = SEED;
    let kind: Kind = 'word';
    for (let index = 0; index <= key.length && node !== undefined; index += 1) {
      const code = index < key.length ? key.charCodeAt(index) : END;
      if (index < key.length && code !== COLON && code !== OPENING && code !== CLOSING) {
        hash = combined(hash, code);
        if (code < 65 ? code !== 45 && code !== 46 : code > 122) kind = 'number';
        continue;
      }
      const part = combined(hash, code);
      node = node.next.get(part) ?? this.#next(node, key.slice(start, index), part, code, kind, time);
      if (node?.isIdentity) {
        identity.hash = combined(identity.hash, hash);
        identity.parts.push(key.slice(start, index));
      }
      start = index + 1;
      hash = SEED;
      kind = 'word';
    }
    return node;
  }

  /** The child for a part that is an identity, or that has a new value. */
  #next(node: TrieNode, text: string, part: number, code: number, kind: Kind, time: number) {
    const { pieces, next, values } = node;
    const separator = code === END ? '' : String.fromCharCode(code);
    // The first words of keys are names of object types, of which there may be many.
    const isName = node === this.#root && kind === 'word';
    values[kind] += 1;
    const excess = values[kind] - MAX_VALUES[isName ? 'first' : kind];
    if (excess <= 0) {
      const last = copyOfText(pieces.at(-1) + text + separator);
      return this.#add(node, part, new TrieNode([...pieces.slice(0, -1), last], kind), time);
    }
    // The values of this kind become one identity; those of the other kind stay.
    if (excess === 1 && !isName) for (const [of, { lastPart }] of next) if (lastPart === kind) next.delete(of);
    return next.get(code) ?? this.#add(node, code, new TrieNode([...pieces, separator], 'identity'), time);
  }

  #add(node: TrieNode, part: number, added: TrieNode, time: number): TrieNode | undefined {
    if (this.#isFull(this.#nodes === MAX.nodes, time)) return undefined;
    this.#nodes += 1;
    node.next.set(part, added);
    return added;
  }

  /** Whether a table is full. Forgets everything if one has long been full. */
  #isFull(isFull: boolean, time: number): boolean {
    if (isFull) this.#fullSince ??= time;
    if (!isFull || time - (this.#fullSince as number) < FULL_MS) return isFull;
    this.#fullSince = undefined;
    this.#root = new TrieNode([''], 'word');
    this.#nodes = 0;
    this.all = [];
    return true;
  }
}

/** One step of FNV-1a. */
function combined(hash: number, next: number): number {
  return Math.imul(hash ^ next, 0x01000193);
}

/** The hash that `#nodeOf` computes for a part. */
function identityHashOf(text: string): number {
  let hash = SEED;
  for (let index = 0; index < text.length; index += 1) hash = combined(hash, text.charCodeAt(index));
  return hash;
}

/** The elements of a reply that may be identities; every second one, if names and values alternate. */
export function elementsOf(reply: unknown, alternates: boolean): string[] {
  const values: unknown[] = Array.isArray(reply) ? reply : Object.keys(reply ?? {});
  const step = alternates && values === reply && !Array.isArray(values[0]) ? 2 : 1;
  const elements: string[] = [];
  for (let index = 0; index < Math.min(values.length, step * MAX.elements); index += step) {
    const value = Array.isArray(values[index]) ? (values[index] as unknown[])[0] : values[index];
    if (typeof value === 'string' && value.length <= MAX_LENGTH.element) elements.push(value);
  }
  return elements;
}
