import { randomBytes } from 'node:crypto';
import type { CommandVariant } from '../../commands/fast-commands.js';
import type { LearnedForm } from '../../handle.js';
import { copyOfText } from '../../reads/names.js';

const MOST = { forms: 512, formsOfPlace: 16, places: 4096, pairs: 16, followers: 8, elements: 64, identities: 4096 };
const LONGEST = { key: 512, arguments: 128, element: 64 };
/** Values in one place of keys beyond which they are identities: words, those with a digit or the like, first names. */
const VALUES = { word: 32, number: 8, first: 256 };
/** Milliseconds from the first read of an identity on, within which others follow it. */
const WINDOW_MS = 500;
/** Cases, or predictions, after which they are judged. */
const CASES = 16;
const OUTCOMES = 64;
const REST_MS = { first: 10_000, most: 640_000 };
/** Reads in vain, of all forms, after which none is looked at for some time. */
const IN_VAIN = { reads: 16_384, pauseMs: 4_000 };
/** Milliseconds after which full tables are emptied: what is read may have changed. */
const FULL_MS = 60_000;
const [END, COLON, OPENING, CLOSING] = [0, 58, 123, 125];
/** Who chooses identities does not know their hashes. */
const SEED = randomBytes(4).readInt32LE();

/** The parts of a key that are identities, and their hash. */
export interface Identity {
  readonly parts: readonly string[];
  readonly hash: number;
}

/** A form that follows another one, and how many of the reads that were predicted because of it were used. */
export class Pair {
  followed = 0;
  used = 0;
  unused = 0;
  #restsUntil = 0;
  #restMs = REST_MS.first;

  constructor(readonly form: Form) {}

  /** Whether at least this share was used. Otherwise it rests, longer each time. */
  isUseful(share: number, time: number): boolean {
    if (this.used + this.unused < OUTCOMES) return time >= this.#restsUntil;
    const isUseful = this.used >= share * (this.used + this.unused);
    if (!isUseful) this.#restsUntil = time + this.#restMs;
    this.#restMs = isUseful ? REST_MS.first : Math.min(2 * this.#restMs, REST_MS.most);
    this.used = 0;
    this.unused = 0;
    return isUseful;
  }
}

/** What follows a form, or reads the elements of its replies. */
export class Sequel {
  predicted: readonly Pair[] = [];
  pairs: Pair[] = [];
  cases = 0;
  #due = CASES;
  #halvedAt = 0;

  /** @param share - of the cases: a form that follows in so many is predicted. */
  constructor(readonly share: number) {}

