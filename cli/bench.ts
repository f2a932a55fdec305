import { randomBytes } from 'node:crypto';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from 'ioredis';
import { type BenchSettings, CliError } from './arguments.js';
import { briefly, type Client, type Host, loadHost, open, VARIANTS, type Variant, within } from './clients.js';

/** Short rounds, so that other load affects all variants alike. */
const ROUNDS = 7;
const CLEANUP_TIMEOUT = 10_000;

interface Run {
  readonly settings: BenchSettings;
  readonly keys: readonly string[];
  /** Writes, INFO and the removal share one connection, so that no write can arrive after the removal. */
  readonly keeper: Client;
  readonly clients: Partial<Record<Variant, Client>>;
  readonly signal: AbortSignal;
}

/** @throws {CliError} after the keys have been removed. */
export async function runBench(settings: BenchSettings, version: string): Promise<void> {
  const { target, valueBytes, seconds } = settings;
  const host = loadHost();
  const keeper = await open(host, target, 'plain');
  const prefix = `ioredis-coalesce:bench:${randomBytes(8).toString('hex')}:`;
  const keys = Array.from({ length: settings.keys }, (_, index) => `${prefix}${index}`);
  // The first Ctrl-C or SIGTERM leaves time to clean up; the second one ends the process.
  const interruption = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM']) {
    const reason = Object.assign(new CliError(`interrupted by ${name}`), { exitCode: 130 });
    process.once(name, () => interruption.abort(reason));
  }
  const run: Run = { settings, keys, keeper, clients: {}, signal: interruption.signal };
  const value = randomBytes(valueBytes).toString('hex').slice(0, valueBytes);
  // If they cannot be removed, they expire ten minutes after the run.
  const expireMs = Math.ceil(VARIANTS.length * seconds * 1000) + 10 * 60_000;
  let written = 0;
  const write = (key: string) => {
    written += 1;
    return keeper.set(key, value, 'PX', expireMs);
  };
  try {
    await forEach(keys, write, run.signal);
    for (const variant of VARIANTS) run.clients[variant] = await open(host, target, variant, settings.fuse);
    const report = reportOf(settings, await environmentOf(host, keeper, version), await measureRounds(run));
    process.stdout.write(settings.json ? `${JSON.stringify(report, null, 2)}\n` : `${renderReport(report)}\n`);
  } finally {
    for (const client of Object.values(run.clients)) client.disconnect();
    const removed = forEach(keys.slice(0, written), (key) => keeper.unlink(key));
    await within(CLEANUP_TIMEOUT, removed).catch(({ message }: Error) => {
      throw new CliError(`keys may be left under a prefix of ours until they expire: ${message}`);
    });
    keeper.disconnect();
  }
}

const CHUNK = 1_000;
async function forEach(keys: readonly string[], command: (key: string) => Promise<unknown>, signal?: AbortSignal) {
  for (let first = 0; first < keys.length; first += CHUNK) {
    signal?.throwIfAborted();
    await Promise.all(keys.slice(first, first + CHUNK).map(command)).catch((error: Error) => {
      throw new CliError(`Redis refused a command: ${briefly(error)}`);
    });
  }
}

/** Measures the variants in turns, so that other load on the machine affects all of them alike. */
async function measureRounds(run: Run): Promise<Rounds> {
  const show = (text: string) => process.stderr.isTTY && process.stderr.write(`\r${text}\x1b[K`);
  const rounds: Record<Variant, Sample>[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const samples = {} as Record<Variant, Sample>;
    for (const variant of VARIANTS) {
      show(round === 0 ? 'warming up' : `${variant}, round ${round} of ${ROUNDS}`);
      samples[variant] = await measure(run, run.clients[variant] as Client);
      show('');
      // Work that a variant has left to the event loop must not run while the next one is measured.
      await sleep(5);
    }
    if (round > 0) rounds.push(samples);
  }
  return rounds;
}

const field = (info: string, name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];

/** The CPU that all masters have used since their start; NaN where `INFO` may not be called. */
async function redisCpuUs(keeper: Client): Promise<number> {
  const masters = 'nodes' in keeper ? (keeper as unknown as Cluster).nodes('master') : [keeper];
  const infos = await Promise.all(masters.map((node) => node.info('cpu').catch(() => '')));
  const seconds = (info: string) => Number(field(info, 'used_cpu_sys')) + Number(field(info, 'used_cpu_user'));
  return infos.reduce((sum, info) => sum + 1e6 * seconds(info), 0);
}

/** Reading the clock costs as much as a coalesced command, so only one command in this many is timed. */
const TIMED_EVERY = 16;

/** Measures one round of callers that each await one GET after the other. */
async function measure({ settings, keys, keeper, signal }: Run, client: Client): Promise<Sample> {
  const { concurrency, seconds } = settings;
  let commands = 0;
  const nanoseconds = createHistogram();
  const call = async (caller: number): Promise<void> => {
    // Each starts at a different key, so that the callers do not all read one key at the same time.
    const first = Math.floor((caller * keys.length) / concurrency);
    for (let count = caller; !(time.aborted || signal.aborted); count += 1) {
      const sent = count % TIMED_EVERY === 0 ? process.hrtime.bigint() : undefined;
      const value = await client.get(keys[(first + count) % keys.length]!);
      if (sent !== undefined) nanoseconds.record(process.hrtime.bigint() - sent);
      if (value === null) throw new Error('a key is missing: was it evicted?');
      commands += 1;
    }
  };
  const redisBefore = await redisCpuUs(keeper);
  const time = AbortSignal.timeout(Math.ceil((seconds * 1000) / ROUNDS));
  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  await Promise.all(Array.from({ length: concurrency }, (_, caller) => call(caller))).catch((error: Error) => {
    throw new CliError(`the measurement was interrupted: ${briefly(error)}`);
  });
  const { user, system } = process.cpuUsage(cpuBefore);
  signal.throwIfAborted();
  return {
    perSecond: (commands * 1000) / (performance.now() - start),
    p50Ms: nanoseconds.percentile(50) / 1e6,
    p99Ms: nanoseconds.percentile(99) / 1e6,
    cpuUsPerCommand: (user + system) / commands,
    redisCpuUsPerCommand: ((await redisCpuUs(keeper)) - redisBefore) / commands,
  };
}

