/**
 * What a service holds over an hour: plain ioredis, coalesced, and coalesced with `cache`, each in a process of its
 * own, at a fixed rate, with connections that the server closes and clients that are made and ended. `npx tsx
 * bench/soak.ts` prints a line a minute, writes bench/soak.json, and fails if memory or connections grow.
 * `SOAK_MINUTES` is 60 by default.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { coalesce } from '../src/coalesce.js';
import { startRedis } from '../tools/redis-server.js';

const MINUTES = Number(process.env.SOAK_MINUTES ?? 60);
/** Each turn is one `Promise.all`. */
const TURNS_PER_SECOND = 100;
const COMMANDS_PER_TURN = 10;
const KEYS = 2_000;
const MIB = 2 ** 20;
/** Of heap and connections, from the second quarter to the last; smaller is noise. */
const MOST_GROWTH = 1.1;

const WAYS = ['plain', 'coalesced', 'coalesced with cache'] as const;
type Way = (typeof WAYS)[number];

interface Sample {
  readonly heapMiB: number;
  readonly rssMiB: number;
  readonly commands: number;
  readonly failed: number;
}

function open(way: Way, url: string): Redis {
  const redis = new Redis(url, { connectionName: way.replaceAll(' ', '-') });
  redis.on('error', () => {});
  if (way === 'plain') return redis;
  return coalesce(redis, way === 'coalesced' ? {} : { cache: { maxEntries: 500 } });
}

/**
 * The process that is measured: a web service's commands, a client for each hundredth turn, a sample when it is asked
 * for one.
 */
async function serve(way: Way, url: string): Promise<void> {
  const redis = open(way, url);
  let commands = 0;
  let failed = 0;
  let turns = 0;
  const turn = async () => {
    turns += 1;
    const key = (offset: number) => `key:${(turns * 7 + offset) % KEYS}`;
    const work = Array.from({ length: COMMANDS_PER_TURN - 3 }, (_, index) => redis.get(key(index)));
    const more = [redis.set(key(0), 'x'.repeat(turns % 200), 'EX', 600), redis.hset('hash', key(1), turns)];
    const settled = await Promise.allSettled([...work, ...more, redis.multi().incr('count').exec()]);
    commands += settled.length;
    failed += settled.filter(({ status }) => status === 'rejected').length;
    if (turns % 100 !== 0) return;
    const short = open(way, url);
    await short.get(key(0)).catch(() => {});
    await short.quit().catch(() => {});
  };
  process.on('message', () => {
    (globalThis as { gc?: () => void }).gc?.();
    const { heapUsed, rss } = process.memoryUsage();
    process.send?.({ heapMiB: heapUsed / MIB, rssMiB: rss / MIB, commands, failed } satisfies Sample);
  });
  for (;;) {
    void turn();
    await sleep(1_000 / TURNS_PER_SECOND);
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** By how much it has grown from the second quarter of the time to the last. */
function growth(values: readonly number[]): number {
  const quarter = Math.max(1, Math.floor(values.length / 4));
  return mean(values.slice(-quarter)) / mean(values.slice(quarter, 2 * quarter));
}

async function main(): Promise<void> {
  const server = await startRedis();
  const watcher = new Redis(server.url);
  const children = WAYS.map((way) => ({
    way,
    samples: [] as (Sample & { connections: number })[],
    child: fork(fileURLToPath(import.meta.url), [way, server.url], { execArgv: ['--import', 'tsx', '--expose-gc'] }),
  }));
  for (let minute = 1; minute <= MINUTES; minute += 1) {
    await sleep(55_000);
    // Every client connects again.
    await watcher.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await sleep(5_000);
    for (const { way, samples, child } of children) {
      child.send('sample');
      const [sample] = (await once(child, 'message')) as [Sample];
      const list = String(await watcher.client('LIST'));
      const connections = list.split('\n').filter((line) => line.includes(`name=${way.replaceAll(' ', '-')} `)).length;
      samples.push({ ...sample, connections });
      const { heapMiB, rssMiB, commands, failed } = sample;
      console.log(
        `${minute} min, ${way}: heap ${heapMiB.toFixed(1)} MiB, RSS ${rssMiB.toFixed(0)} MiB, ${connections} connections, ${commands} commands, ${failed} failed`,
      );
    }
  }
  const results = children.map(({ way, samples, child }) => {
    child.kill();
    const of = (name: keyof Sample | 'connections') => samples.map((sample) => sample[name]);
    const last = samples.at(-1);
    const rounded = (value: number) => Number(value.toFixed(1));
    return {
      way,
      commands: last?.commands,
      failed: last?.failed,
      heapMiB: rounded(mean(of('heapMiB'))),
      heapGrowth: Number(growth(of('heapMiB')).toFixed(3)),
      rssMiB: rounded(mean(of('rssMiB'))),
      rssGrowth: Number(growth(of('rssMiB')).toFixed(3)),
      lastRssMiB: Math.round(last?.rssMiB ?? Number.NaN),
      connections: Math.max(...of('connections')),
    };
  });
  console.table(results);
  const settings = { date: new Date().toISOString().slice(0, 10), minutes: MINUTES, node: process.version };
  const more = { server: server.version, turnsPerSecond: TURNS_PER_SECOND, commandsPerTurn: COMMANDS_PER_TURN };
  writeFileSync(
    fileURLToPath(new URL('soak.json', import.meta.url)),
    `${JSON.stringify({ settings: { ...settings, ...more }, results }, undefined, 1)}\n`,
  );
  watcher.disconnect();
  await server.stop();
  const isFlat = results.every(({ heapGrowth, connections }) => heapGrowth <= MOST_GROWTH && connections <= 2);
  if (!isFlat) process.exitCode = 1;
}

const [, , way, url] = process.argv;
if (url === undefined) await main();
else await serve(way as Way, url);
