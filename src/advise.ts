/**
 * The advisor (`IOREDIS_COALESCE=advise`): finds the places in user code where round trips wait in line for each other.
 *
 * Each command is noted in the async context that issues it. If the context's last command was answered, and the event loop
 * has done nothing but run promises since, this command has waited for it. Promises that are awaited together, timers and
 * other I/O are told apart by that alone, without a clock.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { basename, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { types } from 'node:util';
import { setImmediate } from './util/clock.js';

/** A place in user code that issues commands. */
export interface Site {
  /** `src/cart.ts:42`. */
  readonly place: string;
  /** `loadItems`; empty where it has no name. */
  readonly functionName: string;
  /** `get`, or `get by connect-redis` where a package issues it. */
  readonly command: string;
}

/** Two places of which the second has waited for the first; a loop if they are the same. All figures are sums. */
export interface Wait {
  readonly first: Site;
  readonly second: Site;
  /** How often the second has waited: `waits / times + 1` are the round trips of a run of a loop, on average. */
  waits: number;
  /** Runs of the loop; between two places, the same as `waits`. */
  times: number;
  /** Of these waits, those in which the second's arguments held a value of the reply to the first. */
  dependent: number;
  /** Milliseconds that the first has taken, and the second. */
  firstMs: number;
  secondMs: number;
}

/** What `roundTrips()` has counted. */
export interface RoundTrips {
  /** Commands, each pipeline or transaction as one. */
  readonly commands: number;
  /** The most of them that have waited for each other, one after the other. */
  readonly sequential: number;
  /** Those that cost the most time first. */
  readonly sites: readonly Wait[];
}

/** Further places are not told apart. */
const MOST_PLACES = 1_000;
const MOST_LINES = 20;
const MOST_VALUES = 64;
const LONGEST_VALUE = 200;
const LONGEST_TEXT = 800;
const LONGEST_JSON = 16_384;
const MOST_FRAMES = 40;

/** A round trip; in an async context, the last one that it has issued. */
export interface Trip {
  readonly advisor: Advisor;
  /** How many have waited for each other up to this one. */
  readonly depth: number;
  /** Shared by those that have waited for each other. */
  readonly flow: { last?: Trip };
  /** Where it was issued; undefined for the call of `roundTrips()` itself. */
  readonly site?: Site;
  /** `sending`: what is sent in its context is part of it. `answered`: until the event loop goes on to other work. */
  state: 'sending' | 'issued' | 'answered' | 'over';
  tookMs: number;
  /** Values of the reply that were not among its own arguments. */
  values: readonly string[];
  /** Its wait for the one before; that of one at the same place that was issued with it, otherwise. */
  wait?: Wait | undefined;
}

const context = new AsyncLocalStorage<Trip>();

/** Counts the waits of one process, or of one call of `roundTrips()`. */
export class Advisor {
  #commands = 0;
  #sequential = 0;
  readonly #waits = new Map<string, Wait>();

