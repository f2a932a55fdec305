/**
 * Which places in user code wait for each other's round trips, and what may be done about it. Advice that breaks a
 * program is worse than none: two places are said to be independent only if nothing that was seen speaks against it
 * (`Pair#advice`).
 */
import { basename, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setImmediate } from '../util/clock.js';
import type { Answer, Commands } from './commands.js';

/** A place in user code that issues commands. */
export interface Site {
  /** `src/cart.ts:42`. */
  readonly place: string;
  /** `loadItems`; empty where it has no name. */
  readonly functionName: string;
  /** `get`, or `get by connect-redis` where a package issues it. */
  readonly command: string;
}

/**
 * What may be done about a wait:
 *
 * - `together`: issue both at once;
 * - `argument`: the second's arguments hold a value of the first's reply;
 * - `if`: the second has not followed every time, so a condition stands between;
 * - `leave`: the first's reply may decide on the second (a lock, a check, a missed cache entry), or their order counts.
 */
export type Advice = 'together' | 'argument' | 'if' | 'leave';

/** Two places of which the second has waited for the first; a loop if they are the same. All figures are sums. */
export interface Wait {
  readonly first: Site;
  readonly second: Site;
  /** How often the second has waited: `waits / times + 1` are the round trips of a run of a loop, on average. */
  readonly waits: number;
  /** Runs of the loop; between two places, the same as `waits`. */
  readonly times: number;
  /** Of these waits, those in which the second's arguments held a value of the reply to the first. */
  readonly dependent: number;
  /** Of these waits, those of which `cache.prefetch` may learn to ask for the second ahead. */
  readonly foreseen: number;
  /** How often the first was answered. */
  readonly answered: number;
  /** Milliseconds that the first has taken, and the second. */
  readonly firstMs: number;
  readonly secondMs: number;
  readonly advice: Advice;
}

const MOST_WORDS = 1_000;
const MOST_TOGETHER = 16;
/** Small numbers are held by chance. */
const MOST_BY_CHANCE = 0.1;
/** The share of cases from which `cache.prefetch` predicts, see docs/prefetch.md. */
const FORESEEN = 0.7;

/** How often a reply was something, and how often nothing. */
const none = () => ({ something: 0, nothing: 0 });

/** A site, and what has waited for it. */
export class Place {
  readonly answered = none();
  readonly pairs = new Map<Place, Pair>();

  constructor(readonly site: Site) {}
}

/** Round trips that have waited for each other. */
export class Flow {
  last?: Trip;
  /** Of the arguments of its commands, and of those that it branches off. */
  readonly words: Set<string>;
  /** Elements of replies that were lists. */
  readonly listed: Set<string>;
  /** The key of a lock that is held. */
  lock: string | undefined;

  /**
   * @param before - the last trip of its context.
   * @param parent - the same, if its commands are issued with that one, or after its reply.
   */
  constructor(before: Trip | undefined, parent: Trip | undefined) {
    this.lock = before?.flow.lock;
    this.words = parent?.flow.words ?? new Set();
    this.listed = parent?.flow.listed ?? new Set();
  }

  add(trip: Trip): void {
    this.last = trip;
    const { words, lock } = trip.commands;
    for (const word of words) if (this.words.size < MOST_WORDS) this.words.add(word);
    if (lock !== undefined) this.lock = lock;
    else if (this.lock !== undefined && trip.commands.remove(this.lock)) this.lock = undefined;
  }
}

/** Round trips that were issued together: what follows one of them may need the replies of all. */
export class Group {
  /** The first of them, up to `MOST_TOGETHER`. */
  readonly trips: Trip[] = [];
  /** The one whose reply came last: any, as they are answered by several connections. */
  answered?: Trip;
}

/** A round trip; in an async context, the last one that it has issued. */
export class Trip {
  /** `sending`: what is sent in its context is part of it. `answered`: until the event loop goes on to other work. */
  state: 'sending' | 'issued' | 'answered' | 'over' = 'sending';
  readonly issuedAtMs = performance.now();
  tookMs = 0;
  /** Values of the reply that were not among its own arguments. */
  values: readonly string[] = [];
  /** Undefined before its reply, and after an error. */
  answer: Answer | undefined;
  /** Its wait for the one before; that of one at the same place that was issued with it, otherwise. */
  pair?: Pair | undefined;
  hasWaited = false;
  followedBy?: Pair;

  /**
   * @param depth - how many have waited for each other up to this one.
   * @param client - the one connection that keeps their order; undefined for a Cluster.
   */
  constructor(
    readonly place: Place,
    readonly commands: Commands,
    readonly flow: Flow,
    readonly depth: number,
    readonly client: object | undefined,
    readonly group: Group,
  ) {
    const { trips } = group;
    if (trips.length < MOST_TOGETHER) trips.push(this);
  }

