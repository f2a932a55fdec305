/**
 * Records each command in the async context that issues it. If the context's last command was answered, and the event
 * loop has only run promises since then, this command has waited for that one. This rule alone distinguishes waits from
 * promises awaited together, timers and other I/O, without a clock.
 */
import { AsyncLocalStorage, executionAsyncResource } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { CONNECTION_COMMANDS } from '../calls/pending-bound.js';
import { setTimeout } from '../util/clock.js';
import { Commands } from './commands.js';
import { counted, linesOf } from './findings.js';
import { type Site, siteOf } from './sites.js';
import { Flow, forget, Group, Pair, Place, Trip, type Wait } from './waits.js';

/** The result of `roundTrips()`. */
export interface RoundTrips {
  /** Commands, each pipeline or transaction as one. */
  readonly commands: number;
  /** The length of the longest chain of commands that have waited for each other. */
  readonly sequential: number;
  /** The most expensive first. */
  readonly sites: readonly Wait[];
}

/** Further places, and pairs of places, are not recorded. */
const MAX_PLACES = 1_000;

/** Counts the waits of the process, or of one call of `roundTrips()`. */
export class Advisor {
  #commands = 0;
  #sequential = 0;
  /** Commands without a frame of user code, except those that clients send themselves. */
  unseen = 0;
  readonly #places = new Map<string, Place>();
  readonly #pairs: Pair[] = [];