  /** @param text - the trip's arguments. */
  count(site: Site, trip: Trip, text: string, previous: Trip | undefined): void {
    this.#commands += 1;
    this.#sequential = Math.max(this.#sequential, trip.depth);
    if (previous?.site === undefined) return;
    const key = JSON.stringify([previous.site, site]);
    const none = { waits: 0, times: 0, dependent: 0, firstMs: 0, secondMs: 0 };
    const wait = this.#waits.get(key) ?? { first: previous.site, second: site, ...none };
    if (this.#waits.size < MOST_PLACES) this.#waits.set(key, wait);
    wait.waits += 1;
    // Otherwise its loop goes on.
    if (previous.wait !== wait) wait.times += 1;
    if (previous.values.some((value) => holds(text, value))) wait.dependent += 1;
    wait.firstMs += previous.tookMs;
    trip.wait = wait;
  }

  found(): RoundTrips {
    const lostMs = (wait: Wait) => (isDependent(wait) ? 0 : Math.min(wait.firstMs, wait.secondMs));
    const sites = [...this.#waits.values()].sort((a, b) => lostMs(b) - lostMs(a));
    return { commands: this.#commands, sequential: this.#sequential, sites };
  }

  report(): string {
    const { commands, sites } = this.found();
    const who = ['no place waits', '1 place waits'][sites.length] ?? `${counted(sites.length)} places wait`;
    const lines = sites.slice(0, MOST_LINES).map(lineOf);
    if (sites.length > MOST_LINES) lines.push(`… and ${counted(sites.length - MOST_LINES)} more`);
    return [`${who} for one round trip after another (${counted(commands)} commands seen)`, ...lines].join('\n  ');
  }
}

function isDependent({ dependent, waits }: Wait): boolean {
  return dependent * 2 > waits;
}

function isSameSite(first: Site | undefined, second: Site): boolean {
  return first?.place === second.place && first.command === second.command;
}

function counted(value: number): string {
  return value.toLocaleString('en');
}

function lineOf(wait: Wait): string {
  const { first, second, waits, times } = wait;
  const seen = `${counted(times)} ${times === 1 ? 'time' : 'times'}`;
  const [firstMs, secondMs] = [wait.firstMs / waits, wait.secondMs / waits];
  if (!isSameSite(first, second)) {
    const pair = `${first.place} → ${second.place}  ${first.command}, then ${second.command}`;
    if (isDependent(wait)) return `${pair}: an argument holds the first's reply: leave it`;
    const saved = Math.min(firstMs, secondMs).toFixed(1);
    return `${pair}: independent, ${seen}; together they would save ${saved} ms of ${(firstMs + secondMs).toFixed(1)}`;
  }
  const length = Math.round(waits / times) + 1;
  const loop = `${first.place} ${first.functionName}  ${first.command} ×${length} in a row, ${seen}`;
  if (isDependent(wait)) return `${loop}: an argument holds the reply before it: leave it`;
  const how = first.command === 'get' ? 'Promise.all, mget' : 'Promise.all';
  return `${loop}: ${length} round trips of ${firstMs.toFixed(1)} ms each; issued together (${how}): 1`;
}

/** The advisor of the whole process, with `IOREDIS_COALESCE=advise`. */
let ofProcess: Advisor | undefined;

export function adviseProcess(): Advisor {
  ofProcess ??= new Advisor();
  return ofProcess;
}

/** Counts the round trips of what `fn` issues; the layer has been put on by then. */
export async function countRoundTrips(fn: () => unknown): Promise<RoundTrips> {
  const advisor = new Advisor();
  await context.run({ advisor, depth: 1, flow: {}, state: 'issued', tookMs: 0, values: [] }, async () => fn());
  return advisor.found();
}

/**
 * Sends one command, pipeline or transaction as the next round trip of the present async context, and returns its promise.
 * What is sent within is part of it. Calls without a frame of user code are not noted: the client's own.
 *
 * @param given - arguments of the call; a callback at their end is called when the advisor knows of the reply.
 * @param isSent - whether it was sent: not if it was answered from memory.
 */
export function track(
  name: string,
  args: readonly unknown[],
  given: unknown[],
  send: (given: unknown[]) => unknown,
  isSent: () => boolean = () => true,
): unknown {
  const before = context.getStore();
  const advisor = before?.advisor ?? ofProcess;
  const site = advisor === undefined || before?.state === 'sending' ? undefined : siteOf(name);
  if (advisor === undefined || site === undefined) return send(given);
  // The context of a function that has awaited another one has the first command of that one.
  const previous = [before, before?.flow.last].find((one) => one?.state === 'answered');
  const together = before?.state === 'issued' ? before : undefined;
  const text = textOf(args);
  const issuedAtMs = performance.now();
  const trip: Trip = {
    advisor,
    depth: previous ? previous.depth + 1 : (together?.depth ?? 1),
    flow: previous && previous === previous.flow.last ? previous.flow : {},
    site,
    state: 'sending',
    tookMs: 0,
    values: [],
    wait: together && isSameSite(together.site, site) ? together.wait : undefined,
  };
  const answered = (reply?: unknown): void => {
    if (trip.state !== 'issued') return;
    trip.state = 'answered';
    setImmediate(() => {
      trip.state = 'over';
    });
    trip.tookMs = performance.now() - issuedAtMs;
    if (previous !== undefined && trip.wait !== undefined) trip.wait.secondMs += trip.tookMs;
    try {
      trip.values = valuesIn(reply).filter((value) => !holds(text, value));
    } catch {
      // What a user's transformer has made may be cyclic, or have getters that throw.
    }
  };
  const callback = given.at(-1);
  const told = (error: unknown, reply: unknown) => {
    answered(reply);
    return (callback as AnyCallback)(error, reply);
  };
  // A callback is called in the context of the promise that is made within.
  const result = context.run(trip, send, typeof callback === 'function' ? given.toSpliced(-1, 1, told) : given);
  if (!(result instanceof Promise) || !isSent()) {
    trip.state = 'over';
    return result;
  }
  trip.state = 'issued';
  context.enterWith(trip);
  trip.flow.last = trip;
  advisor.count(site, trip, text, previous);
  // The callback tells of the reply, and may be all that handles an error: another promise would be rejected unhandled.
  if (typeof callback === 'function') return result;
  // The caller's: it is rejected without a handler where the caller has none.
  return result.then(
    (value) => {
      answered(value);
      return value;
    },
    (error: unknown) => {
      answered();
      throw error;
    },
  );
}

type AnyCallback = (error: unknown, reply: unknown) => unknown;

/** Values of a reply, those in JSON too. 0 and 1 are mostly counts, or say yes and no. */
function valuesIn(reply: unknown): string[] {
  if (reply === null || reply === undefined) return [];
  if (typeof reply === 'object' && !(reply instanceof Buffer)) {
    // Names of fields are identities where there is a number in them.
    const names = Array.isArray(reply) ? [] : Object.keys(reply).filter((name) => /\d/.test(name));
    return [...names, ...Object.values(reply)].slice(0, MOST_VALUES).flatMap(valuesIn).slice(0, MOST_VALUES);
  }
  const text = String(reply);
  if (/^\s*[{[]/.test(text) && text.length <= LONGEST_JSON) {
    try {
      return valuesIn(JSON.parse(text));
    } catch {}
  }
  return text.length > LONGEST_VALUE || /^(?:OK|[01])?$/.test(text) ? [] : [text];
}

/** The arguments as one text, without those that only code of users could make text: it runs once per call. */
function textOf(args: readonly unknown[]): string {
  const values = args.slice(0, MOST_VALUES).flatMap(elementsOf).flatMap(elementsOf).slice(0, MOST_VALUES);
  return values
    .map((value) => (value instanceof Buffer ? Buffer.prototype.toString.call(value, 'utf8', 0, LONGEST_TEXT) : value))
    .filter((text) => typeof text === 'string' || typeof text === 'number')
    .map((text) => String(text).slice(0, LONGEST_TEXT))
    .join(' ');
}

/** The elements of an array that are plain values; anything else is its only element. */
function elementsOf(list: unknown): unknown[] {
  if (!Array.isArray(list)) return [list];
  if (types.isProxy(list)) return [];
  const indices = Array.from({ length: Math.min(list.length, MOST_VALUES) }, (_, index) => index);
  return indices.map((index) => Object.getOwnPropertyDescriptor(list, index)?.value);
}

/** Whether arguments hold a value; a short one only as a word. */
function holds(text: string, value: string): boolean {
  return value.length > 3 ? text.includes(value) : text.split(/[^\p{L}\p{N}]+/u).includes(value);
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

const PACKAGE = /node_modules[\\/](?!\.pnpm)((?:@[^\\/]+[\\/])?[^\\/]+)/g;
const CLIENT_PACKAGE = /^(?:(?:ioredis|iovalkey)\d*|ioredis-coalesce|standard-as-callback)$/;
const FRAME = /^\s*at (?:async )?(?:(.*) \()?(.+?)(:\d+):\d+\)?$/;

/** The first frame of user code, and the package that it calls, if another one than the client's issues the command. */
function siteOf(command: string): Site | undefined {
  let ownFolder: string | undefined;
  let by = '';
  for (const frame of stackTrace().split('\n')) {
    const [, functionName = '', path = '', line = ''] = FRAME.exec(frame) ?? [];
    if (path === '' || /^node:|<anonymous>/.test(path)) continue;
    // The first frame is this function's.
    ownFolder ??= path.slice(0, -basename(path).length);
    if (path.startsWith(ownFolder)) continue;
    const inPackage = [...path.matchAll(PACKAGE)].at(-1)?.[1];
    if (inPackage === undefined) {
      const file = path.startsWith('file:') ? fileURLToPath(path) : path;
      return { place: relative('', file) + line, functionName, command: command + by };
    }
    if (by === '' && !CLIENT_PACKAGE.test(inPackage)) by = ` by ${inPackage}`;
  }
  return undefined;
}
