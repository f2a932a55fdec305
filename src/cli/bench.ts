import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SingleBar } from 'cli-progress';
import { type BenchSettings, CliError } from './arguments.js';
import { briefly, type Client, type Host, loadHost, open, VARIANTS, type Variant } from './clients.js';
import { type Environment, type Rounds, renderReport, reportOf, type Sample } from './report.js';

const ROUNDS = 5;
const CLEANUP_TIMEOUT = 10_000;
/** Milliseconds after the run at which keys expire, if they could not be removed. */
const EXPIRY_MARGIN = 10 * 60_000;

/** @throws {CliError} after the keys have been removed. */
export async function runBench(settings: BenchSettings, version: string): Promise<void> {
  const interruption = new Interruption();
  const { signal } = interruption;
  const host = loadHost();
  const keeper = await interruption.orEnd(open(host, settings.target, 'plain'));
  const dataset = new Dataset(keeper, settings.keys, settings.valueBytes);
  const variants = {} as Record<Variant, Client>;
  let failure: unknown;
  try {
    const expireMs = Math.ceil(VARIANTS.length * settings.seconds * 1000) + EXPIRY_MARGIN;
    await interruption.orEnd(dataset.write(expireMs, signal));
    for (const variant of VARIANTS) {
      variants[variant] = await interruption.orEnd(open(host, settings.target, variant));
      await interruption.orEnd(dataset.verify(variants[variant], signal));
    }
    const environment = await environmentOf(host, keeper, version);
    const rounds = await measureRounds(variants, dataset.keys, settings, interruption);
    const report = reportOf(settings, environment, rounds);
    process.stdout.write(settings.json ? `${JSON.stringify(report, null, 2)}\n` : `${renderReport(report)}\n`);
  } catch (error) {
    failure = error;
  }
  for (const client of Object.values(variants)) client.disconnect();
  const left = await removal(dataset);
  keeper.disconnect();
  if (failure !== undefined || left !== undefined) throw withLeftOver(failure, left);
}

/** The first Ctrl-C or SIGTERM, so that there is time to clean up; the second one ends the process. */
class Interruption {
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  readonly #end = new Promise<never>((_, reject) => {
    this.signal.addEventListener('abort', () => reject(this.signal.reason));
  });

  constructor() {
    this.#end.catch(() => {});
    for (const name of ['SIGINT', 'SIGTERM'] as const) {
      process.on(name, () => {
        if (this.signal.aborted) process.exit(130);
        this.#controller.abort(new CliError(`interrupted by ${name}`, 130));
      });
    }
  }

  /** Settles as `work` does, or rejects as soon as the interruption comes. */
  orEnd<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#end]);
  }
}

const CHUNK_BYTES = 4 * 1024 * 1024;
const CHUNK_KEYS = 1_000;

/** The keys that are read: under one random prefix, with an expiry in case they cannot be removed. */
class Dataset {
  readonly keys: readonly string[];
  readonly #value: string;
  readonly #client: Client;
  #attempted = 0;

  /** Writing and removing share one connection, so that no write can arrive after the removal. */
  constructor(client: Client, keys: number, valueBytes: number) {
    const prefix = `ioredis-coalesce:bench:${randomBytes(8).toString('hex')}:`;
    this.#client = client;
    this.keys = Array.from({ length: keys }, (_, index) => `${prefix}${index}`);
    this.#value = randomBytes(Math.ceil(valueBytes / 2))
      .toString('hex')
      .slice(0, valueBytes);
  }

