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
  /** `src/cart.ts:42 loadItems`. */
  readonly place: string;
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
  /** Milliseconds that the first one took, on average. */
  readonly firstMs: number;
  /** Milliseconds that the second one took, on average. */
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
  readonly sites: readonly Wait[];
}

/** Further places are not told apart. */
const MOST_PLACES = 1_000;
const MOST_VALUES = 64;
const LONGEST_VALUE = 200;
const LONGEST_JSON = 16_384;
const FRAMES = 40;

interface Counted {
  readonly first: Site;
  readonly second: Site;
  times: number;
  pairs: number;
  firstMs: number;
  secondMs: number;
  dependent: number;
}

/** The commands of one async context that have waited for each other. */
interface Flow {
  last: Trip | undefined;
}

/** A round trip; the last one that an async context has issued. */
interface Trip {
  readonly advisor: Advisor;
  readonly flow: Flow;
  readonly site: Site | undefined;
  /** How many have waited for each other up to this one. */
  readonly depth: number;
  /** How many of these at its end were issued at this site. */
  readonly run: number;
  readonly issuedAtMs: number;
  tookMs: number;
  /** The turn of the event loop in which it was answered; -1 before. */
  turn: number;
  values: ReadonlySet<string>;
  readonly counted: Counted | undefined;
}

const NO_VALUES: ReadonlySet<string> = new Set();
let context: AsyncLocalStorage<Trip> | undefined;
let turn = 0;
let isTurning = false;
let isSending = false;

/** Counts the waits of one process, or of one call of `roundTrips()`. */
export class Advisor {
  commands = 0;
  sequential = 0;
  readonly #counted = new Map<string, Counted>();

  waited(previous: Trip, site: Site, args: readonly unknown[], run: number): Counted | undefined {
    const first = previous.site as Site;
    const key = `${first.place}\n${first.command}\n${site.place}\n${site.command}`;
    let counted = this.#counted.get(key);
    if (counted === undefined) {
      if (this.#counted.size >= MOST_PLACES) return undefined;
      counted = { first, second: site, times: 0, pairs: 0, firstMs: 0, secondMs: 0, dependent: 0 };
      this.#counted.set(key, counted);
    }
    counted.pairs += 1;
    if (run <= 2) counted.times += 1;
    counted.firstMs += previous.tookMs;
    if (holdsOne(previous.values, args)) counted.dependent += 1;
    return counted;
  }

  /** Those that took the longest first; what depends on the one before last. */
  private waits(): Wait[] {
    const waits = [...this.#counted.values()].map(({ first, second, times, pairs, firstMs, secondMs, dependent }) => ({
      first,
      second,
      times,
      roundTrips: isSameSite(first, second) ? pairs / times + 1 : 2,
      firstMs: firstMs / pairs,
      secondMs: secondMs / pairs,
      dependent: dependent * 2 > pairs,
    }));
    const weight = ({ dependent, roundTrips, times, firstMs }: Wait) =>
      (dependent ? 0 : 1) * 1e12 + (roundTrips - 1) * times * firstMs;
    return waits.sort((a, b) => weight(b) - weight(a));
  }

  found(): RoundTrips {
    const { commands, sequential } = this;
    return { commands, sequential, sites: this.waits() };
  }

  report(): string {
    const waits = this.waits();
    const count = this.commands.toLocaleString('en');
    if (waits.length === 0) return `no place waits for one round trip after another (${count} commands seen)`;
    const head = waits.length === 1 ? '1 place waits for' : `${waits.length.toLocaleString('en')} places wait for`;
    return [`${head} one round trip after another (${count} commands seen)`, ...waits.map(line)].join('\n  ');
  }
}

function isSameSite(first: Site | undefined, second: Site): boolean {
  return first?.place === second.place && first.command === second.command;
}

