/**
 * What `maxPending` and the advisor cost a command: CPU of the process that issues GETs, 100 callers that each await
 * one after the other, in turns. `npx tsx bench/costs.ts` prints a table and writes bench/costs.json.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { coalesce } from '../src/coalesce.js';
import { startRedis } from '../tools/redis-server.js';

const CALLERS = 100;
const ROUNDS = 41;
const ROUND_MS = 300;

const WAYS = ['coalesced', 'coalesced, again', 'maxPending: 100000', 'IOREDIS_COALESCE=advise'] as const;
type Way = (typeof WAYS)[number];

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

async function main(): Promise<void> {
  const server = await startRedis();
  const children = await Promise.all(
    WAYS.map(async (way) => {
      const env = { ...process.env, IOREDIS_COALESCE: way === 'IOREDIS_COALESCE=advise' ? 'advise' : 'on' };
      const child = fork(fileURLToPath(import.meta.url), [way, server.url], { execArgv: process.execArgv, env });
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
  await server.stop();
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] as number;
  const ratios = (index: number) =>
    (rounds[index] as number[]).map((cpuUs, round) => cpuUs / (rounds[0]?.[round] ?? 0));
  const results = WAYS.map((way, index) => ({
    way,
    cpuUsPerCommand: Number(median(rounds[index] as number[]).toFixed(2)),
    timesCoalesced: Number(median(ratios(index)).toFixed(3)),
  }));
  const machine = `${cpus().length} × ${cpus()[0]?.model}`;
  const settings = { node: process.version, machine, callers: CALLERS, rounds: ROUNDS, roundMs: ROUND_MS };
  writeFileSync(new URL('costs.json', import.meta.url), `${JSON.stringify({ settings, results }, null, 2)}\n`);
  console.table(results);
}

const [, , way, url] = process.argv;
if (way !== undefined && url !== undefined) await measure(way as Way, url);
else await main();
