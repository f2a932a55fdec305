/**
 * What a service holds, and answers, while Redis is stopped (SIGSTOP) for 20 seconds under load: plain ioredis, ioredis
 * with `commandTimeout`, and `maxPending`. `npx tsx bench/stall.ts` prints a table and writes bench/stall.json.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { coalesce } from '../src/coalesce.js';
import { startRedis } from '../tools/redis-server.js';

const CALLS_PER_SECOND = 5_000;
const STOPPED_SECONDS = Number(process.env.STOPPED_SECONDS ?? 20);
const TIMEOUT_MS = 500;
const MAX_PENDING = 5_000;
const MIB = 2 ** 20;

const WAYS = ['plain ioredis', 'commandTimeout: 500', 'maxPending: 5000', 'both'] as const;
type Way = (typeof WAYS)[number];

interface Result {
  readonly way: Way;
  /** Beyond what it had before the stop. */
  readonly mostMemoryMiB: number;
  readonly answered: number;
  readonly failed: Record<string, number>;
  /** From the call to its error or value, of calls made while Redis was stopped. */
  readonly medianWaitMs: number;
  readonly longestWaitMs: number;
  /** From SIGCONT to the first call that is answered within a tenth of a second. */
  readonly recoveredAfterMs: number;
}

/** The process that is measured. Its parent stops Redis, and tells. */
async function measure(way: Way, url: string): Promise<void> {
  const timed = way === 'commandTimeout: 500' || way === 'both';
  const redis = new Redis(url, timed ? { commandTimeout: TIMEOUT_MS } : {});
  if (way === 'maxPending: 5000' || way === 'both') coalesce(redis, { maxPending: MAX_PENDING });
  await redis.ping();
  const failed: Record<string, number> = {};
  const waits: number[] = [];
  let answered = 0;
  let calls = 0;
  let stopped = false;
  let wentOnAt = 0;
  let recoveredAfterMs = Number.NaN;
  const call = async (duringStop: boolean) => {
    const startedAt = performance.now();
    calls += 1;
    try {
      await redis.set(`key:${calls % 1_000}`, `${calls}`.padEnd(1_024, 'x'));
      answered += 1;
      const endedAt = performance.now();
      if (wentOnAt > 0 && Number.isNaN(recoveredAfterMs) && endedAt - startedAt < 100)
        recoveredAfterMs = endedAt - wentOnAt;
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      const name = code ?? message;
      failed[name] = (failed[name] ?? 0) + 1;
    }
    if (duringStop) waits.push(performance.now() - startedAt);
  };
  let load = true;
  const tick = async () => {
    while (load) {
      for (let count = 0; count < CALLS_PER_SECOND / 100; count += 1) void call(stopped);
      await sleep(10);
    }
  };
  const loading = tick();
  await sleep(1_000);
  const memory = () => process.memoryUsage().rss;
  const before = memory();
  let most = before;
  const watching = setInterval(() => {
    most = Math.max(most, memory());
  }, 100);
  stopped = true;
  process.send?.('stop');
  await sleep(STOPPED_SECONDS * 1_000);
  stopped = false;
  process.send?.('go');
  wentOnAt = performance.now();
  await sleep(5_000);
  load = false;
  await loading;
  await sleep(2_000);
  clearInterval(watching);
  waits.sort((a, b) => a - b);
  const result: Result = {
    way,
    mostMemoryMiB: Math.round((most - before) / MIB),
    answered,
    failed,
    medianWaitMs: Math.round(waits[waits.length >> 1] ?? 0),
    longestWaitMs: Math.round(waits.at(-1) ?? 0),
    recoveredAfterMs: Math.round(recoveredAfterMs),
  };
  process.send?.(result);
  redis.disconnect();
}

async function main(): Promise<void> {
  const results: Result[] = [];
  for (const way of WAYS) {
    const server = await startRedis();
    const child = fork(fileURLToPath(import.meta.url), [way, server.url], { execArgv: process.execArgv });
    child.on('message', (message) => {
      if (message === 'stop') process.kill(server.pid, 'SIGSTOP');
      else if (message === 'go') process.kill(server.pid, 'SIGCONT');
      else results.push(message as Result);
    });
    await once(child, 'exit');
    await server.stop();
  }
  const settings = { node: process.version, callsPerSecond: CALLS_PER_SECOND, stoppedSeconds: STOPPED_SECONDS };
  writeFileSync(new URL('stall.json', import.meta.url), `${JSON.stringify({ settings, results }, null, 2)}\n`);
  console.table(results.map(({ failed, ...rest }) => ({ ...rest, failed: JSON.stringify(failed) })));
}

const [, , way, url] = process.argv;
if (way !== undefined && url !== undefined) await measure(way as Way, url);
else await main();
