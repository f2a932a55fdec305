/** Loads by one process, and what they come to. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { type Dataset, keysOf } from '../variants/data.js';
import { ioredisOf } from '../variants/operations.js';
import type { Measurements } from '../variants/protocol.js';
import { atRate, LatencyRecorder, loopsFor, Stopwatch } from '../variants/timing.js';
import { type TaskContext, withClients } from './context.js';

const LUA = "return redis.call('INCR', KEYS[1])";

interface WithScript extends Redis {
  benchScript(key: string): Promise<number>;
}

/** `clients` clients in one process, with `depth` loops of sequential GETs each. */
export function loops(
  context: TaskContext,
  { clients, depth, data, seconds }: { clients: number; depth: number; data: Dataset; seconds: number },
): Promise<Measurements> {
  const keys = keysOf(context.prefix, data, 'get');
  return withClients(context, clients, async (all) => {
    const watch = new Stopwatch();
    let next = 0;
    const commands = await loopsFor(clients * depth, seconds, (loop) => {
      next = next + 1 === keys.length ? 0 : next + 1;
      return all[loop % clients]!.get(keys[next]!);
    });
    return watch.figures(commands);
  });
}

/** Bursts of `size` GETs, at least one, for about `seconds`, with `pauseMs` between them. */
export async function floods(
  { client, prefix }: TaskContext,
  { size, data, seconds, pauseMs }: { size: number; data: Dataset; seconds: number; pauseMs: number },
): Promise<Measurements> {
  const keys = keysOf(prefix, data, 'get');
  const watch = new Stopwatch();
  const bursts = await loopsFor(1, seconds, async () => {
    const replies = await Promise.all(
      Array.from({ length: size }, (_, index) => client.get(keys[index % keys.length]!)),
    );
    if (replies.includes(null)) throw new Error('expected a value for every key of the burst, got null');
    await sleep(pauseMs);
  });
  return watch.figures(bursts * size);
}

/** At a fixed rate, `perSecond` requests of `commands` concurrent GETs each, timed from when they were due. */
export async function fixedRate(
  { client, prefix }: TaskContext,
  { commands, data, perSecond, seconds }: { commands: number; data: Dataset; perSecond: number; seconds: number },
): Promise<Measurements> {
  const keys = keysOf(prefix, data, 'get');
  const latency = new LatencyRecorder();
  const request = (index: number) =>
    Promise.all(Array.from({ length: commands }, (_, offset) => client.get(keys[(index + offset) % keys.length]!)));
  await atRate(request, perSecond, keys.length, seconds, latency);
  const { p50, p99 } = latency.summary();
  return { averageMs: latency.mean() / 1000, p50Ms: p50 / 1000, p99Ms: p99 / 1000 };
}

/**
 * `count` PINGs, each awaited on its own: `in sequence`, each after the one before, or `at once`. What takes too long in
 * sequence is broken off after `seconds`; the figures are of what was done.
 */
export async function pings(
  { client }: TaskContext,
  { way, count, seconds }: { way: string; count: number; seconds: number },
): Promise<Measurements> {
  const redis = ioredisOf(client);
  const until = performance.now() + seconds * 1000;
  const watch = new Stopwatch();
  let done = 0;
  if (way === 'at once') {
    await Promise.all(Array.from({ length: count }, () => redis.ping()));
    done = count;
  }
  while (done === 0 || (done < count && performance.now() < until)) {
    await redis.ping();
    done += 1;
  }
  return watch.figures(done);
}

/** `count` calls of a script of `defineCommand` at once: EVALSHA each, and EVAL for those that find it not `loaded`. */
export async function scripts(
  { client, prefix }: TaskContext,
  { script, count }: { script: string; count: number },
): Promise<Measurements> {
  const redis = ioredisOf(client) as WithScript;
  if (!('benchScript' in redis)) (redis as Redis).defineCommand('benchScript', { numberOfKeys: 1, lua: LUA });
  await redis.script('FLUSH', 'SYNC');
  if (script === 'loaded') await redis.script('LOAD', LUA);
  const key = `${prefix}script`;
  await redis.unlink(key);
  const watch = new Stopwatch();
  await Promise.all(Array.from({ length: count }, () => redis.benchScript(key)));
  const figures = watch.figures(count);
  const counted = Number(await redis.get(key));
  if (counted !== count) throw new Error(`expected the script to have run ${count} times, it ran ${counted} times`);
  return figures;
}
