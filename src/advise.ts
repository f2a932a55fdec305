/**
 * The advisor (`IOREDIS_COALESCE=advise`): finds the places in user code where round trips wait in line for each other.
 *
 * Each command is noted in the async context that issues it. If the context's last command was answered, and the event loop
 * has done nothing but run promises since, this command has waited for it. Promises that are awaited together, timers and
 * other I/O are told apart by that alone, without a clock.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { fileURLToPath } from 'node:url';
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

/** Two commands of which the second has waited for the first; a loop if they are issued at the same place. */
export interface Wait {
  readonly first: Site;
  readonly second: Site;
  /** How often they were seen; for a loop, how often it ran. */
  readonly times: number;
  /** Round trips of a run of the loop, on average; 2 for a pair. */
  readonly roundTrips: number;
  /** Milliseconds that each of them took, on average. */
  readonly firstMs: number;
  readonly secondMs: number;
  /** Whether arguments of the second mostly hold a value of the reply to the first. */
  readonly dependent: boolean;
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
const LONGEST_JSON = 16_384;
const MOST_FRAMES = 40;

/** The sums of a wait. */
interface Sums {
  readonly first: Site;
  readonly second: Site;
  times: number;
  pairs: number;
  firstMs: number;
  secondMs: number;
  dependent: number;
}

/** A round trip; in an async context, the last one that it has issued. */
export class Trip {
  readonly issuedAtMs = performance.now();
  tookMs = 0;
  /** The turn of the event loop in which it was answered; -1 before. */
  turn = -1;
  /** Those of the reply, see `valuesIn`. */
  values: readonly string[] = [];
  /** Those of its wait for the one before. */
  sums: Sums | undefined;

  /**
   * @param depth - how many have waited for each other up to this one.
   * @param run - how many of these at its end were issued at this site.
   * @param flow - shared by those that have waited for each other.
   * @param site - none for the call of `roundTrips()` itself.
   */
  constructor(
    readonly advisor: Advisor,
    readonly depth: number,
    readonly run: number,
    readonly flow: { last?: Trip } = {},
    readonly site?: Site,
  ) {}

  answered(reply?: unknown): void {
    if (this.turn >= 0) return;
    this.tookMs = performance.now() - this.issuedAtMs;
    this.turn = thisTurn();
    this.values = valuesIn(reply);
    if (this.sums !== undefined) this.sums.secondMs += this.tookMs;
  }
}

const context = new AsyncLocalStorage<Trip>();
let turn = 0;
let isTurning = false;
let isSending = false;

/** Counts the waits of one process, or of one call of `roundTrips()`. */
export class Advisor {
  #commands = 0;
  #sequential = 0;
  readonly #sums = new Map<string, Sums>();