function line({ first, second, times, roundTrips, firstMs, secondMs, dependent }: Wait): string {
  const seen = `${times.toLocaleString('en')} ${times === 1 ? 'time' : 'times'}`;
  if (isSameSite(first, second)) {
    const length = Math.round(roundTrips);
    const where = `${first.place}  ${first.command} ×${length} in a row, ${seen}`;
    if (dependent) return `${where}: each needs the reply before it: leave it`;
    const together = first.command === 'get' ? 'Promise.all, mget' : 'Promise.all';
    return `${where}: ${length} round trips of ${firstMs.toFixed(1)} ms; issued together (${together}): 1`;
  }
  const where = `${first.place} → ${second.place}  ${first.command}, then ${second.command}`;
  if (dependent) return `${where}: an argument holds the first's reply, ${seen}: leave it`;
  const saved = Math.min(firstMs, secondMs).toFixed(1);
  return `${where}: independent, ${seen}; together they would save ${saved} ms of ${(firstMs + secondMs).toFixed(1)}`;
}

/** With `IOREDIS_COALESCE=advise`: of the whole process. */
let ofProcess: Advisor | undefined;

export function adviseProcess(): Advisor {
  context ??= new AsyncLocalStorage();
  ofProcess ??= new Advisor();
  return ofProcess;
}

/** Counts the round trips of what `fn` issues; the layer has been put on by then. */
export async function countRoundTrips(fn: () => unknown): Promise<RoundTrips> {
  context ??= new AsyncLocalStorage();
  const advisor = new Advisor();
  await context.run(trip(advisor, undefined, undefined, { last: undefined }, 0, 0), async () => fn());
  return advisor.found();
}

function trip(
  advisor: Advisor,
  site: Site | undefined,
  counted: Counted | undefined,
  flow: Flow,
  depth: number,
  run: number,
): Trip {
  const issuedAtMs = performance.now();
  return { advisor, flow, site, depth, run, issuedAtMs, tookMs: 0, turn: -1, values: NO_VALUES, counted };
}

/** What the layer knows of a call. */
export interface Tracked {
  readonly name: string;
  readonly args: readonly unknown[];
  /** Sends it. `answered` may be called with the reply before callbacks are. */
  send(answered: (reply: unknown) => void): unknown;
  /** Whether a result of `send` means that the command was sent: `later` if another call sends it. */
  outcome?(result: unknown): 'sent' | 'from memory' | 'later';
}

/**
 * Sends one command, pipeline or transaction as the next round trip of the present async context, and returns its promise.
 * What is sent within is part of it. Calls without a frame of user code are not noted: the client's own.
 */
export function track({ name, args, send, outcome }: Tracked, below: (...args: never[]) => unknown): unknown {
  const before = context?.getStore();
  const advisor = before?.advisor ?? ofProcess;
  const site = isSending || context === undefined || advisor === undefined ? undefined : siteOf(name, below);
  if (context === undefined || advisor === undefined || site === undefined) return send(() => {});
  const previous = before && predecessorOf(before);
  const isConcurrent = before !== undefined && before.turn < 0 && before.site !== undefined;
  const depth = previous ? previous.depth + 1 : isConcurrent ? before.depth : 1;
  // Those that are issued together count as one of a run.
  const run =
    previous && isSameSite(previous.site, site)
      ? previous.run + 1
      : isConcurrent && isSameSite(before.site, site)
        ? before.run
        : 1;
  const counted = previous && { previous };
  const flow = previous && previous === previous.flow.last ? previous.flow : { last: undefined };
  // Entered first: a callback is called in the context of the promise that is made within.
  const noted: Trip = { ...trip(advisor, site, undefined, flow, depth, run) };
  context.enterWith(noted);
  const answered = (reply?: unknown) => {
    if (noted.turn >= 0) return;
    noted.tookMs = performance.now() - noted.issuedAtMs;
    noted.turn = thisTurn();
    noted.values = valuesIn(reply);
    if (pair !== undefined) pair.secondMs += noted.tookMs;
  };
  let pair: Counted | undefined;
  isSending = true;
  let result: unknown;
  try {
    result = send(answered);
  } catch (error) {
    context.enterWith(before as Trip);
    throw error;
  } finally {
    isSending = false;
  }
  const how = result instanceof Promise ? (outcome?.(result) ?? 'sent') : 'later';
  if (how !== 'sent') context.enterWith(before as Trip);
  if (how === 'later') return result;
  if (how === 'sent') {
    flow.last = noted;
    advisor.commands += 1;
    advisor.sequential = Math.max(advisor.sequential, depth);
    if (counted !== undefined) pair = advisor.waited(counted.previous, site, args, run);
  }
  const settled = (reply?: unknown) => {
    // A read that was answered from memory is no round trip: what follows it follows the one before.
    if (how === 'sent') answered(reply);
    else if (before !== undefined && before.turn >= 0) before.turn = thisTurn();
  };
  // The caller's: it is rejected without a handler where the caller has none.
  return (result as Promise<unknown>).then(
    (value) => {
      settled(value);
      return value;
    },
    (error: unknown) => {
      settled();
      throw error;
    },
  );
}

