/**
 * Finds places in user code that wait for each other's round trips, and advises what to do. Advice that breaks a
 * program is worse than none, so two places count as independent only without any evidence against it (`Pair#advice`).
 */
import { now, setImmediate } from '../util/clock.js';
import { type Answer, type Commands, flagIn, isShort } from './commands.js';
import type { Site } from './sites.js';

/**
 * What may be done about a wait:
 *
 * - `together`: issue both at once;
 * - `argument`: the second's arguments hold a value of the first's reply;
 * - `if`: the second has not always followed, so a condition separates them;
 * - `leave`: the first's reply may decide on the second (a lock, a check, a missed cache entry), or their order counts;
 * - `unclear`: no evidence against `together`, but it was seen too rarely.
 */
export type Advice = 'together' | 'argument' | 'if' | 'leave' | 'unclear';

/** Two places, the second of which waited for the first; a loop, if they are the same. All figures are sums. */
export interface Wait {
  readonly first: Site;
  readonly second: Site;
  /** How often the second has waited. On average, a run of a loop makes `waits / times + 1` round trips. */
  readonly waits: number;
  /** Runs of the loop; between two places, the same as `waits`. */
  readonly times: number;
  /** Of these waits, those in which the second's arguments contained a value of the first's reply. */
  readonly dependent: number;
  /** Of these waits, those from which `cache.prefetch` may learn to predict the second. */
  readonly predictable: number;
  /** How often the first was answered. */
  readonly answered: number;
  /** The duration of the first, and of the second, in milliseconds. */
  readonly firstMs: number;
  readonly secondMs: number;
  readonly advice: Advice;
  /** The loop, if the second begins its next item. `advice` is then that of the loop. */
  readonly loop?: {
    readonly reads: readonly Site[];
    /** On average, like the sequential round trips `now`, and `after` the items are issued together. */
    readonly items: number;
    readonly now: number;
    readonly after: number;
  };
}

const MAX_WORDS = 1_000;
const MAX_TOGETHER = 16;
const MAX_STEPS = 16;
/** Most values kept of the last replies in a loop. */
const MAX_KNOWN = 32;
/** The share of waits in which values match by coincidence. */
const MAX_COINCIDENCE = 0.1;
/** Short values match more often: above the first share they may be arguments, above the second they are. */
const MAX_SHORT_COINCIDENCE = 0.2;
const SHORT_ARGUMENT = 0.5;
/** Fewer waits do not rule out a condition between. */
const MIN_WAITS = 3;
/** `cache.prefetch` needs this share of cases, see docs/prefetch.md. */
const PREFETCH_SHARE = 0.7;

/** Counts of replies that were something, and nothing. */
const noReplies = () => ({ something: 0, nothing: 0 });

/** A site, and the waits for it. */
export class Place {
  readonly answered = noReplies();
  readonly pairs = new Map<Place, Pair>();
  /** The loop that begins here. */
  loop?: Loop;
  /** Whether it is part of a loop. */
  isLooped = false;
  /** The only answer so far, if it is a yes or no; `undefined` after a different one. */
  flag: string | undefined | null = null;
  /** The words of its arguments by position; undefined if they have varied. */
  readonly #words = new Map<string, string | undefined>();

  constructor(readonly site: Site) {}