  count(site: Site, { depth, run }: Trip, args: readonly unknown[], previous: Trip | undefined): Sums | undefined {
    this.#commands += 1;
    this.#sequential = Math.max(this.#sequential, depth);
    if (previous?.site === undefined) return undefined;
    const key = JSON.stringify([previous.site, site]);
    const none = { first: previous.site, second: site, times: 0, pairs: 0, firstMs: 0, secondMs: 0, dependent: 0 };
    const sums = this.#sums.get(key) ?? none;
    if (this.#sums.size < MOST_PLACES) this.#sums.set(key, sums);
    sums.pairs += 1;
    if (run <= 2) sums.times += 1;
    sums.firstMs += previous.tookMs;
    if (holdOne(args, previous.values)) sums.dependent += 1;
    return sums;
  }

  found(): RoundTrips {
    const sites = [...this.#sums.values()].map(({ pairs, ...sums }) => ({
      ...sums,
      roundTrips: isSameSite(sums.first, sums.second) ? pairs / sums.times + 1 : 2,
      firstMs: sums.firstMs / pairs,
      secondMs: sums.secondMs / pairs,
      dependent: sums.dependent * 2 > pairs,
    }));
    const lostMs = ({ dependent, roundTrips, times, firstMs }: Wait) =>
      dependent ? 0 : (roundTrips - 1) * times * firstMs;
    sites.sort((a, b) => lostMs(b) - lostMs(a));
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

function isSameSite(first: Site | undefined, second: Site): boolean {
  return first?.place === second.place && first.command === second.command;
}

function counted(value: number): string {
  return value.toLocaleString('en');
}

function lineOf({ first, second, times, roundTrips, firstMs, secondMs, dependent }: Wait): string {
  const seen = `${counted(times)} ${times === 1 ? 'time' : 'times'}`;
  if (!isSameSite(first, second)) {
    const pair = `${first.place} → ${second.place}  ${first.command}, then ${second.command}`;
    if (dependent) return `${pair}: an argument holds the first's reply: leave it`;
    const saved = Math.min(firstMs, secondMs).toFixed(1);
    return `${pair}: independent, ${seen}; together they would save ${saved} ms of ${(firstMs + secondMs).toFixed(1)}`;
  }
  const length = Math.round(roundTrips);
  const loop = `${first.place} ${first.functionName}  ${first.command} ×${length} in a row, ${seen}`;
  if (dependent) return `${loop}: an argument holds the reply before it: leave it`;
  const how = first.command === 'get' ? 'Promise.all, mget' : 'Promise.all';
  return `${loop}: ${length} round trips of ${firstMs.toFixed(1)} ms; issued together (${how}): 1`;
}

/** With `IOREDIS_COALESCE=advise`: of the whole process. */
let ofProcess: Advisor | undefined;

export function adviseProcess(): Advisor {
  ofProcess ??= new Advisor();
  return ofProcess;
}

/** Counts the round trips of what `fn` issues; the layer has been put on by then. */
export async function countRoundTrips(fn: () => unknown): Promise<RoundTrips> {
  const advisor = new Advisor();
  await context.run(new Trip(advisor, 1, 0), async () => fn());
  return advisor.found();
}

/**
 * Sends one command, pipeline or transaction as the next round trip of the present async context, and returns its promise.
 * What is sent within is part of it. Calls without a frame of user code are not noted: the client's own.
 *
 * @param below - callers of this function are looked for user code.
 * @param send - may call `answered` with the reply before callbacks are called.
 * @param isSent - whether it was sent: not if it was answered from memory, or another call sends it.
 */
export function track(
  name: string,
  args: readonly unknown[],
  below: (...args: never[]) => unknown,
  send: (answered: (reply: unknown) => void) => unknown,
  isSent: () => boolean = () => true,
): unknown {
  const before = context.getStore();
  const advisor = before?.advisor ?? ofProcess;
  const site = isSending || advisor === undefined ? undefined : siteOf(name, below);
  if (advisor === undefined || site === undefined) return send(() => {});
  // The context of a function that has awaited another one has the first command of that one.
  const previous = [before, before?.flow.last].find((one) => one?.turn === turn);
  // Those that are issued together count as one of a run.
  const together = before !== undefined && before.turn < 0 ? before : undefined;
  const depth = previous ? previous.depth + 1 : (together?.depth ?? 1);
  const inRun = previous && isSameSite(previous.site, site) ? previous.run + 1 : undefined;
  const run = inRun ?? (together && isSameSite(together.site, site) ? together.run : 1);
  const flow = previous && previous === previous.flow.last ? previous.flow : {};
  const trip = new Trip(advisor, depth, run, flow, site);
  let result: unknown;
  let sent = false;
  // Entered first: a callback is called in the context of the promise that is made within.
  context.enterWith(trip);
  isSending = true;
  try {
    result = send((reply) => trip.answered(reply));
    sent = result instanceof Promise && isSent();
  } finally {
    isSending = false;
    if (!sent) context.enterWith(before as Trip);
  }
  if (!sent) return result;
  trip.flow.last = trip;
  trip.sums = advisor.count(site, trip, args, previous);
  // The caller's: it is rejected without a handler where the caller has none.
  return (result as Promise<unknown>).then(
    (value) => {
      trip.answered(value);
      return value;
    },
    (error: unknown) => {
      trip.answered();
      throw error;
    },
  );
}

/** Ends when the event loop goes on to other work. */
function thisTurn(): number {
  if (isTurning) return turn;
  isTurning = true;
  setImmediate(() => {
    isTurning = false;
    turn += 1;
  });
  return turn;
}

/** Values of a reply by which a later argument can be known, those in JSON too. */
function valuesIn(reply: unknown): string[] {
  const values: string[] = [];
  const add = (value: unknown): void => {
    // 0 and 1 are mostly counts, or say yes and no.
    if (values.length >= MOST_VALUES || value === null || value === undefined || value === 0 || value === 1) return;
    if (typeof value === 'object' && !(value instanceof Buffer)) {
      Object.values(value).forEach(add);
      return;
    }
    const text = String(value);
    const words = wordsOf(text);
    // Short ones are found as words only.
    if (text.length <= LONGEST_VALUE && text !== 'OK') values.push(words.length < 6 ? words : words.slice(1, -1));
    if (!/^\s*[{[]/.test(text) || text.length > LONGEST_JSON) return;
    try {
      add(JSON.parse(text));
    } catch {}
  };
  add(reply);
  return values.filter((words) => /[^:]/.test(words));
}

function holdOne(args: readonly unknown[], values: readonly string[]): boolean {
  if (values.length === 0) return false;
  const texts = args.flat(2).filter((arg) => typeof arg !== 'function');
  return texts.slice(0, MOST_VALUES).some((text) => {
    const words = wordsOf(String(text).slice(0, LONGEST_VALUE * 4));
    return values.some((value) => words.includes(value));
  });
}

/** `:u:4711:` of `u-4711`. */
function wordsOf(text: string): string {
  return `:${text.replace(/[^\p{L}\p{N}]+/gu, ':')}:`;
}

const PACKAGE = /node_modules[\\/](?!\.pnpm)((?:@[^\\/]+[\\/])?[^\\/]+)/g;
const OWN_PACKAGES = new Set(['ioredis', 'iovalkey', 'ioredis-coalesce', 'standard-as-callback']);
const FRAME = /^\s*at (?:async )?(?:(.*) \()?(.+?)(:\d+):\d+\)?$/;
let ownFolder: string | undefined;

/** The first frame of user code, and the package that it calls, if another one than the client's issues the command. */
function siteOf(command: string, below: (...args: never[]) => unknown): Site | undefined {
  ownFolder ??= /(?:\(|at )([^()\n]*)[\\/][^\\/]+:\d+:\d+\)?$/m.exec(new Error().stack ?? '')?.[1] ?? 'unknown';
  const { stackTraceLimit } = Error;
  const holder: { stack?: unknown } = {};
  Error.stackTraceLimit = MOST_FRAMES;
  Error.captureStackTrace(holder, below);
  const frames = String(holder.stack).split('\n');
  Error.stackTraceLimit = stackTraceLimit;
  let by = '';
  for (const frame of frames) {
    const [, functionName = '', path = '', line = ''] = FRAME.exec(frame) ?? [];
    if (path === '' || /^node:|<anonymous>/.test(path) || path.startsWith(ownFolder)) continue;
    const inPackage = [...path.matchAll(PACKAGE)].at(-1)?.[1];
    if (inPackage === undefined) {
      const file = path.startsWith('file:') ? fileURLToPath(path) : path;
      return { place: file.replace(`${process.cwd()}/`, '') + line, functionName, command: command + by };
    }
    if (by === '' && !OWN_PACKAGES.has(inPackage)) by = ` by ${inPackage}`;
  }
  return undefined;
}