  settle(error: unknown, reply?: unknown): void {
    if (this.state !== 'issued') return;
    this.state = 'answered';
    this.group.answered = this;
    setImmediate(() => {
      this.state = 'over';
    });
    this.tookMs = performance.now() - this.issuedAtMs;
    if (this.hasWaited && this.pair !== undefined) this.pair.secondMs += this.tookMs;
    if (error) return;
    try {
      this.values = this.commands.valuesIn(reply);
      const { listed } = this.flow;
      const isList = Array.isArray(reply) && reply.length > 1;
      if (isList && listed.size < MOST_WORDS) for (const value of this.values) listed.add(value);
      this.answer = this.commands.answerOf(reply);
      this.place.answered[kindOf(this.answer)] += 1;
    } catch {
      // What a user's transformer has made may be cyclic, or have getters that throw.
    }
  }
}

/** What is known of a wait. */
export class Pair {
  waits = 0;
  times = 0;
  dependent = 0;
  foreseen = 0;
  firstMs = 0;
  secondMs = 0;
  /** Waits after a reply that was something, or nothing; none after an error. */
  readonly followed = none();
  /** Whether the first has answered OK each time, of which no condition can make anything. */
  #isAlwaysOk = true;
  /** Waits in which the second was the same read as the first. */
  #same = 0;
  /** Waits in which the second's arguments had a new word that no earlier command has had. */
  #unexplained = 0;
  /** The words of the second's arguments in the last wait. */
  #words: ReadonlySet<string> | undefined;
  #foreseenBy: string | undefined;
  #firstWrites = false;
  #secondWrites = false;
  /** Whether what was issued first decides, in one of the waits. */
  #isDecided = false;

  constructor(
    readonly first: Place,
    readonly second: Place,
  ) {}

  count(first: Trip, second: Trip): void {
    const { commands, client } = second;
    const { trips: group } = first.group;
    second.pair = this;
    second.hasWaited = true;
    this.waits += 1;
    // Otherwise its loop goes on.
    if (first.pair !== this) this.times += 1;
    if (group.some(({ values }) => values.some((value) => commands.hold(value)))) this.dependent += 1;
    const foreseenBy = commands.foreseenBy(first.commands, first.flow.listed);
    // A part that never changes is no identity.
    if (foreseenBy !== undefined && foreseenBy !== this.#foreseenBy) this.foreseen += 1;
    this.#foreseenBy = foreseenBy;
    this.firstMs += first.tookMs;
    this.#same += !commands.write && commands.text === first.commands.text ? 1 : 0;
    const isNew = (word: string) => !this.#words?.has(word) && !first.flow.words.has(word);
    const isComputed = this.#words !== undefined && commands.words.some(isNew);
    if (isComputed && group.some((each) => !each.commands.write)) this.#unexplained += 1;
    this.#words = new Set(commands.words);
    this.#firstWrites ||= first.commands.write;
    this.#secondWrites ||= commands.write;
    this.#isDecided ||=
      commands.decide || first.flow.lock !== undefined || group.some((each) => decides(each, commands, client));
    if (first.answer === undefined || first.followedBy === this) return;
    first.followedBy = this;
    this.#isAlwaysOk &&= group.every(({ answer }) => answer === 'OK');
    this.followed[kindOf(first.answer)] += 1;
  }

  get isLoop(): boolean {
    const [first, second] = [this.first.site, this.second.site];
    return first.place === second.place && first.command === second.command;
  }

  get advice(): Advice {
    const { followed, first } = this;
    if (this.dependent > this.waits * MOST_BY_CHANCE) return 'argument';
    if (this.isLoop ? this.#endsByReply : sum(followed) < sum(first.answered)) return 'if';
    // What always follows nothing may stand in for it.
    const isInstead = followed.something === 0 && !(this.#firstWrites && followed.nothing > 0);
    const mayBeComputed = !this.isLoop && this.#unexplained > this.waits * MOST_BY_CHANCE;
    // A read that turns out to be needless is no harm.
    const isOpen = this.#secondWrites && !this.#isAlwaysOk;
    const isRepeated = this.#same * 2 > this.waits;
    return this.#isDecided || isInstead || mayBeComputed || isOpen || isRepeated ? 'leave' : 'together';
  }

  /** Whether a loop has never gone on after replies of one kind. */
  get #endsByReply(): boolean {
    const { answered } = this.first;
    return (['something', 'nothing'] as const).some((kind) => answered[kind] > 0 && this.followed[kind] === 0);
  }

  get wait(): Wait {
    const { waits, times, dependent, foreseen, firstMs, secondMs, advice } = this;
    const answered = sum(this.first.answered);
    const [first, second] = [this.first.site, this.second.site];
    return { first, second, waits, times, dependent, foreseen, answered, firstMs, secondMs, advice };
  }

  get lostMs(): number {
    return this.advice === 'together' ? Math.min(this.firstMs, this.secondMs) : 0;
  }

  /** What `cache.prefetch` would save, in milliseconds; 0 if it would learn nothing. */
  get #foreseenMs(): number {
    return this.foreseen < Math.max(2, this.waits * FORESEEN) ? 0 : this.secondMs / this.times;
  }

  get line(): string {
    const foreseenMs = this.#foreseenMs;
    return this.#sentence + (foreseenMs > 0 ? `; cache.prefetch would save ${foreseenMs.toFixed(1)} ms` : '');
  }

  get #sentence(): string {
    const { first, second, waits, times, answered, advice } = this.wait;
    const seen = `${counted(times)} ${times === 1 ? 'time' : 'times'}`;
    const [firstMs, secondMs] = [this.firstMs / waits, this.secondMs / waits];
    if (!this.isLoop) {
      const saved = Math.min(firstMs, secondMs).toFixed(1);
      const share = Math.floor((100 * sum(this.followed)) / answered);
      const why = {
        together: `independent, ${seen}; together they would save ${saved} ms of ${(firstMs + secondMs).toFixed(1)}`,
        argument: "an argument holds the first's reply: leave it",
        if: `follows in ${share} % of ${counted(answered)} times: an if stands between`,
        leave: `${seen}; the first may decide on the second: leave it`,
      };
      return `${named(first)} → ${named(second)}  ${first.command}, then ${second.command}: ${why[advice]}`;
    }
    const length = Math.round(waits / times) + 1;
    const how = first.command === 'get' ? 'Promise.all, mget' : 'Promise.all';
    const why = {
      together: `${length} round trips of ${firstMs.toFixed(1)} ms each; issued together (${how}): 1`,
      argument: 'an argument holds the reply before it: leave it',
      if: 'a reply ends it: leave it',
      leave: 'a reply may decide on the next: leave it',
    };
    return `${named(first)}  ${first.command} ×${length} in a row, ${seen}: ${why[advice]}`;
  }
}

