import { randomBytes } from 'node:crypto';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
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
  const variants = {} as Record<Variant, Client>;
  try {
    const write = (key: string) => {
      written.push(key);
      return keeper.set(key, value, 'PX', expireMs);
    };
    await forEach(keys, write, signal);
    for (const variant of VARIANTS) variants[variant] = await open(host, target, variant);
    const environment = await environmentOf(host, keeper, version);
    const report = reportOf(settings, environment, await measureRounds(variants, keys, settings, signal, keeper));
    process.stdout.write(settings.json ? `${JSON.stringify(report, null, 2)}\n` : `${renderReport(report)}\n`);
  } finally {
    for (const client of Object.values(variants)) client.disconnect();
    const removed = forEach(written, (key) => keeper.unlink(key));
    await within(CLEANUP_TIMEOUT, removed).catch(({ message }: Error) => {
      throw new CliError(`keys may be left under a prefix of ours until they expire: ${message}`);
    });
    keeper.disconnect();
  }
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

async function forEach(
  keys: readonly string[],
  command: (key: string) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<void> {
  for (let first = 0; first < keys.length; first += CHUNK) {
    signal?.throwIfAborted();
    await Promise.all(keys.slice(first, first + CHUNK).map(command)).catch((error: Error) => {
      throw new CliError(`Redis refused a command: ${briefly(error)}`);
    });
  }
}

/** In turns, so that other load on the machine affects all of them alike. */
async function measureRounds(
  variants: Readonly<Record<Variant, Client>>,
  keys: readonly string[],
  { concurrency, seconds }: BenchSettings,
  signal: AbortSignal,
  keeper: Client,
): Promise<Rounds> {
  const show = (text: string) => process.stderr.isTTY && process.stderr.write(`\r${text}\x1b[K`);
  const rounds: Record<Variant, Sample>[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const samples = {} as Record<Variant, Sample>;
    for (const variant of VARIANTS) {
      show(round === 0 ? 'warming up' : `${variant}, round ${round} of ${ROUNDS}`);
      const before = await redisCpuUs(keeper);
      const sample = await measure(variants[variant], keys, concurrency, seconds / ROUNDS, signal);
      show('');
      signal.throwIfAborted();
      const redisCpuUsPerCommand = ((await redisCpuUs(keeper)) - before) / sample.commands;
      samples[variant] = { ...sample, redisCpuUsPerCommand };
      // Work that a variant has left to the event loop must not run while the next one is measured.
      await sleep(5);
    }
    if (round > 0) rounds.push(samples);
  }
  return rounds;
}

/** A line of INFO's reply. */
const field = (info: string, name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];

/** Of all masters, since their start; NaN where `INFO` may not be called. */
async function redisCpuUs(keeper: Client): Promise<number> {
  const { nodes } = keeper as unknown as { nodes?(role: string): Client[] };
  const masters = nodes === undefined ? [keeper] : nodes.call(keeper, 'master');
  const infos = await Promise.all(masters.map((node) => node.info('cpu').catch(() => '')));
  const seconds = (info: string) => Number(field(info, 'used_cpu_sys')) + Number(field(info, 'used_cpu_user'));
  return infos.reduce((sum, info) => sum + 1e6 * seconds(info), 0);
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
): Promise<Omit<Sample, 'redisCpuUsPerCommand'> & { commands: number }> {
  let running = true;
  let commands = 0;
  const stop = () => {
    running = false;
  };
  const timer = setTimeout(stop, seconds * 1000);
  const nanoseconds = createHistogram();
  const call = async (caller: number): Promise<void> => {
    // Each starts at a different key, so that the callers do not all read one key at the same time.
    let next = Math.floor((caller * keys.length) / concurrency);
    for (let count = caller; running && !signal.aborted; count += 1) {
      const sent = count % TIMED_EVERY === 0 ? process.hrtime.bigint() : undefined;
      const value = await client.get(keys[next]!);
      if (sent !== undefined) nanoseconds.record(process.hrtime.bigint() - sent);
      if (value === null) throw new Error('a key is missing: was it evicted?');
      next = next + 1 === keys.length ? 0 : next + 1;
      commands += 1;
    }
  };
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  const calls = Promise.all(Array.from({ length: concurrency }, (_, caller) => call(caller)));
  await calls.finally(stop).catch((error: Error) => {
    throw new CliError(`the measurement was interrupted: ${briefly(error)}`);
  });
  clearTimeout(timer);
  const elapsed = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    commands,
    perSecond: commands / elapsed,
    p50Ms: nanoseconds.percentile(50) / 1e6,
    p99Ms: nanoseconds.percentile(99) / 1e6,
    cpuUsPerCommand: (user + system) / commands,
  };
}

async function environmentOf(host: Host, client: Client, version: string): Promise<Environment> {
  const server = await client.info('server').catch(() => '');
  const valkey = field(server, 'valkey_version');
  const name = valkey ? `Valkey ${valkey}` : `Redis ${field(server, 'redis_version') ?? 'of an unknown version'}`;
  return { package: version, node: process.versions.node, client: `${host.name} ${host.version}`, server: name };
}
