/**
 * What being watched costs: `npx tsx test/observability/cost.ts [rounds] [--write]`. Not a test; prints a table,
 * and writes it into the documents. Each arm has a process of its own; they take turns, so that noise meets all of them.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { subscribe, tracingChannel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Redis as IORedis } from 'ioredis';
import { CHANNELS, type Coalesced, coalesce } from 'ioredis-coalesce/coalesce';
import { collectMetrics } from 'ioredis-coalesce/prometheus';
import { Registry } from 'prom-client';
import { fallThroughReason } from '../../src/host/state.js';
import type { HostClient } from '../../src/host/types.js';
import { startRedis } from '../../tools/redis-server.js';
import { inSpan, instrument, takeSpans } from './helpers/open-telemetry.js';

const BURST = 200;
const SLICE = 400;
const CALLS = 1_000;
const WARM_UP_SLICES = 2;
const LOOKS = 'all looks before a hot command, of which the ones for watchers are a part';

/** Where the figures go with `--write`. */
const RESULTS = 'bench/results/watching.json';

/** Called for each burst; watches it in the arm's way. */
type Watch = (client: IORedis) => ((burst: () => Promise<unknown>) => Promise<unknown>) | undefined;

function noop(): void {}

function watchCommands(): undefined {
  tracingChannel('ioredis:command').subscribe({
    start: noop,
    end: noop,
    asyncStart: noop,
    asyncEnd: noop,
    error: noop,
  });
}

/** One span for each burst, and one for each command; they are kept in memory and dropped. */
const traceWithOpenTelemetry: Watch = () => {
  instrument();
  return async (burst) => {
    await inSpan('request', burst);
    takeSpans();
  };
};

interface Arm {
  readonly watch: Watch;
  /** Of a coalesced arm, the plain one that is watched alike; undefined for a plain arm. */
  readonly plain?: string;
}

const PLAIN = 'plain ioredis, not watched';
const PLAIN_CHANNEL = 'plain ioredis, subscriber of `ioredis:command`';
const PLAIN_OTEL = 'plain ioredis, OpenTelemetry, a span a command';

const ARMS: Readonly<Record<string, Arm>> = {
  'coalesced, not watched': { plain: PLAIN, watch: () => undefined },
  'subscriber of `ioredis-coalesce:batch`': {
    plain: PLAIN,
    watch: () => {
      subscribe(`tracing:${CHANNELS.BATCH}:start`, noop);
      subscribe(`tracing:${CHANNELS.BATCH}:end`, noop);
      return undefined;
    },
  },
  'Prometheus, scraped every 100 ms': {
    plain: PLAIN,
    watch: (client) => {
      const register = new Registry();
      collectMetrics(client as unknown as Coalesced, { register });
      setInterval(() => void register.metrics(), 100).unref();
      return undefined;
    },
  },
  'subscriber of `ioredis:command`': { plain: PLAIN_CHANNEL, watch: watchCommands },
  'OpenTelemetry, a span a command': { plain: PLAIN_OTEL, watch: traceWithOpenTelemetry },
  [PLAIN]: { watch: () => undefined },
  [PLAIN_CHANNEL]: { watch: watchCommands },
  [PLAIN_OTEL]: { watch: traceWithOpenTelemetry },
};

/** Of one slice, or of all of them in the middle. */
interface Slice {
  /** Commands a second. */
  readonly throughput: number;
  /** Of this process, in microseconds a command. */
  readonly cpu: number;
}

async function runArm(name: string): Promise<void> {
  const arm = ARMS[name];
  if (arm === undefined) throw new Error(`expected one of ${Object.keys(ARMS).join('; ')}, got ${name}`);
  const plain = new IORedis(process.env.COST_URL as string);
  await once(plain, 'ready');
  const client: IORedis = arm.plain === undefined ? plain : coalesce(plain);
  await client.set('key', 'v'.repeat(100));
  const watch = arm.watch(client) ?? ((burst: () => Promise<unknown>) => burst());
  const burst = () => Promise.all(Array.from({ length: BURST }, () => client.get('key')));
  process.on('message', async () => {
    const cpu = process.cpuUsage();
    const start = performance.now();
    let commands = 0;
    while (performance.now() - start < SLICE) {
      await watch(burst);
      commands += BURST;
    }
    const { user, system } = process.cpuUsage(cpu);
    const throughput = commands / ((performance.now() - start) / 1_000);
    process.send?.({ throughput, cpu: (user + system) / commands } satisfies Slice);
  });
  process.send?.('ready');
}

async function slice(child: ChildProcess): Promise<Slice> {
  child.send('run');
  const [measured] = (await once(child, 'message')) as [Slice];
  return measured;
}

async function startArm(name: string, url: string): Promise<ChildProcess> {
  const child = fork(fileURLToPath(import.meta.url), [name], {
    execArgv: ['--import', 'tsx'],
    env: { ...process.env, COST_URL: url },
  });
  await once(child, 'message');
  return child;
}

