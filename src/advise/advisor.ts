/**
 * Each command is noted in the async context that issues it. If the context's last command was answered, and the event
 * loop has done nothing but run promises since, this command has waited for it. Promises that are awaited together,
 * timers and other I/O are told apart by that alone, without a clock.
 */
import { AsyncLocalStorage, executionAsyncResource } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { setTimeout } from '../util/clock.js';
import { Commands } from './commands.js';
import { counted, linesOf } from './findings.js';
import { type Site, siteOf } from './sites.js';
import { Flow, forget, Group, Pair, Place, Trip, type Wait } from './waits.js';

/** What `roundTrips()` has counted. */
export interface RoundTrips {
  /** Commands, each pipeline or transaction as one. */
  readonly commands: number;
  /** The most of them that have waited for each other, one after the other. */
  readonly sequential: number;
  /** Those that cost the most time first. */
  readonly sites: readonly Wait[];
}

/** Further places, and pairs of them, are not told apart. */
const MOST_PLACES = 1_000;

/** Counts the waits of one process, or of one call of `roundTrips()`. */
export class Advisor {
  #commands = 0;
  #sequential = 0;
  readonly #places = new Map<string, Place>();
  readonly #pairs: Pair[] = [];

  placeOf(site: Site): Place {
    const key = `${site.place} ${site.functionName} ${site.command}`;
    const place = this.#places.get(key) ?? new Place(site);
    if (this.#places.size < MOST_PLACES) this.#places.set(key, place);
    return place;
  }

  /** A trip was issued. */
  count(trip: Trip, previous: Trip | undefined): void {
    this.#commands += 1;
    this.#sequential = Math.max(this.#sequential, trip.depth);
    trip.place.note(trip.commands);
    if (previous === undefined) {
      trip.flow.step(trip, false);
      return;
    }
    const { pairs } = previous.place;
    const pair = pairs.get(trip.place) ?? new Pair(previous.place, trip.place);
    if (pair.waits === 0 && this.#pairs.length < MOST_PLACES) {
      pairs.set(trip.place, pair);
      this.#pairs.push(pair);
    }
    pair.count(previous, trip);
  }

  found(): RoundTrips {
    return { commands: this.#commands, sequential: this.#sequential, sites: this.#sorted.map(({ wait }) => wait) };
  }

  get #sorted(): Pair[] {
    return this.#pairs.toSorted((a, b) => b.lostMs - a.lostMs);
  }

  /** @param isVerbose - also what has to be left as it is. */
  report(isVerbose: boolean): string {
    const commands = `${counted(this.#commands)} commands${hasRested ? ', a sample,' : ''}`;
    return linesOf(this.#sorted, commands, isVerbose).join('\n  ');
  }
}

/** What an async context knows: who counts, and the round trip that it has issued last. */
interface Context {
  readonly advisor: Advisor | undefined;
  readonly trip?: Trip;
}
const context = new AsyncLocalStorage<Context>();

/** The share of its time that a process gives to the advisor; what it gives at first, and later at once, in ms. */
const SHARE = 0.05;
const FIRST_MS = 400;
const BURST_MS = 10;
/** What noting a command takes at most: 30 µs in bursts, three times as much where commands come one by one. */
const COMMAND_MS = 0.1;
/** How long the advisor rests when that is spent; it costs nothing meanwhile. */
const REST_MS = 100;
/** How long promises are given contexts before it goes on. */
const WARM_UP_MS = 10;

/** The advisor of the whole process, with `IOREDIS_COALESCE=advise`. */
let ofProcess: Advisor | undefined;
/** Calls of `roundTrips()` that run: what they issue is all seen. */
let counting = 0;
let isResting = false;
let hasRested = false;
let leftMs = FIRST_MS;
let workedMs = workMs();
let watch: (isWatching: boolean) => void = () => {};

/** Begins to watch, and says by `by` when that pauses and goes on. */
export function startWatching(by: typeof watch): void {
  watch = by;
  changeWatching();
}

export function adviseProcess(): Advisor {
  ofProcess ??= new Advisor();
  return ofProcess;
}

function changeWatching(): void {
  const isWatching = counting > 0 || (ofProcess !== undefined && !isResting);
  // Up to Node 22 each promise is dearer while contexts are kept.
  if (isWatching) keepContexts();
  else context.disable();
  watch(isWatching);
}

/** Promises that are made from now on have a context. */
function keepContexts(): void {
  context.run({ advisor: undefined }, () => {});
}

/**
 * Whether this may be the continuation of a promise that was made while no contexts were kept. It runs in the context
 * of what has been read from a connection, which all others have, too.
 */
function isContextShared(): boolean {
  return hasRested && 'readStart' in executionAsyncResource();
}

/** What this process has had of its core: not what others on the machine have taken from it. */
function workMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + performance.eventLoopUtilization().idle;
}

/** Takes the price of a command. Where the share is spent, the advisor rests, and sees no flow to its end. */
function spend(): void {
  leftMs -= COMMAND_MS;
  if (leftMs > 0 || counting > 0 || isResting || ofProcess === undefined) return;
  const before = workedMs;
  workedMs = workMs();
  leftMs = Math.min(BURST_MS, leftMs + (workedMs - before) * SHARE);
  if (leftMs > BURST_MS / 10) return;
  isResting = true;
  hasRested = true;
  forget();
  changeWatching();
  const goOn = () => {
    isResting = false;
    changeWatching();
  };
  const warmUp = () => {
    keepContexts();
    setTimeout(goOn, WARM_UP_MS).unref();
  };
  setTimeout(warmUp, REST_MS).unref();
}

/** Counts the round trips of what `fn` issues; the layer has been put on by then. */
export async function countRoundTrips(fn: () => unknown): Promise<RoundTrips> {
  const advisor = new Advisor();
  counting += 1;
  changeWatching();
  try {
    await context.run({ advisor }, async () => fn());
  } finally {
    counting -= 1;
    changeWatching();
  }
  return advisor.found();
}

/** A call that sends a round trip. */
interface Call {
  readonly name: string;
  readonly commands: ConstructorParameters<typeof Commands>[0];
  /** The client that keeps the order of its commands; undefined for a Cluster. */
  readonly client: object | undefined;
  /** Arguments of the call; a callback at their end is called when the advisor knows of the reply. */
  readonly given: unknown[];
  send(given: unknown[]): unknown;
  /** Whether it was sent: not if it was answered from memory. */
  isSent?(): boolean;
}

/**
 * Sends one command, pipeline or transaction as the next round trip of the present async context, and returns its
 * promise. What is sent within is part of it. Calls without a frame of user code are not noted: the client's own.
 */
export function track({ name, commands, client, given, send, isSent = () => true }: Call): unknown {
  if (isContextShared()) return send(given);
  const { advisor = ofProcess, trip: last } = context.getStore() ?? {};
  const before = last?.isForgotten ? undefined : last;
  const site = advisor === undefined || before?.state === 'sending' ? undefined : siteOf(name);
  if (advisor === undefined || site === undefined) return send(given);
  // The context of a function that has awaited another one has the first command of that one; one that has awaited
  // several has the last one issued, although another's reply may have come last.
  const previous = [before, before?.flow.last, before?.group.answered].find((one) => one?.state === 'answered');
  const together = before?.state === 'issued' ? before : undefined;
  const flow = previous && previous === previous.flow.last ? previous.flow : new Flow(before, previous ?? together);
  const depth = previous ? previous.depth + 1 : (together?.depth ?? 1);
  const place = advisor.placeOf(site);
  const trip = new Trip(place, new Commands(commands), flow, depth, client, together?.group ?? new Group());
  const callback = given.at(-1);
  const told = (error: unknown, reply: unknown) => {
    trip.settle(error, reply);
    return (callback as AnyCallback)(error, reply);
  };
  // A callback is called in the context of the promise that is made within.
  const within = { advisor, trip };
  const result = context.run(within, send, typeof callback === 'function' ? given.toSpliced(-1, 1, told) : given);
  if (!(result instanceof Promise) || !isSent()) {
    trip.state = 'over';
    return result;
  }
  trip.state = 'issued';
  context.enterWith(within);
  advisor.count(trip, previous);
  flow.add(trip);
  spend();
  // The callback tells of the reply, and may be all that handles an error: another promise would be rejected unhandled.
  if (typeof callback === 'function') return result;
  // The caller's: it is rejected without a handler where the caller has none.
  return result.then(
    (value) => {
      trip.settle(null, value);
      return value;
    },
    (error: unknown) => {
      trip.settle(error);
      throw error;
    },
  );
}

type AnyCallback = (error: unknown, reply: unknown) => unknown;
