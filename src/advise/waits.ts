/**
 * Which places in user code wait for each other's round trips, and what may be done about it. Advice that breaks a
 * program is worse than none: two places are said to be independent only if nothing that was seen speaks against it
 * (`Pair#advice`).
 */
import { now, setImmediate } from '../util/clock.js';
import { type Answer, type Commands, flagIn, isShort } from './commands.js';
import type { Site } from './sites.js';

/**
 * What may be done about a wait:
 *
 * - `together`: issue both at once;
 * - `argument`: the second's arguments hold a value of the first's reply;
 * - `if`: the second has not followed every time, so a condition stands between;
 * - `leave`: the first's reply may decide on the second (a lock, a check, a missed cache entry), or their order counts;
 * - `unclear`: nothing speaks against `together`, but it was seen too rarely.
 */
export type Advice = 'together' | 'argument' | 'if' | 'leave' | 'unclear';

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
  /** Where the second begins a loop's next item: the loop. Its advice is that of the loop. */
  readonly loop?: {
    readonly reads: readonly Site[];
    /** On average, as are the round trips in line, now and when the items are issued together. */
    readonly items: number;
    readonly now: number;
    readonly after: number;
  };
}

const MOST_WORDS = 1_000;
const MOST_TOGETHER = 16;
const MOST_STEPS = 16;
/** Values of the last replies in a run of a loop. */
const MOST_KNOWN = 32;
/** Numbers are held by chance. */
const MOST_BY_CHANCE = 0.1;
/** Short values are: in more waits than this one cannot know, in more than the other they are arguments. */
const MOST_SHORT_BY_CHANCE = 0.2;
const SHORT_ARGUMENT = 0.5;
/** With fewer waits one cannot know whether a condition stands between. */
const LEAST_WAITS = 3;
/** The share of cases from which `cache.prefetch` predicts, see docs/prefetch.md. */
const FORESEEN = 0.7;

/** How often a reply was something, and how often nothing. */
const none = () => ({ something: 0, nothing: 0 });

/** A site, and what has waited for it. */
export class Place {
  readonly answered = none();
  readonly pairs = new Map<Place, Pair>();
  /** The loop that begins here. */
  loop?: Loop;
  /** Whether it is part of a loop. */
  isLooped = false;
  /** The only answer so far, if it says yes or no; `undefined` once there was another one. */
  flag: string | undefined | null = null;
  /** The words of its arguments by their places; undefined where there were several. */
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

/** What a flow has issued last at a place, in the present iterations of its loops. */
interface Step {
  readonly place: Place;
  trip: Trip;
  /** The loop that begins here, while it runs. */
  run?: { depth: number; readonly known: string[] };
}

/** Round trips that have waited for each other. */
export class Flow {
  last?: Trip;
  /** Of the arguments of its commands, of earlier replies, and of those that it branches off. */
  readonly words: Set<string>;
  /** Elements of replies that were lists. */
  readonly listed: Set<string>;
  /** The key of a lock that is held. */
  lock: string | undefined;
  readonly steps: Step[];

  /**
   * @param before - the last trip of its context.
   * @param parent - the same, if its commands are issued with that one, or after its reply.
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
    for (const word of words) if (this.words.size < MOST_WORDS) this.words.add(word);
  }

  /**
   * Takes the next step. Returns the one at which the trip goes on with a loop, and those of the iteration that has
   * ended.
   */
  step(trip: Trip, hasWaited: boolean): Step[] {
    const { steps } = this;
    const at = steps.findLastIndex(({ place }) => place === trip.place);
    const ended = at < 0 || !hasWaited ? [] : steps.splice(at);
    if (ended[0] !== undefined) steps.push(ended[0]);
    else if (at < 0 && steps.length < MOST_STEPS) steps.push({ place: trip.place, trip });
    return ended;
  }
}

/** A place that its flow comes back to. */
export class Loop {
  runs = 0;
  iterations = 0;
  /** Round trips in line, of all iterations. */
  depth = 0;
  readonly body = new Set<Place>();
  /** The waits with which it goes on. */
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

  /** Waits within it. */
  get pairs(): Pair[] {
    return [...this.body].flatMap(({ pairs }) => [...pairs.values()].filter(({ second }) => this.body.has(second)));
  }

  /** How often it has ended at replies of a kind after which it has never gone on, at one of its places. */
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

  /** Round trips in line if the items are issued together: those of one item that wait for each other. */
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

/** Round trips that were issued together: what follows one of them may need the replies of all. */
export class Group {
  /** The first of them, up to `MOST_TOGETHER`. */
  readonly trips: Trip[] = [];
  /** The one whose reply came last: any, as they are answered by several connections. */
  answered?: Trip;
}

/** What was answered in this turn, and may be followed yet. */
let answered: Trip[] = [];
let era = 0;

/** What follows the trips so far is not seen: nothing more is counted of them. */
export function forget(): void {
  era += 1;
  answered = [];
}

/** The event loop goes on to other work, so nothing follows any more. */
function endTurn(): void {
  const ended = answered;
  answered = [];
  for (const trip of ended) trip.end();
}

/** A round trip; in an async context, the last one that it has issued. */
export class Trip {
  /** `sending`: what is sent in its context is part of it. `answered`: until the event loop goes on to other work. */
  state: 'sending' | 'issued' | 'answered' | 'over' = 'sending';
  readonly issuedAtMs = now();
  readonly #era = era;
  tookMs = 0;
  /** Values of the reply that were not among its own arguments. */
  values: readonly string[] = [];
  /** Undefined before its reply, and after an error. */
  answer: Answer | undefined;
  /** Its wait for the one before. */
  pair?: Pair;
  /** The waits for it. */
  readonly followedBy = new Set<Pair>();

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
      if (isList && listed.size < MOST_WORDS) for (const value of this.values) listed.add(value);
      this.answer = this.commands.answerOf(reply);
      const flag = this.commands.write ? undefined : flagIn(reply);
      const { place } = this;
      place.flag = place.flag === null || place.flag === flag ? flag : undefined;
    } catch {
      // What a user's transformer has made may be cyclic, or have getters that throw.
    }
  }