async function main(rounds: number): Promise<void> {
  const server = await startRedis();
  const children = new Map<string, ChildProcess>();
  try {
    for (const name of Object.keys(ARMS)) children.set(name, await startArm(name, server.url));
    const measured = new Map<string, Slice[]>(Object.keys(ARMS).map((name) => [name, []]));
    for (let round = -WARM_UP_SLICES; round < rounds; round += 1) {
      for (const [name, child] of children) {
        const result = await slice(child);
        if (round >= 0) measured.get(name)?.push(result);
      }
    }
    const calls = await measureSingleCalls(server.url);
    const arms = tableOf(measured);
    const all = `${arms}\n\n${tableOfCalls(calls)}`;
    console.log(`\n${all}`);
    if (!process.argv.includes('--write')) return;
    const results = { node: process.versions.node, cpus: cpus().map(({ model }) => model), arms: [...measured], calls };
    await writeFile(new URL(`../../${RESULTS}`, import.meta.url), `${JSON.stringify(results, undefined, 2)}\n`);
    await writeInto('docs/production.md', 'cost', all);
    await writeInto('README.md', 'watched', arms);
  } finally {
    for (const child of children.values()) child.kill();
    await server.stop();
  }
}

function tableOf(measured: ReadonlyMap<string, readonly Slice[]>): string {
  const of = (name: string) => measured.get(name) as readonly Slice[];
  const notWatched = of('coalesced, not watched');
  const lines = [
    '| bursts of 200 GETs | client CPU a command | × not watched | × plain ioredis, watched alike | throughput × plain, watched alike |',
    '| --- | --- | --- | --- | --- |',
  ];
  for (const [name, slices] of measured) {
    const ratio = (key: keyof Slice, base: readonly Slice[]) =>
      spread(slices.map((one, round) => one[key] / (base[round] as Slice)[key]));
    const plain = of(ARMS[name]?.plain ?? name);
    const cpu = `${median(slices.map((one) => one.cpu)).toFixed(2)} µs`;
    const ratios = [ratio('cpu', notWatched), ratio('cpu', plain), ratio('throughput', plain)];
    lines.push(`| ${[name, cpu, ...ratios].join(' | ')} |`);
  }
  const versions = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}, server on loopback`;
  return [
    ...lines,
    '',
    `Medians, and the range, of ${notWatched.length} interleaved rounds of ${SLICE} ms; ${versions}.`,
  ].join('\n');
}

async function writeInto(file: string, name: string, table: string): Promise<void> {
  const url = new URL(`../../${file}`, import.meta.url);
  const text = await readFile(url, 'utf8');
  const begin = `<!-- ${name}:begin -->`;
  const from = text.indexOf(begin) + begin.length;
  const to = text.indexOf(`<!-- ${name}:end -->`);
  if (from < begin.length || to < from) throw new Error(`${file} should hold ${begin} and, after it, its end`);
  await writeFile(url, `${text.slice(0, from)}\n${table}\n${text.slice(to)}`);
}

/** What is asked for now and then: microseconds of one call, the median of many. */
async function measureSingleCalls(url: string): Promise<Record<string, number>> {
  const client = coalesce(new IORedis(url));
  await once(client, 'ready');
  await Promise.all(Array.from({ length: CALLS }, () => client.get('key')));
  const register = new Registry();
  collectMetrics(client, { register });
  const rows: [string, () => unknown][] = [
    ['`coalescer.stats()`', () => client.coalescer.stats()],
    ['a scrape of one client by Prometheus', () => register.metrics()],
    [LOOKS, looksBefore(client)],
  ];
  const calls: Record<string, number> = {};
  for (const [name, call] of rows) {
    const times: number[] = [];
    for (let round = 0; round < 2 * CALLS; round += 1) {
      const start = performance.now();
      await call();
      times.push(performance.now() - start);
    }
    calls[name] = (median(times.slice(CALLS)) * 1_000) / (name === LOOKS ? CALLS : 1);
  }
  client.disconnect();
  return calls;
}

function tableOfCalls(calls: Readonly<Record<string, number>>): string {
  const lines = Object.entries(calls).map(([name, us]) => `| ${name} | ${us.toFixed(us < 1 ? 3 : 1)} µs |`);
  return [`| one call, median of ${CALLS} | |`, '| --- | --- |', ...lines].join('\n');
}

/** A thousand times, since one is too short for the clock. */
function looksBefore(client: IORedis): () => number {
  const host = client as unknown as HostClient;
  return () => {
    let obstacles = 0;
    for (let round = 0; round < CALLS; round += 1) {
      if (fallThroughReason(host, host.stream as NonNullable<HostClient['stream']>) !== undefined) obstacles += 1;
    }
    return obstacles;
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}

function spread(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => value.toPrecision(3));
  return `${median(values).toPrecision(3)}× (${low}–${high})`;
}

const [, , argument = '7'] = process.argv;
if (process.send === undefined) await main(Number(argument));
else await runArm(argument);
