/**
 * Each command is noted in the async context that issues it. If the context's last command was answered, and the event
 * loop has done nothing but run promises since, this command has waited for it. Promises that are awaited together,
 * timers and other I/O are told apart by that alone, without a clock.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Commands } from './commands.js';
import { counted, Flow, Group, Pair, Place, type Site, siteOf, Trip, type Wait } from './waits.js';

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
const MOST_LINES = 20;

/** Counts the waits of one process, or of one call of `roundTrips()`. */
export class Advisor {
  #commands = 0;
  #sequential = 0;
  readonly #places = new Map<string, Place>();
  readonly #pairs: Pair[] = [];

  placeOf(site: Site): Place {
    const key = JSON.stringify(site);
    const place = this.#places.get(key) ?? new Place(site);
    if (this.#places.size < MOST_PLACES) this.#places.set(key, place);
    return place;
  }

  /** A trip was issued. */
  count(trip: Trip, previous: Trip | undefined): void {
    this.#commands += 1;
    this.#sequential = Math.max(this.#sequential, trip.depth);
    if (previous === undefined) return;
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

  report(): string {
    const pairs = this.#sorted;
    const who = ['no place waits', '1 place waits'][pairs.length] ?? `${counted(pairs.length)} places wait`;
    const lines = pairs.slice(0, MOST_LINES).map(({ line }) => line);
    if (pairs.length > MOST_LINES) lines.push(`… and ${counted(pairs.length - MOST_LINES)} more`);
    return [`${who} for one round trip after another (${counted(this.#commands)} commands seen)`, ...lines].join(
      '\n  ',
    );
  }
}

/** What an async context knows: who counts, and the round trip that it has issued last. */
interface Context {
  readonly advisor: Advisor;
  readonly trip?: Trip;
}
const context = new AsyncLocalStorage<Context>();

/** The advisor of the whole process, with `IOREDIS_COALESCE=advise`. */
let ofProcess: Advisor | undefined;

export function adviseProcess(): Advisor {
  ofProcess ??= new Advisor();
  return ofProcess;
}

/** Counts the round trips of what `fn` issues; the layer has been put on by then. */
export async function countRoundTrips(fn: () => unknown): Promise<RoundTrips> {
  const advisor = new Advisor();
  await context.run({ advisor }, async () => fn());
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
  const { advisor = ofProcess, trip: before } = context.getStore() ?? {};
  const site = advisor === undefined || before?.state === 'sending' ? undefined : siteOf(name);
  if (advisor === undefined || site === undefined) return send(given);
  // The context of a function that has awaited another one has the first command of that one; one that has awaited
  // several has the last one issued, although another's reply may have come last.
  const previous = [before, before?.flow.last, before?.group.answered].find((one) => one?.state === 'answered');
  const together = before?.state === 'issued' ? before : undefined;
  const flow = previous && previous === previous.flow.last ? previous.flow : new Flow(before, previous ?? together);
  const depth = previous ? previous.depth + 1 : (together?.depth ?? 1);
  const trip = new Trip(
    advisor.placeOf(site),
    new Commands(commands),
    flow,
    depth,
    client,
    together?.group ?? new Group(),
  );
  if (together?.place === trip.place) trip.pair = together.pair;
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