  occurred(cases: number, time: number): void {
    this.cases += cases;
    this.#due -= cases;
    if (this.#due > 0) return;
    this.#due = CASES;
    const { share } = this;
    const likely = this.pairs.filter((pair) => pair.followed >= share * this.cases && pair.isUseful(share, time));
    this.predicted = likely.sort((a, b) => b.followed - a.followed).slice(0, MOST.followers);
    // The followers of the last cases are still to come: in the cases of a window, these are few.
    if (this.cases < 4 * CASES || time - this.#halvedAt < WINDOW_MS) return;
    this.#halvedAt = time;
    this.cases /= 2;
    for (const pair of this.pairs) pair.followed /= 2;
    this.pairs = this.pairs.filter((pair) => pair.followed >= this.cases / 8);
  }

  followedBy(form: Form): void {
    let pair = this.pairs.find((known) => known.form === form);
    if (pair === undefined && this.pairs.length < MOST.pairs) {
      pair = new Pair(form);
      this.pairs.push(pair);
    }
    if (pair !== undefined) pair.followed += 1;
  }
}

/** A command, its other arguments, and its key without the identity. */
export class Form {
  readonly followers = new Sequel(0.7);
  readonly elements = new Sequel(0.6);

  constructor(
    readonly variant: CommandVariant,
    /** The key's text before, between and after the parts of its identity. */
    readonly pieces: readonly string[],
    /** The arguments after the key, and as text (`readArguments`). */
    readonly args: readonly string[],
    readonly text: string,
  ) {}

  /** The key with this identity. */
  keyOf({ parts }: Identity): string {
    return parts.reduce((key, part, index) => key + part + this.pieces[index + 1], this.pieces[0] as string);
  }

  /** Without identities, and without anything else that has a digit. */
  toString(): string {
    const words = [this.pieces.join('*'), ...this.args].map((text) => text.replace(/[^:{}*]*\d[^:{}*]*/g, '?'));
    return [this.variant.command.name, ...words].join(' ');
  }
}

/** A place in keys, behind certain parts. */
class Place {
  readonly next = new Map<number, Place>();
  readonly forms: Form[] = [];
  /** Values of the next part. */
  values = { word: 0, number: 0 };

  constructor(
    readonly pieces: readonly string[],
    /** What the part before it is: an identity, or one of few values of its kind. */
    readonly behind: Kind | 'identity',
  ) {}

  get isIdentity(): boolean {
    return this.behind === 'identity';
  }
}

/** Words have letters, `_`, `-` and `.`; all else is a number. */
type Kind = 'word' | 'number';

/** The reads of one identity in a window. V8: one per slot for good, since those replaced would have become old. */
class Recent {
  identity = 0;
  at = Number.NEGATIVE_INFINITY;
  readonly forms: Form[] = [];
  /** How many reads of it there are, and how many of them were issued before the last reply. */
  count = 0;
  earlier = 0;
  reply = -1;
  /** The list that it is an element of. */
  list: Form | undefined;

  begin(identity: number, at: number, list?: Form): void {
    this.identity = identity;
    this.at = at;
    this.list = list;
    this.count = 0;
    this.earlier = 0;
  }

  has(form: Form): boolean {
    for (let index = 0; index < this.count; index += 1) if (this.forms[index] === form) return true;
    return false;
  }
}

/**
 * Learns which reads follow each other. Keys have parts, which end at `:`, `{` and `}`. A part that has had many values
 * in its place is an identity. Reads of one identity in a window belong together, if a reply has come between them.
 */
export class Forms {
  /** Replies that have come. */
  replies = 0;
  all: Form[] = [];
  #root = new Place([''], 'word');
  #places = 0;
  #fullSince: number | undefined;
  readonly #recent = new Array<Recent | undefined>(MOST.identities);
  /** That of the key that was looked at last. */
  identity: Identity = { parts: [], hash: SEED };
  #inVain = 0;
  #pausesUntil = 0;

  /** Notes a read; returns its form, if its key has an identity. */
  read(variant: CommandVariant, key: string, text: string, sent: unknown, time: number): Form | undefined {
    const form = this.#formOf(variant, key, text, sent, time, 1);
    if (form !== undefined) this.note(form, this.identity, time);
    return form;
  }

  /** Notes a read of this form and identity. */
  note(form: Form, { hash }: Identity, time: number): void {
    const recent = this.#slot(hash);
    if (recent.identity !== hash || time - recent.at >= WINDOW_MS) recent.begin(hash, time);
    if (recent.has(form)) return;
    // What is issued before a reply goes out in one batch anyway.
    if (recent.reply !== this.replies) recent.earlier = recent.count;
    recent.reply = this.replies;
    for (let index = 0; index < recent.earlier; index += 1) recent.forms[index]?.followers.followedBy(form);
    recent.list?.elements.followedBy(form);
    if (recent.count <= MOST.followers) {
      form.followers.occurred(1, time);
      recent.forms[recent.count] = form;
      recent.count += 1;
    }
    const leads = form.followers.predicted.length > 0 || (recent.list?.elements.predicted.length ?? 0) > 0;
    this.#inVain = leads ? 0 : this.#inVain + 1;
    if (this.#inVain > IN_VAIN.reads) {
      this.#inVain -= IN_VAIN.reads / 8;
      this.#pausesUntil = time + IN_VAIN.pauseMs;
    }
  }

  /** Notes that a caller has got a list with these elements; returns the form of its read, and what they identify. */
  listed(variant: CommandVariant, key: string, text: string, sent: unknown, elements: string[], time: number) {
    const form = this.#formOf(variant, key, text, sent, time, 0);
    if (form === undefined) return undefined;
    form.elements.occurred(elements.length, time);
    const identities = elements.map((element) => ({ parts: [element], hash: combined(SEED, identityHashOf(element)) }));
    for (const { hash } of identities) this.#slot(hash).begin(hash, time, form);
    return { form, identities };
  }

  /** What was learned, to be shown. */
  learned(): LearnedForm[] {
    const shown = ({ pairs, predicted, cases }: Sequel) =>
      pairs.map((pair) => {
        const share = Math.min(1, pair.followed / Math.max(cases, 1));
        return { form: String(pair.form), share, isPredicted: predicted.includes(pair) };
      });
    const all = this.all.map((form) => {
      return { form: String(form), followers: shown(form.followers), elements: shown(form.elements) };
    });
    return all.filter(({ followers, elements }) => followers.length + elements.length > 0);
  }

  #slot(identity: number): Recent {
    const slot = (identity ^ (identity >>> 15)) & (MOST.identities - 1);
    this.#recent[slot] ??= new Recent();
    return this.#recent[slot];
  }

  /** @param least - parts of an identity that its key must have. */
  #formOf(variant: CommandVariant, key: string, text: string, sent: unknown, time: number, least: 0 | 1) {
    if (time < this.#pausesUntil || key.length > LONGEST.key || text.length > LONGEST.arguments) return undefined;
    const place = this.#placeOf(key, time);
    if (this.identity.parts.length < least) return undefined;
    const known = place?.forms.find((form) => form.variant === variant && form.text === text);
    if (known !== undefined || place === undefined || place.forms.length === MOST.formsOfPlace) return known;
    if (this.#isFull(this.all.length >= MOST.forms, time)) return undefined;
    const args = Array.isArray(sent) ? sent.slice(1).map((argument) => copyOfText(String(argument))) : [];
    const form = new Form(variant, place.pieces, args, copyOfText(text));
    this.all.push(form);
    place.forms.push(form);
    return form;
  }

  /** The place at the end of a key. */
  #placeOf(key: string, time: number): Place | undefined {
    const identity = { parts: [] as string[], hash: SEED };
    this.identity = identity;
    let place: Place | undefined = this.#root;
    let start = 0;
    let hash = SEED;
    let kind: Kind = 'word';
    for (let index = 0; index <= key.length && place !== undefined; index += 1) {
      const code = index < key.length ? key.charCodeAt(index) : END;
      if (index < key.length && code !== COLON && code !== OPENING && code !== CLOSING) {
        hash = combined(hash, code);
        if (code < 65 ? code !== 45 && code !== 46 : code > 122) kind = 'number';
        continue;
      }
      const part = combined(hash, code);
      place = place.next.get(part) ?? this.#next(place, key.slice(start, index), part, code, kind, time);
      if (place?.isIdentity) {
        identity.hash = combined(identity.hash, hash);
        identity.parts.push(key.slice(start, index));
      }
      start = index + 1;
      hash = SEED;
      kind = 'word';
    }
    return place;
  }

  /** The place behind a part that is an identity, or new in this place. */
  #next(place: Place, text: string, part: number, code: number, kind: Kind, time: number) {
    const { pieces, next, values } = place;
    const separator = code === END ? '' : String.fromCharCode(code);
    // The first words of keys are names of kinds, which may be many.
    const isName = place === this.#root && kind === 'word';
    values[kind] += 1;
    const excess = values[kind] - VALUES[isName ? 'first' : kind];
    if (excess <= 0) {
      const last = copyOfText(pieces.at(-1) + text + separator);
      return this.#add(place, part, new Place([...pieces.slice(0, -1), last], kind), time);
    }
    // Values of the other kind stay what they are.
    if (excess === 1 && !isName) for (const [of, { behind }] of next) if (behind === kind) next.delete(of);
    return next.get(code) ?? this.#add(place, code, new Place([...pieces, separator], 'identity'), time);
  }