  note({ slots }: Commands): void {
    for (const [slot, word] of slots) {
      if (!this.#words.has(slot)) this.#words.set(slot, word);
      else if (this.#words.get(slot) !== word) this.#words.set(slot, undefined);
    }
  }

  varies(slot: string): boolean {
    return this.#words.has(slot) && this.#words.get(slot) === undefined;
  }
}

/** The last trip of a flow at a place, in the current iterations of its loops. */
interface Step {
  readonly place: Place;
  trip: Trip;
  /** The state of the loop that begins here, while it runs. */
  run?: { depth: number; readonly known: string[] };
}

/** A chain of round trips that have waited for each other. */
export class Flow {
  last?: Trip;
  /** The words in its arguments and earlier replies, and in those of the flow that it branches off. */
  readonly words: Set<string>;
  /** Elements of list replies. */
  readonly listed: Set<string>;
  /** The key of a lock that the flow holds. */
  lock: string | undefined;
  readonly steps: Step[];

  /**
   * @param before - the last trip of its context.
   * @param parent - the same, if the flow's commands are issued with that trip, or after its reply.
   */
  constructor(before: Trip | undefined, parent: Trip | undefined) {
    this.lock = before?.flow.lock;
    this.words = parent?.flow.words ?? new Set();
    this.listed = parent?.flow.listed ?? new Set();
    const steps = parent?.flow.steps ?? [];
    this.steps = steps.slice(0, 1 + steps.findLastIndex(({ place }) => place === parent?.place));
  }

  add(trip: Trip): void {
    this.last = trip;
    const { words, lock } = trip.commands;
    this.learn(words);
    if (lock !== undefined) this.lock = lock;
    else if (this.lock !== undefined && trip.commands.remove(this.lock)) this.lock = undefined;
  }

  learn(words: Iterable<string>): void {
    for (const word of words) if (this.words.size < MAX_WORDS) this.words.add(word);
  }

  /**
   * Takes the next step. If the trip continues a loop, returns the steps of the iteration that has ended.
   */
  step(trip: Trip, hasWaited: boolean): Step[] {
    const { steps } = this;
    const at = steps.findLastIndex(({ place }) => place === trip.place);
    const ended = at < 0 || !hasWaited ? [] : steps.splice(at);
    if (ended[0] !== undefined) steps.push(ended[0]);
    else if (at < 0 && steps.length < MAX_STEPS) steps.push({ place: trip.place, trip });
    return ended;
  }
}

/** A sequence of places that a flow repeats. */
export class Loop {
  runs = 0;
  iterations = 0;
  /** The sum of sequential round trips in all iterations. */
  depth = 0;
  readonly body = new Set<Place>();
  /** The waits that begin its next iteration. */
  readonly ends = new Set<Pair>();

  iterate(steps: readonly Step[], by: Pair, trip: Trip): void {
    const [head] = steps as [Step];
    if (head.run === undefined) this.runs += 1;
    head.run ??= { depth: head.trip.depth, known: [] };
    this.iterations += 1;
    this.depth += trip.depth - head.run.depth;
    head.run.depth = trip.depth;
    for (const { place } of steps) {
      place.isLooped = true;
      this.body.add(place);
    }
    this.ends.add(by);
  }

  get items(): number {
    return this.iterations / this.runs + 1;
  }

  /** The waits within the loop. */
  get pairs(): Pair[] {
    return [...this.body].flatMap(({ pairs }) => [...pairs.values()].filter(({ second }) => this.body.has(second)));
  }

  /** The most replies of one kind at one of its places, after which the loop has never continued. */
  get endedByReply(): number {
    const ended = [...this.body].flatMap(({ answered, pairs }) => {
      const within = [...pairs.values()].filter(({ second }) => this.body.has(second));
      const kinds = within.length === 0 ? [] : (['something', 'nothing'] as const);
      return kinds.map((kind) => (within.some(({ followed }) => followed[kind] > 0) ? 0 : answered[kind]));
    });
    return Math.max(0, ...ended);
  }

  get advice(): Advice {
    const all = new Set([...this.ends].map((pair) => pair.own));
    return (['argument', 'if', 'leave', 'unclear'] as const).find((one) => all.has(one)) ?? 'together';
  }

  get now(): number {
    return Math.max(this.body.size > 1 ? 2 : 1, Math.round((this.items * this.depth) / this.iterations));
  }

  /** Sequential round trips if the items are issued together, which are those of one item. */
  get after(): number {
    const places = [...this.body];
    let after = 1;
    for (const [index, place] of places.entries()) {
      const next = places[index + 1];
      if (next !== undefined && !place.pairs.get(next)?.isSafe) after += 1;
      if (place.loop !== undefined && place.loop !== this && place.loop.advice !== 'together') {
        after += Math.round(place.loop.items) - 1;
      }
    }
    return Math.min(after, this.now);
  }

  get lostMs(): number {
    const spent = this.pairs.reduce((ms, { secondMs }) => ms + secondMs, 0);
    return this.advice === 'together' ? spent * (1 - this.after / this.now) : 0;
  }
}

/** Round trips issued together. A command that follows one of them may need all of their replies. */
export class Group {
  /** The first `MAX_TOGETHER` of them. */
  readonly trips: Trip[] = [];
  /** The one answered last, which may be any of them: several connections reply. */
  answered?: Trip;
}

/** Trips that were answered in this turn, and may still be followed. */
let answered: Trip[] = [];
let era = 0;

/** Stops counting earlier trips, because their successors are not seen. */
export function forget(): void {
  era += 1;
  answered = [];
}

/** Ends the trips answered in this turn: later commands do not follow them. */
function endTurn(): void {
  const ended = answered;
  answered = [];
  for (const trip of ended) trip.end();
}

/** A round trip. */
export class Trip {
  /** While `sending`, commands in its context are part of it. It stays `answered` until the end of the turn. */
  state: 'sending' | 'issued' | 'answered' | 'over' = 'sending';
  readonly issuedAtMs = now();
  readonly #era = era;
  tookMs = 0;
  /** Values of the reply that its own arguments do not contain. */
  values: readonly string[] = [];
  /** Undefined before the reply, and after an error. */
  answer: Answer | undefined;
  /** Its wait for the previous trip. */
  pair?: Pair;
  /** The waits for this trip. */
  readonly followedBy = new Set<Pair>();

  /**
   * @param depth - the length of the chain up to this trip.
   * @param client - the client that keeps the order of its commands; undefined for a Cluster.
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
    if (trips.length < MAX_TOGETHER) trips.push(this);
  }

  get isForgotten(): boolean {
    return this.#era !== era;
  }

  settle(error: unknown, reply?: unknown): void {
    if (this.state !== 'issued' || this.isForgotten) return;
    this.state = 'answered';
    this.group.answered = this;
    if (answered.push(this) === 1) setImmediate(endTurn);
    this.tookMs = now() - this.issuedAtMs;
    if (this.pair !== undefined) this.pair.secondMs += this.tookMs;
    if (error) return;
    try {
      this.values = this.commands.valuesIn(reply);
      const { listed } = this.flow;
      const isList = Array.isArray(reply) && reply.length > 1;
      if (isList && listed.size < MAX_WORDS) for (const value of this.values) listed.add(value);
      this.answer = this.commands.answerOf(reply);
      const flag = this.commands.write ? undefined : flagIn(reply);
      const { place } = this;
      place.flag = place.flag === null || place.flag === flag ? flag : undefined;
    } catch {
      // The result of a user's transformer may be cyclic, or have getters that throw.
    }
  }

  /** Counts the waits for this trip, which are complete now. */
  end(): void {
    if (this.state !== 'answered') return;
    this.state = 'over';
    if (this.answer === undefined) return;
    const kind = this.answer === 'nothing' ? 'nothing' : 'something';
    this.place.answered[kind] += 1;
    for (const pair of this.followedBy) pair.followed[kind] += 1;
  }
}

/** The statistics of waits between two places. */
export class Pair {
  waits = 0;
  dependent = 0;
  predictable = 0;
  firstMs = 0;
  secondMs = 0;
  /** Of these waits, those that began a loop's next iteration. */
  iterations = 0;
  /** Waits after a reply that was something, or nothing; waits after errors are not counted. */
  readonly followed = noReplies();
  /** Short values of the reply in the second's arguments, by position: how often, and which. */
  readonly #held = new Map<string, { times: number; readonly words: Set<string> }>();
  /** Whether the first has always answered OK, on which no condition can depend. */
  #isAlwaysOk = true;
  /** Waits in which the second was the same read as the first. */
  #same = 0;
  /** Waits in which the second's arguments had a new word of unknown origin. */
  #unexplained = 0;
  /** The words of the second's arguments in the last wait. */
  #words: ReadonlySet<string> | undefined;
  #predictableBy: string | undefined;
  #firstWrites = false;
  #secondWrites = false;
  /** Whether the first has decided on the second in one of the waits. */
  #isDecided = false;

  constructor(
    readonly first: Place,
    readonly second: Place,
  ) {}

  count(first: Trip, second: Trip): void {
    const { commands, client, flow } = second;
    const { trips: group } = first.group;
    second.pair = this;
    this.waits += 1;
    const steps = flow.step(second, true);
    const [head] = steps;
    if (head !== undefined) {
      this.iterations += 1;
      this.second.loop ??= new Loop();
      this.second.loop.iterate(steps, this, second);
    }
    this.#countHeld(commands, [...group, ...steps.map(({ trip }) => trip)], head?.run?.known ?? []);
    if (head !== undefined) head.trip = second;
    const predictableBy = commands.predictableBy(first.commands, first.flow.listed);
    // A part that never changes is not an identity.
    if (predictableBy !== undefined && predictableBy !== this.#predictableBy) this.predictable += 1;
    this.#predictableBy = predictableBy;
    this.firstMs += first.tookMs;
    this.#same += !commands.write && commands.text === first.commands.text ? 1 : 0;
    const isNew = (word: string) => !this.#words?.has(word) && !first.flow.words.has(word);
    const isComputed = this.#words !== undefined && commands.words.some(isNew);
    if (isComputed && group.some((each) => !each.commands.write)) this.#unexplained += 1;
    this.#words = new Set(commands.words);
    for (const { values } of group) flow.learn(values);
    this.#firstWrites ||= first.commands.write;
    this.#secondWrites ||= commands.write;
    this.#isDecided ||=
      commands.decide || first.flow.lock !== undefined || group.some((each) => decides(each, commands, client));
    if (first.answer === undefined) return;
    first.followedBy.add(this);
    this.#isAlwaysOk &&= group.every(({ answer }) => answer === 'OK');
  }

  /** @param known - earlier values in this run of the loop, to which the new ones are added. */
  #countHeld(commands: Commands, trips: readonly Trip[], known: string[]): void {
    const values = trips.flatMap((trip) => trip.values);
    const long = values.filter((value) => !isShort(value));
    known.push(...long);
    known.splice(0, known.length - MAX_KNOWN);
    if ([...long, ...known].some((value) => commands.text.includes(value))) this.dependent += 1;
    if (long.length === values.length) return;
    const short = new Set(values.filter(isShort));
    for (const [slot, word] of commands.slots) {
      if (!short.has(word)) continue;
      const held = this.#held.get(slot) ?? { times: 0, words: new Set() };
      held.times += 1;
      if (held.words.size < 2) held.words.add(word);
      this.#held.set(slot, held);
    }
  }

  get isLoop(): boolean {
    return this.iterations * 2 > this.waits;
  }

  /** The advice on this wait, or on the loop whose next iteration it begins. */
  get advice(): Advice {
    return this.isLoop ? (this.second.loop as Loop).advice : this.own;
  }

  get isSafe(): boolean {
    return this.advice === 'together' || this.advice === 'unclear';
  }

  get own(): Advice {
    const { followed, first, second, waits } = this;
    const held = [...this.#held].map(([slot, { times, words }]) => ({
      slot,
      share: times / waits,
      isOne: words.size < 2,
    }));
    const isArgument = held.some(({ slot, share }) => share >= SHORT_ARGUMENT && second.varies(slot));
    if (this.dependent > waits * MAX_COINCIDENCE || isArgument) return 'argument';
    const isHeld = held.some(({ slot, share, isOne }) => {
      // In a key that never changes, the match may be a coincidence.
      if (!second.varies(slot)) return slot.startsWith('0.') && share >= SHORT_ARGUMENT;
      return !isOne && share > MAX_SHORT_COINCIDENCE;
    });
    if (this.isLoop) {
      const { endedByReply, runs } = second.loop as Loop;
      if (endedByReply > 0) return endedByReply * 2 > runs ? 'if' : 'leave';
    } else if (sum(followed) < this.#chances) {
      // If several callers share the first place, others may follow it instead.
      return first.isLooped || second.isLooped || first.pairs.size > 1 ? 'leave' : 'if';
    }
    // If it only ever follows an empty reply, it may be a fallback for a missing entry.
    const isFallback =
      followed.something === 0 && !(this.#firstWrites && followed.nothing > 0) && !(this.isLoop && first !== second);
    const mayBeComputed = !this.isLoop && this.#unexplained > waits * MAX_COINCIDENCE;
    // A superfluous read does no harm, but a yes or no may decide whether to read at all.
    const isOpen = (this.#secondWrites && !this.#isAlwaysOk) || (!this.isLoop && Boolean(first.flag));
    const isRepeated = this.#same * 2 > waits;
    if (this.#isDecided || isFallback || mayBeComputed || isOpen || isRepeated || isHeld) return 'leave';
    return waits < MIN_WAITS ? 'unclear' : 'together';
  }

  /** How often the second could have followed. If the first ends a loop's iteration, only at the end of the loop. */
  get #chances(): number {
    const { answered, pairs } = this.first;
    const goesOn = [...pairs.values()].filter(
      (pair) => pair.isLoop && !(pair.second.loop as Loop).body.has(this.second),
    );
    return goesOn.reduce((chances, { followed }) => chances - sum(followed), sum(answered));
  }

  get wait(): Wait {
    const { waits, predictable, firstMs, secondMs, advice } = this;
    const held = [...this.#held].map(([slot, { times }]) => (slot.startsWith('0.') ? times : 0));
    const dependent = Math.max(this.dependent, ...held);
    const answered = sum(this.first.answered);
    const [first, second] = [this.first.site, this.second.site];
    const loop = this.isLoop ? this.second.loop : undefined;
    const times =
      loop === undefined || this.first !== this.second ? waits : Math.max(1, Math.round(waits / (loop.items - 1)));
    const wait = { first, second, waits, times, dependent, predictable, answered, firstMs, secondMs, advice };
    if (loop === undefined) return wait;
    const reads = [...loop.body].map(({ site }) => site);
    return { ...wait, loop: { reads, items: loop.items, now: loop.now, after: loop.after } };
  }

  /** Milliseconds that issuing both together, or all items of the loop, would have saved. */
  get lostMs(): number {
    if (this.isLoop) return (this.second.loop as Loop).lostMs;
    return this.advice === 'together' ? Math.min(this.firstMs, this.secondMs) : 0;
  }

  /** Milliseconds that `cache.prefetch` would save each time; 0 if it would learn nothing. */
  get prefetchMs(): number {
    return this.predictable < Math.max(2, this.waits * PREFETCH_SHARE) ? 0 : this.secondMs / this.wait.times;
  }
}

/** Whether a trip decides on these commands, or must be sent before them, but would not be if issued together. */
function decides({ commands, client }: Trip, about: Commands, by: object | undefined): boolean {
  return commands.decide || commands.check(about) || (commands.write && (client === undefined || client !== by));
}

function sum({ something, nothing }: Pair['followed']): number {
  return something + nothing;
}