/** Whether a trip was made to decide about these commands, or has to be sent before them, and would not be. */
function decides({ commands, client }: Trip, about: Commands, by: object | undefined): boolean {
  return commands.decide || commands.check(about) || (commands.write && (client === undefined || client !== by));
}

function sum({ something, nothing }: Pair['followed']): number {
  return something + nothing;
}

function kindOf(answer: Answer): keyof Pair['followed'] {
  return answer === 'nothing' ? 'nothing' : 'something';
}

export function counted(value: number): string {
  return value.toLocaleString('en');
}

function named({ place, functionName }: Site): string {
  return functionName === '' ? place : `${place} ${functionName}`;
}

const MOST_FRAMES = 40;
const PACKAGE = /node_modules[\\/](?!\.pnpm)((?:@[^\\/]+[\\/])?[^\\/]+)/g;
const CLIENT_PACKAGE = /^(?:(?:ioredis|iovalkey)\d*|ioredis-coalesce|standard-as-callback)$/;
const FRAME = /^\s*at (?:async )?(?:(.*) \()?(.+?)(:\d+):\d+\)?$/;

/** The first frame of user code, and the package that it calls, if another one than the client's issues the command. */
export function siteOf(command: string): Site | undefined {
  let ownFolder: string | undefined;
  let by = '';
  for (const frame of stackTrace().split('\n')) {
    const [, name = '', path = '', line = ''] = FRAME.exec(frame) ?? [];
    if (path === '' || /^node:|<anonymous>/.test(path)) continue;
    // The first frame is this function's: as it is built, all of this package is in its folder.
    ownFolder ??= path.slice(0, -basename(path).length).replace(/(?<=src[\\/])advise[\\/]$/, '');
    if (path.startsWith(ownFolder)) continue;
    const inPackage = [...path.matchAll(PACKAGE)].at(-1)?.[1];
    if (inPackage === undefined) {
      const functionName = name.includes('<anonymous>') ? '' : name.replace(/^Object\./, '');
      return { place: fileOf(path) + line, functionName, command: command + by };
    }
    if (by === '' && !CLIENT_PACKAGE.test(inPackage)) by = ` by ${inPackage}`;
  }
  return undefined;
}

/** As it is shown: code may have any name, and the working directory may be gone. */
function fileOf(path: string): string {
  try {
    return relative('', path.startsWith('file:') ? fileURLToPath(path) : path);
  } catch {
    return path;
  }
}

/** The present stack; empty where the process prepares stack traces in a way that fails, or gives no text. */
function stackTrace(): string {
  const { stackTraceLimit } = Error;
  Reflect.set(Error, 'stackTraceLimit', MOST_FRAMES);
  try {
    const { stack } = new Error();
    return typeof stack === 'string' ? stack : '';
  } catch {
    return '';
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
}