  placeOf(site: Site): Place {
    const key = `${site.place} ${site.functionName} ${site.command}`;
    const place = this.#places.get(key) ?? new Place(site);
    if (this.#places.size < MAX_PLACES) this.#places.set(key, place);
    return place;
  }

  /** Counts a trip that was issued. */
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
    if (pair.waits === 0 && this.#pairs.length < MAX_PLACES) {
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

  /** @param isVerbose - whether to include waits that must stay. */
  report(isVerbose: boolean): string {
    if (this.#commands === 0 && this.unseen > 0) {
      const all = `${counted(this.unseen)} ${this.unseen === 1 ? 'command' : 'commands'}`;
      return `saw none of ${all} in user code; if it is bundled, do that with --sourcemap, and run node --enable-source-maps`;
    }
    const commands = `${counted(this.#commands)} commands${hasPaused ? ', a sample,' : ''}`;
    return linesOf(this.#sorted, commands, isVerbose).join('\n  ');
  }
}

/** The state of an async context: its advisor, and its last round trip. */
interface Context {
  readonly advisor: Advisor | undefined;
  readonly trip?: Trip;
}
const context = new AsyncLocalStorage<Context>();

/** The share of its time that a process spends on the advisor; the initial budget, and the largest later one, in ms. */
const SHARE = 0.05;
const FIRST_MS = 400;
const BURST_MS = 10;
/** The most that recording a command costs: 30 µs in bursts, three times as much for single commands. */
const COMMAND_MS = 0.1;
/** How long the advisor pauses, at no cost, when the budget is spent. */
const PAUSE_MS = 100;
/** How long promises get contexts before the advisor resumes. */
const WARM_UP_MS = 10;

/** The advisor of the process, with `IOREDIS_COALESCE=advise`. */
let processAdvisor: Advisor | undefined;
/** Running calls of `roundTrips()`, which see all of their commands. */
let counting = 0;
let isPaused = false;
let hasPaused = false;
let leftMs = FIRST_MS;
let workedMs = workMs();
let onChange: (isWatching: boolean) => void = () => {};

/** Starts to watch, and calls `by` at each pause and resumption. */
export function startWatching(by: typeof onChange): void {
  onChange = by;
  changeWatching();
}

export function adviseProcess(): Advisor {
  processAdvisor ??= new Advisor();
  return processAdvisor;
}

function changeWatching(): void {
  const isWatching = counting > 0 || (processAdvisor !== undefined && !isPaused);
  // Up to Node 22, each promise costs more while contexts are kept.
  if (isWatching) keepContexts();
  else context.disable();
  onChange(isWatching);
}

/** Gives a context to all promises created from now on. */
function keepContexts(): void {
  context.run({ advisor: undefined }, () => {});
}

/**
 * Whether this may be the continuation of a promise created without a context. Such a continuation runs in the context
 * of the connection that was read, which others share.
 */
function isContextShared(): boolean {
  return hasPaused && 'readStart' in executionAsyncResource();
}

/** The time for which this process had its core, busy or idle, excluding the time of other processes. */
function workMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + performance.eventLoopUtilization().idle;
}

/** Charges the budget for a command. If it is spent, the advisor pauses, and drops all flows that have not ended. */
function spendBudget(): void {
  leftMs -= COMMAND_MS;
  if (leftMs > 0 || counting > 0 || isPaused || processAdvisor === undefined) return;
  const before = workedMs;
  workedMs = workMs();
  leftMs = Math.min(BURST_MS, leftMs + (workedMs - before) * SHARE);
  if (leftMs > BURST_MS / 10) return;
  isPaused = true;
  hasPaused = true;
  forget();
  changeWatching();
  const resume = () => {
    isPaused = false;
    changeWatching();
  };
  const warmUp = () => {
    keepContexts();
    setTimeout(resume, WARM_UP_MS).unref();
  };
  setTimeout(warmUp, PAUSE_MS).unref();
}

/** Counts the round trips of the commands that `fn` issues. The layer must be installed. */
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

/** A call that makes a round trip. */
interface Call {
  readonly name: string;
  readonly commands: ConstructorParameters<typeof Commands>[0];
  /** The client that keeps the order of its commands; undefined for a Cluster. */
  readonly client: object | undefined;
  /** The arguments of the call. A callback at their end is called after the advisor has recorded the reply. */
  readonly given: unknown[];
  send(given: unknown[]): unknown;
  /** Whether it was sent, not answered from memory. */
  isSent?(): boolean;
}

/**
 * Sends one command, pipeline or transaction as the next round trip of the current async context, and returns its
 * promise. Commands sent within are part of it. Ignores the client's own calls, which have no frame of user code.
 */
export function track(call: Call): unknown {
  const { name, commands, client, given, send, isSent = () => true } = call;
  if (isContextShared()) return send(given);
  const { advisor = processAdvisor, trip: last } = context.getStore() ?? {};
  const before = last?.isForgotten ? undefined : last;
  if (advisor === undefined || before?.state === 'sending') return send(given);
  const site = siteOf(name);
  if (site === undefined) return sendUnseen(advisor, call);
  // After `await f()`, the context has the first command of `f`; after an await of several commands, the last one
  // issued, although another reply may have arrived last.
  const previous = [before, before?.flow.last, before?.group.answered].find((one) => one?.state === 'answered');
  const together = before?.state === 'issued' ? before : undefined;
  const flow = previous && previous === previous.flow.last ? previous.flow : new Flow(before, previous ?? together);
  const depth = previous ? previous.depth + 1 : (together?.depth ?? 1);
  const place = advisor.placeOf(site);
  const trip = new Trip(place, new Commands(commands), flow, depth, client, together?.group ?? new Group());
  const callback = given.at(-1);
  const onReply = (...outcome: Parameters<AnyCallback>) => {
    trip.settle(...outcome);
    return (callback as AnyCallback)(...outcome);
  };
  // A callback is called in the context of the promise created within `send`.
  const within = { advisor, trip };
  const result = context.run(within, send, typeof callback === 'function' ? given.toSpliced(-1, 1, onReply) : given);
  if (!(result instanceof Promise) || !isSent()) {
    trip.state = 'over';
    return result;
  }
  trip.state = 'issued';
  context.enterWith(within);
  advisor.count(trip, previous);
  flow.add(trip);
  spendBudget();
  // The callback may be the only handler of errors, so a derived promise would be rejected unhandled.
  if (typeof callback === 'function') return result;
  // The caller gets this promise, so it is rejected unhandled only if the caller does not handle it.
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

let isSendingUnseen = false;
/** The arguments of the commands counted: the host sends a command a second time once it has connected. */
const unseen = new WeakSet<object>();

/** Sends a command without a frame of user code, and counts it once. Commands sent within are part of it. */
function sendUnseen(advisor: Advisor, { name, commands: [first], given, send }: Call): unknown {
  if (isSendingUnseen || CONNECTION_COMMANDS.has(name)) return send(given);
  isSendingUnseen = true;
  try {
    const result = send(given);
    const args = first?.args;
    if (!Array.isArray(args) || !(result instanceof Promise) || unseen.has(args)) return result;
    unseen.add(args);
    advisor.unseen += 1;
    return result;
  } finally {
    isSendingUnseen = false;
  }
}

type AnyCallback = (error: unknown, reply?: unknown) => unknown;