async function environmentOf(host: Host, client: Client, version: string): Promise<Environment> {
  const server = await client.info('server').catch(() => '');
  const valkey = field(server, 'valkey_version');
  const name = valkey ? `Valkey ${valkey}` : `Redis ${field(server, 'redis_version') ?? 'of an unknown version'}`;
  return { package: version, node: process.versions.node, client: `${host.name} ${host.version}`, server: name };
}

// ---- The report ----

/** `redisCpuUsPerCommand` includes other clients' use, and is NaN if it is not known. */
const FIGURES = ['perSecond', 'p50Ms', 'p99Ms', 'cpuUsPerCommand', 'redisCpuUsPerCommand'] as const;
/** One round of one variant. */
export type Sample = Readonly<Record<(typeof FIGURES)[number], number>>;
export type Rounds = readonly Readonly<Record<Variant, Sample>>[];
export type Environment = Readonly<Record<'package' | 'node' | 'client' | 'server', string>>;

export function reportOf({ target, json: _, ...rest }: BenchSettings, environment: Environment, rounds: Rounds) {
  const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] as number;
  const ofAll = <T>(of: (values: readonly number[]) => T) => {
    const ofVariant = (variant: Variant) =>
      Object.fromEntries(FIGURES.map((name) => [name, of(rounds.map((round) => round[variant][name]))]));
    return Object.fromEntries(VARIANTS.map((variant) => [variant, ofVariant(variant)])) as Record<
      Variant,
      Record<keyof Sample, T>
    >;
  };
  const { name, cluster, tls } = target;
  return {
    settings: { target: name, cluster, ...(tls && { tls }), ...rest, rounds: rounds.length },
    environment,
    results: ofAll(median),
    /** The lowest and the highest of the rounds. */
    ranges: ofAll((values) => [Math.min(...values), Math.max(...values)] as const),
  };
}

const HEAD = ['', 'commands/s', 'range', '× plain', 'p50, ms', 'p99, ms', 'Node, µs', 'Redis, µs'];
const WIDTHS = [16, 11, 22, 10, 10, 10, 12, 12];

export function renderReport({ settings, environment, results, ranges }: ReturnType<typeof reportOf>): string {
  const { target, cluster, tls, concurrency, valueBytes, keys, seconds, fuse, rounds } = settings;
  const lineOf = ([name = '', ...cells]: readonly string[]) =>
    name.padEnd(WIDTHS[0]!) + cells.map((cell, index) => cell.padStart(WIDTHS[index + 1]!)).join('');
  const times = (variant: Variant, name: keyof Sample) => `${digits(results[variant][name] / results.plain[name])}×`;
  /** Rounds of the two overlap, so that their medians may differ by chance. */
  const isUnclear = (variant: Variant, name: keyof Sample) => {
    const [[low, high], [lowest, highest]] = [ranges[variant][name], ranges.plain[name]];
    return low <= highest && lowest <= high;
  };
  const gain = (variant: Variant) =>
    (
      [
        ['perSecond', 'the commands per second of plain'],
        ['cpuUsPerCommand', "the client's CPU per command"],
        ['redisCpuUsPerCommand', 'that of Redis'],
      ] as const
    )
      .map(([name, what], index) => {
        const joined = ['', ', at ', ' and '][index];
        return `${joined}${times(variant, name)} ${what}${isUnclear(variant, name) ? ' (no clear difference)' : ''}`;
      })
      .join('');
  const whole = (value: number) => Math.round(value).toLocaleString('en-US');
  const rows = VARIANTS.map((variant) => {
    const [perSecond = 0, ...figures] = FIGURES.map((name) => results[variant][name]);
    const range = ranges[variant].perSecond.map(whole).join('–');
    const first = [variant === 'auto' ? 'auto-pipelining' : variant, whole(perSecond), range];
    return [...first, times(variant, 'perSecond'), ...figures.map(digits)];
  });
  return [
    `${target}${tls ? ' over TLS' : ''}${cluster ? ' (Cluster)' : ''}: ${environment.server}; Node ${environment.node}, ${environment.client}, ` +
      `ioredis-coalesce ${environment.package}`,
    `${concurrency} callers that each await one GET after the other; ${keys} keys of ${valueBytes} B; ` +
      `${seconds} s each in ${rounds} rounds, taking turns, medians; CPU per command${fuse ? '; coalesced with fuseReads' : ''}`,
    ...[HEAD, ...rows].map(lineOf),
    `Coalesced: ${gain('coalesced')}.`,
    `Cork mode, through public APIs alone: ${gain('cork')}.`,
    ...(tls ? ['All of this over TLS: both CPU figures include encryption, which no client here saves per byte.'] : []),
    'This measures the client alone: a service does more than ask Redis, and gains less.',
    'In a service: IOREDIS_COALESCE=stats node --import ioredis-coalesce/register app.js',
  ].join('\n');
}

const digits = (value: number) => (Number.isFinite(value) ? String(Number(value.toPrecision(3))) : '?');