  async write(expireMs: number, signal: AbortSignal): Promise<void> {
    const chunk = Math.max(1, Math.min(CHUNK_KEYS, Math.floor(CHUNK_BYTES / this.#value.length)));
    while (this.#attempted < this.keys.length) {
      signal.throwIfAborted();
      const keys = this.keys.slice(this.#attempted, this.#attempted + chunk);
      this.#attempted += keys.length;
      await allOf(keys.map((key) => this.#client.set(key, this.#value, 'PX', expireMs)));
    }
  }

  /** Reads every key once with this client and compares every value. */
  async verify(client: Client, signal: AbortSignal): Promise<void> {
    const { length } = this.#value;
    for (let first = 0; first < this.keys.length; first += CHUNK_KEYS) {
      signal.throwIfAborted();
      const keys = this.keys.slice(first, first + CHUNK_KEYS);
      const values = await allOf(keys.map((key) => client.get(key)));
      const wrong = values.findIndex((value) => value !== this.#value);
      if (wrong === -1) continue;
      const found = values[wrong];
      const got = found == null ? 'no value: was it evicted?' : `${found.length} other characters`;
      throw new CliError(`${keys[wrong]} should hold the ${length} characters written to it, got ${got}`);
    }
  }

  /** Removes every key that was written, or may have been. */
  async remove(): Promise<void> {
    for (let first = 0; first < this.#attempted; first += CHUNK_KEYS) {
      const keys = this.keys.slice(first, Math.min(first + CHUNK_KEYS, this.#attempted));
      await allOf(keys.map((key) => this.#client.unlink(key)));
    }
  }
}

/** Waits for all of them, also when one fails: no command may be in flight when the keys are removed. */
async function allOf<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(promises);
  return results.map((result) => {
    if (result.status === 'fulfilled') return result.value;
    throw new CliError(`Redis refused a command: ${briefly(result.reason as Error)}`);
  });
}

/** In turns, so that other load on the machine affects all of them alike. */
async function measureRounds(
  variants: Readonly<Record<Variant, Client>>,
  keys: readonly string[],
  { concurrency, seconds }: BenchSettings,
  interruption: Interruption,
): Promise<Rounds> {
  const { signal } = interruption;
  const bar = new SingleBar({
    format: '{bar} {percentage}% {variant}',
    clearOnComplete: true,
    hideCursor: true,
    // Ctrl-C is handled here: the progress bar is not the only thing to clean up.
    gracefulExit: false,
  });
  const rounds: Record<Variant, Sample>[] = [];
  bar.start((ROUNDS + 1) * VARIANTS.length, 0, { variant: 'warming up' });
  try {
    for (let round = 0; round <= ROUNDS; round += 1) {
      const samples = {} as Record<Variant, Sample>;
      for (const variant of VARIANTS) {
        bar.update({ variant: round === 0 ? 'warming up' : `${variant}, round ${round} of ${ROUNDS}` });
        const sample = measure(variants[variant], keys, concurrency, seconds / ROUNDS, signal);
        samples[variant] = await interruption.orEnd(sample);
        signal.throwIfAborted();
        bar.increment();
        // Work that a variant has left to the event loop must not run while the next one is measured.
        await sleep(5);
      }
      if (round > 0) rounds.push(samples);
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new CliError(`the measurement was interrupted: ${briefly(error as Error)}`);
  } finally {
    bar.stop();
  }
  return rounds;
}

/** Reading the clock costs as much as a coalesced command, so only one command in this many is timed. */
const TIMED_EVERY = 16;
const MAX_TIMED = 1_000_000;

const latencies = new Float64Array(MAX_TIMED);

/** `concurrency` callers, each of which awaits one GET after the other, for `seconds`. */
async function measure(
  client: Client,
  keys: readonly string[],
  concurrency: number,
  seconds: number,
  signal: AbortSignal,
): Promise<Sample> {
  let running = true;
  let commands = 0;
  let timed = 0;
  const stop = (): void => {
    running = false;
  };
  const timer = setTimeout(stop, seconds * 1000);
  signal.addEventListener('abort', stop);

  const call = async (caller: number): Promise<void> => {
    // Each starts at a different key, so that the callers do not all read one key at the same time.
    let next = Math.floor((caller * keys.length) / concurrency);
    let untilTimed = caller % TIMED_EVERY;
    while (running) {
      const key = keys[next]!;
      next = next + 1 === keys.length ? 0 : next + 1;
      if (untilTimed > 0) {
        untilTimed -= 1;
        await client.get(key);
      } else {
        untilTimed = TIMED_EVERY - 1;
        const sent = performance.now();
        await client.get(key);
        if (timed < MAX_TIMED) latencies[timed++] = performance.now() - sent;
      }
      commands += 1;
    }
  };

  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  try {
    await Promise.all(Array.from({ length: concurrency }, (_, caller) => call(caller)));
  } finally {
    running = false;
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
  const elapsed = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const sorted = latencies.slice(0, timed).sort();
  const percentile = (share: number) => sorted[Math.min(timed - 1, Math.floor(timed * share))] ?? Number.NaN;
  return {
    perSecond: commands / elapsed,
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    cpuUsPerCommand: (user + system) / commands,
  };
}

async function environmentOf(host: Host, client: Client, version: string): Promise<Environment> {
  const server = await client.info('server').catch(() => '');
  const field = (name: string) => new RegExp(`^${name}:(.*)$`, 'm').exec(server)?.[1]?.trim();
  const valkey = field('valkey_version');
  const name = valkey ? `Valkey ${valkey}` : `Redis ${field('redis_version') ?? 'of an unknown version'}`;
  return { package: version, node: process.versions.node, client: `${host.name} ${host.version}`, server: name };
}

/** Removes the keys; returns why some may be left, or undefined if none are. */
async function removal(dataset: Dataset): Promise<string | undefined> {
  try {
    return (await Promise.race([dataset.remove(), sleep(CLEANUP_TIMEOUT, 'no answer')])) ?? undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function withLeftOver(failure: unknown, left: string | undefined): unknown {
  if (left === undefined) return failure;
  const note = `keys may be left under a prefix of ours until they expire: ${left}`;
  if (failure instanceof CliError) return new CliError(`${failure.message}; ${note}`, failure.exitCode);
  return failure ?? new CliError(note);
}
