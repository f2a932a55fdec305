/**
 * What `maxPending` and the advisor cost: CPU per command of a process that issues GETs, 100 callers that each await
 * one after the other; and with the advisor, requests per second of a Fastify service at full load, of which a request
 * awaits seven commands in three round trips. In turns. `npx tsx bench/costs.ts` prints tables and writes
 * bench/costs.json.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import Fastify from 'fastify';
import { Redis } from 'ioredis';
import { coalesce } from '../src/coalesce.js';
import { startRedis } from '../tools/redis-server.js';

const CALLERS = 100;
const ROUNDS = 41;
const ROUND_MS = 300;

const WAYS = ['coalesced', 'coalesced, again', 'maxPending: 100000', 'IOREDIS_COALESCE=advise'] as const;
type Way = (typeof WAYS)[number];
const SERVICES = ['service', 'service, IOREDIS_COALESCE=advise'] as const;
const CONNECTIONS = 30;
const SERVICE_ROUNDS = 21;
const SERVICE_ROUND_S = 1;

/**
 * The process that is measured: a round at each message of its parent, answered with microseconds of CPU per command.
 */
async function measure(way: Way, url: string): Promise<void> {
  const redis = coalesce(new Redis(url), way === 'maxPending: 100000' ? { maxPending: 100_000 } : {});
  await redis.set('key', 'x'.repeat(100));
  process.on('message', async () => {
    const end = performance.now() + ROUND_MS;
    const { user, system } = process.cpuUsage();
    let commands = 0;
    const caller = async () => {
      for (; performance.now() < end; commands += 1) await redis.get('key');
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    const used = process.cpuUsage({ user, system });
    process.send?.((used.user + used.system) / commands);
  });
  process.send?.('ready');
}

/** The service that is measured. It says its port. */
async function serve(url: string): Promise<void> {
  const redis = coalesce(new Redis(url));
  await redis.hset('user', { name: 'Ada', town: 'London' });
  await redis.set('key', 'value');
  const app = Fastify();
  app.get('/', async () => {
    const session = await redis.get('key');
    const parts = await Promise.all([
      redis.hgetall('user'),
      redis.hget('user', 'name'),
      redis.smembers('none'),
      redis.get('key'),
      redis.get('none'),
    ]);
    await redis.set('seen', String(session), 'EX', 60);
    return parts;
  });
  process.send?.(await app.listen({ host: '127.0.0.1', port: 0 }));
}

function start(way: string, url: string) {
  const env = { ...process.env, IOREDIS_COALESCE: way.endsWith('advise') ? 'advise' : 'on' };
  return fork(fileURLToPath(import.meta.url), [way, url], { execArgv: process.execArgv, env });
}

/** Requests per second with the advisor, and without it, and the ratio of the two, round by round. */
async function measureServices(url: string) {
  const children = SERVICES.map((way) => start(way, url));
  const origins = await Promise.all(children.map(async (child) => (await once(child, 'message'))[0] as string));
  const rounds: number[][] = [[], []];
  for (let round = 0; round <= SERVICE_ROUNDS; round += 1) {
    for (const [index, origin] of origins.entries()) {
      const options = { url: origin, connections: CONNECTIONS, duration: SERVICE_ROUND_S };
      const { requests } = await autocannon(options);
      // The first one warms up.
      if (round > 0) rounds[index]?.push(requests.average);
    }
  }
  for (const child of children) child.kill('SIGKILL');
  const [without, advised] = rounds as [number[], number[]];
  return SERVICES.map((way, index) => ({
    way,
    requestsPerSecond: Math.round(median(rounds[index] as number[])),
    timesService: Number(
      median((index === 0 ? without : advised).map((rate, at) => rate / (without[at] as number))).toFixed(3),
    ),
  }));
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] as number;

async function main(): Promise<void> {
  const server = await startRedis();
  const children = await Promise.all(
    WAYS.map(async (way) => {
      const child = start(way, server.url);
      await once(child, 'message');
      return child;
    }),
  );
  const rounds = WAYS.map((): number[] => []);
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [index, child] of children.entries()) {
      child.send('go');
      const [cpuUs] = (await once(child, 'message')) as [number];
      // The first one warms up.
      if (round > 0) rounds[index]?.push(cpuUs);
    }
  }
  for (const child of children) child.kill('SIGKILL');
  const services = await measureServices(server.url);
  await server.stop();
  const ratios = (index: number) =>
    (rounds[index] as number[]).map((cpuUs, round) => cpuUs / (rounds[0]?.[round] ?? 0));
  const results = WAYS.map((way, index) => ({
    way,
    cpuUsPerCommand: Number(median(rounds[index] as number[]).toFixed(2)),
    timesCoalesced: Number(median(ratios(index)).toFixed(3)),
  }));
  const machine = `${cpus().length} × ${cpus()[0]?.model}`;
  const settings = { node: process.version, machine, callers: CALLERS, rounds: ROUNDS, roundMs: ROUND_MS };
  writeFileSync(
    new URL('costs.json', import.meta.url),
    `${JSON.stringify({ settings, results, services }, null, 2)}\n`,
  );
  console.table(results);
  console.table(services);
}

const [, , way, url] = process.argv;
if (way?.startsWith('service') && url !== undefined) await serve(url);
else if (way !== undefined && url !== undefined) await measure(way as Way, url);
else await main();
