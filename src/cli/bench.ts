import { randomBytes } from 'node:crypto';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { SingleBar } from 'cli-progress';
import { type BenchSettings, CliError } from './arguments.js';
import { briefly, type Client, type Host, loadHost, open, VARIANTS, type Variant, within } from './clients.js';
import { type Environment, type Rounds, renderReport, reportOf, type Sample } from './report.js';

const ROUNDS = 5;
const CLEANUP_TIMEOUT = 10_000;
/** Milliseconds after the run at which keys expire, if they could not be removed. */
const EXPIRY_MARGIN = 10 * 60_000;

/** @throws {CliError} after the keys have been removed. */
export async function runBench(settings: BenchSettings, version: string): Promise<void> {
  const { target, valueBytes, seconds } = settings;
  const host = loadHost();
  // Writing and removing share one connection, so that no write can arrive after the removal.
  const keeper = await open(host, target, 'plain');
  const signal = interruption();
  const prefix = `ioredis-coalesce:bench:${randomBytes(8).toString('hex')}:`;
  const keys = Array.from({ length: settings.keys }, (_, index) => `${prefix}${index}`);
  const value = randomBytes(valueBytes).toString('hex').slice(0, valueBytes);
  const expireMs = Math.ceil(VARIANTS.length * seconds * 1000) + EXPIRY_MARGIN;
  /** Or sent, at least. */
  const written: string[] = [];
  const write = (key: string) => {
    written.push(key);
    return keeper.set(key, value, 'PX', expireMs);
  };
  const variants = {} as Record<Variant, Client>;
  let failure: unknown;
  try {
    await forEach(keys, write, signal);
    for (const variant of VARIANTS) {
      const client = await open(host, target, variant);
      variants[variant] = client;
      await forEach(keys, (key) => verify(client, key, value), signal);
    }
    const environment = await environmentOf(host, keeper, version);
    const report = reportOf(settings, environment, await measureRounds(variants, keys, settings, signal));
    process.stdout.write(settings.json ? `${JSON.stringify(report, null, 2)}\n` : `${renderReport(report)}\n`);
  } catch (error) {
    failure = error;
  }
  for (const client of Object.values(variants)) client.disconnect();
  try {
    const removed = forEach(written, (key) => keeper.unlink(key));
    await within(CLEANUP_TIMEOUT, removed);
  } catch (error) {
    const left = `keys may be left under a prefix of ours until they expire: ${(error as Error).message}`;
    if (failure === undefined) failure = new CliError(left);
    else if (failure instanceof CliError) failure.message += `; ${left}`;
  }
  keeper.disconnect();
  if (failure !== undefined) throw failure;
}

/** Aborted by the first Ctrl-C or SIGTERM, so that there is time to clean up; the second one ends the process. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.once(name, () => controller.abort(new CliError(`interrupted by ${name}`, 130)));
  }
  return controller.signal;
}

const CHUNK = 1_000;

/** Some at a time, and waits for all of these when one fails: nothing may be in flight when the keys are removed. */
async function forEach(
  keys: readonly string[],
  command: (key: string) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  for (let first = 0; first < keys.length; first += CHUNK) {
    signal?.throwIfAborted();
    for (const result of await Promise.allSettled(keys.slice(first, first + CHUNK).map(command))) {
      if (result.status === 'fulfilled') continue;
      const reason = result.reason as Error;
      throw reason instanceof CliError ? reason : new CliError(`Redis refused a command: ${briefly(reason)}`);
    }
  }
}

async function verify(client: Client, key: string, value: string): Promise<void> {
  if ((await client.get(key)) === value) return;
  throw new CliError(`${key} does not hold the ${value.length} characters written to it: was it evicted?`);
}

/** In turns, so that other load on the machine affects all of them alike. */
async function measureRounds(
  variants: Readonly<Record<Variant, Client>>,
  keys: readonly string[],
  { concurrency, seconds }: BenchSettings,
  signal: AbortSignal,
): Promise<Rounds> {
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
        samples[variant] = await measure(variants[variant], keys, concurrency, seconds / ROUNDS, signal);
        signal.throwIfAborted();
        bar.increment();
        // Work that a variant has left to the event loop must not run while the next one is measured.
        await sleep(5);
      }
      if (round > 0) rounds.push(samples);
    }
  } finally {
    bar.stop();
  }
  return rounds;
}

/** Reading the clock costs as much as a coalesced command, so only one command in this many is timed. */
const TIMED_EVERY = 16;

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
  const timer = setTimeout(() => {
    running = false;
  }, seconds * 1000);
  const nanoseconds = createHistogram();

  const call = async (caller: number): Promise<void> => {
    // Each starts at a different key, so that the callers do not all read one key at the same time.
    let next = Math.floor((caller * keys.length) / concurrency);
    for (let count = caller; running && !signal.aborted; count += 1) {
      const key = keys[next]!;
      next = next + 1 === keys.length ? 0 : next + 1;
      if (count % TIMED_EVERY === 0) {
        const sent = process.hrtime.bigint();
        await client.get(key);
        nanoseconds.record(process.hrtime.bigint() - sent);
      } else {
        await client.get(key);
      }
      commands += 1;
    }
  };

  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  try {
    await Promise.all(Array.from({ length: concurrency }, (_, caller) => call(caller)));
  } catch (error) {
    throw new CliError(`the measurement was interrupted: ${briefly(error as Error)}`);
  } finally {
    running = false;
    clearTimeout(timer);
  }
  const elapsed = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    perSecond: commands / elapsed,
    p50Ms: nanoseconds.percentile(50) / 1e6,
    p99Ms: nanoseconds.percentile(99) / 1e6,
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