  #add(place: Place, part: number, added: Place, time: number): Place | undefined {
    if (this.#isFull(this.#places === MOST.places, time)) return undefined;
    this.#places += 1;
    place.next.set(part, added);
    return added;
  }

  /** Whether a table is full. If one has been for long, all is forgotten. */
  #isFull(isFull: boolean, time: number): boolean {
    if (isFull) this.#fullSince ??= time;
    if (!isFull || time - (this.#fullSince as number) < FULL_MS) return isFull;
    this.#fullSince = undefined;
    this.#root = new Place([''], 'word');
    this.#places = 0;
    this.all = [];
    return true;
  }
}

/** One step of FNV-1a. */
function combined(hash: number, next: number): number {
  return Math.imul(hash ^ next, 0x01000193);
}

/** As `#placeOf` hashes a part. */
function identityHashOf(text: string): number {
  let hash = SEED;
  for (let index = 0; index < text.length; index += 1) hash = combined(hash, text.charCodeAt(index));
  return hash;
}

/** The elements of a reply that may be identities; every second one, if it has names and their values in turn. */
export function elementsOf(reply: unknown, inTurn: boolean): string[] {
  const values: unknown[] = Array.isArray(reply) ? reply : Object.keys(reply ?? {});
  const step = inTurn && values === reply && !Array.isArray(values[0]) ? 2 : 1;
  const elements: string[] = [];
  for (let index = 0; index < Math.min(values.length, step * MOST.elements); index += step) {
    const value = Array.isArray(values[index]) ? (values[index] as unknown[])[0] : values[index];
    if (typeof value === 'string' && value.length <= LONGEST.element) elements.push(value);
  }
  return elements;
}