  /** What has followed it is known, unless the advisor has not seen all. */
  end(): void {
    if (this.state !== 'answered') return;
    this.state = 'over';
    if (this.answer === undefined) return;
    const kind = this.answer === 'nothing' ? 'nothing' : 'something';
    this.place.answered[kind] += 1;
    for (const pair of this.followedBy) pair.followed[kind] += 1;
  }
}

/** What is known of a wait. */
export class Pair {
  waits = 0;
  dependent = 0;
  foreseen = 0;
  firstMs = 0;
  secondMs = 0;
  /** Of these waits, those with which a loop went on. */
  iterations = 0;
  /** Waits after a reply that was something, or nothing; none after an error. */
  readonly followed = none();
  /** How often a short value of the reply was held, and which ones, by their place among the arguments. */
  readonly #held = new Map<string, { times: number; readonly words: Set<string> }>();
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
    for (const { values } of group) flow.learn(values);
    this.#firstWrites ||= first.commands.write;
    this.#secondWrites ||= commands.write;
    this.#isDecided ||=
      commands.decide || first.flow.lock !== undefined || group.some((each) => decides(each, commands, client));
    if (first.answer === undefined) return;
    first.followedBy.add(this);
    this.#isAlwaysOk &&= group.every(({ answer }) => answer === 'OK');
  }

  /** @param known - earlier values of the loop's run: the last ones are added. */
  #countHeld(commands: Commands, trips: readonly Trip[], known: string[]): void {
    const values = trips.flatMap((trip) => trip.values);
    const long = values.filter((value) => !isShort(value));
    known.push(...long);
    known.splice(0, known.length - MOST_KNOWN);
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

  /** What may be done about this wait, or about the loop that goes on with it. */
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
    if (this.dependent > waits * MOST_BY_CHANCE || isArgument) return 'argument';
    const isHeld = held.some(({ slot, share, isOne }) => {
      // A key that never changes holds it by chance, or not: no one can know.
      if (!second.varies(slot)) return slot.startsWith('0.') && share >= SHORT_ARGUMENT;
      return !isOne && share > MOST_SHORT_BY_CHANCE;
    });
    if (this.isLoop) {
      const { endedByReply, runs } = second.loop as Loop;
      if (endedByReply > 0) return endedByReply * 2 > runs ? 'if' : 'leave';
    } else if (sum(followed) < this.#chances) {
      // What several callers share is followed by several places.
      return first.isLooped || second.isLooped || first.pairs.size > 1 ? 'leave' : 'if';
    }
    // What always follows nothing may stand in for it.
    const isInstead =
      followed.something === 0 && !(this.#firstWrites && followed.nothing > 0) && !(this.isLoop && first !== second);
    const mayBeComputed = !this.isLoop && this.#unexplained > waits * MOST_BY_CHANCE;
    // A read that turns out to be needless is no harm, unless the reply is a mere yes or no.
    const isOpen = (this.#secondWrites && !this.#isAlwaysOk) || (!this.isLoop && Boolean(first.flag));
    const isRepeated = this.#same * 2 > waits;
    if (this.#isDecided || isInstead || mayBeComputed || isOpen || isRepeated || isHeld) return 'leave';
    return waits < LEAST_WAITS ? 'unclear' : 'together';
  }

  /** How often it could have followed: where the first ends an iteration, only when its loop has ended. */
  get #chances(): number {
    const { answered, pairs } = this.first;
    const goesOn = [...pairs.values()].filter(
      (pair) => pair.isLoop && !(pair.second.loop as Loop).body.has(this.second),
    );
    return goesOn.reduce((chances, { followed }) => chances - sum(followed), sum(answered));
  }

  get wait(): Wait {
    const { waits, foreseen, firstMs, secondMs, advice } = this;
    const held = [...this.#held].map(([slot, { times }]) => (slot.startsWith('0.') ? times : 0));
    const dependent = Math.max(this.dependent, ...held);
    const answered = sum(this.first.answered);
    const [first, second] = [this.first.site, this.second.site];
    const loop = this.isLoop ? this.second.loop : undefined;
    const times =
      loop === undefined || this.first !== this.second ? waits : Math.max(1, Math.round(waits / (loop.items - 1)));
    const wait = { first, second, waits, times, dependent, foreseen, answered, firstMs, secondMs, advice };
    if (loop === undefined) return wait;
    const reads = [...loop.body].map(({ site }) => site);
    return { ...wait, loop: { reads, items: loop.items, now: loop.now, after: loop.after } };
  }

  /** Milliseconds that issuing both at once would have saved, or all items of the loop. */
  get lostMs(): number {
    if (this.isLoop) return (this.second.loop as Loop).lostMs;
    return this.advice === 'together' ? Math.min(this.firstMs, this.secondMs) : 0;
  }

  /** What `cache.prefetch` would save each time, in milliseconds; 0 if it would learn nothing. */
  get foreseenMs(): number {
    return this.foreseen < Math.max(2, this.waits * FORESEEN) ? 0 : this.secondMs / this.wait.times;
  }
}

/** Whether a trip was made to decide about these commands, or has to be sent before them, and would not be. */
function decides({ commands, client }: Trip, about: Commands, by: object | undefined): boolean {
  return commands.decide || commands.check(about) || (commands.write && (client === undefined || client !== by));
}

function sum({ something, nothing }: Pair['followed']): number {
  return something + nothing;
}