/** The command that one which is issued now has waited for. */
function predecessorOf(before: Trip): Trip | undefined {
  // The context of a function that has awaited another one has the first command of that one.
  return [before, before.flow.last].find((one) => one?.site !== undefined && one.turn === turn);
}

/** Ends when the event loop goes on to other work. */
function thisTurn(): number {
  if (!isTurning) {
    isTurning = true;
    setImmediate(() => {
      isTurning = false;
      turn += 1;
    });
  }
  return turn;
}

/** Values of a reply by which a later argument can be known, those in JSON too. */
function valuesIn(reply: unknown): ReadonlySet<string> {
  const values = new Set<string>();
  const add = (value: unknown): void => {
    if (values.size >= MOST_VALUES) return;
    if (typeof value === 'number' || typeof value === 'string' || value instanceof Buffer) {
      const text = String(value);
      if (text !== '' && text !== 'OK' && text.length <= LONGEST_VALUE) values.add(text);
      if (/^\s*[{[]/.test(text) && text.length <= LONGEST_JSON) {
        try {
          add(JSON.parse(text));
        } catch {}
      }
    } else if (typeof value === 'object' && value !== null) Object.values(value).forEach(add);
  };
  add(reply);
  return values;
}

function holdsOne(values: ReadonlySet<string>, args: readonly unknown[]): boolean {
  if (values.size === 0) return false;
  const texts = args
    .flat(2)
    .slice(0, MOST_VALUES)
    .map((arg) => String(arg).slice(0, LONGEST_VALUE * 4));
  return texts.some(
    (text) =>
      text.split(/[^\p{L}\p{N}]+/u).some((word) => values.has(word)) ||
      [...values].some((value) => value === text || (value.length >= 4 && text.includes(value))),
  );
}

const PACKAGE = /node_modules[\\/](?!\.pnpm)((?:@[^\\/]+[\\/])?[^\\/]+)/g;
const OWN = new Set(['ioredis', 'iovalkey', 'ioredis-coalesce', 'standard-as-callback']);
let ownFolder: string | undefined;

/** The first frame of user code, and the package that it calls, if another one than the client's issues the command. */
function siteOf(command: string, below: (...args: never[]) => unknown): Site | undefined {
  ownFolder ??= /(?:\(|at )([^()\n]*)[\\/][^\\/]+:\d+:\d+\)?$/m.exec(new Error().stack ?? '')?.[1] ?? 'unknown';
  const { stackTraceLimit } = Error;
  const holder: { stack?: unknown } = {};
  Error.stackTraceLimit = FRAMES;
  Error.captureStackTrace(holder, below);
  const stack = String(holder.stack);
  Error.stackTraceLimit = stackTraceLimit;
  let by: string | undefined;
  for (const frame of stack.split('\n').slice(1)) {
    const found = /^\s*at (?:async )?(?:(.*) \()?(.+:\d+:\d+)\)?$/.exec(frame);
    const [, name, where = ''] = found ?? [];
    if (found === null || /^node:|^evalmachine|<anonymous>/.test(where) || where.startsWith(`${ownFolder}`)) continue;
    const inPackage = [...where.matchAll(PACKAGE)].at(-1)?.[1];
    if (inPackage !== undefined) {
      if (!OWN.has(inPackage)) by ??= inPackage;
      continue;
    }
    const [, path = where, position = ''] = /^(.*?)((?::\d+){1,2})$/.exec(where) ?? [];
    const file = path.startsWith('file:') ? fileURLToPath(path) : path;
    const place = `${file.replace(`${process.cwd()}/`, '')}${position.replace(/:\d+$/, '')}${name ? ` ${name}` : ''}`;
    return { place, command: by === undefined ? command : `${command} by ${by}` };
  }
  return undefined;
}
