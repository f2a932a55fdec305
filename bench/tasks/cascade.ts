import { Socket } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { spread } from '../suite/stats.js';
import type { BenchClient, OpenVariant } from '../variants/clients.js';
import { keysOf } from '../variants/data.js';
import type { Measurements } from '../variants/protocol.js';
import { WriteCounter } from '../variants/write-counter.js';
import type { TaskContext } from './context.js';

const connected: OpenVariant[] = [];

/**
 * `callers` GETs at once, over `connections`, `repetitions` times: when each caller gets its reply. With `counted`, what
 * passes between the process and the system instead, which costs too much to be timed.
 */
export async function cascade(
  context: TaskContext,
  {
    callers,
    connections,
    repetitions,
    counted = false,
  }: { callers: number; connections: number; repetitions: number; counted?: boolean },
): Promise<Measurements> {
  while (connected.length < connections - 1) connected.push(await context.open());
  const clients = [context.client, ...connected.slice(0, connections - 1).map(({ client }) => client)];
  const keys = keysOf(context.prefix, { keys: 1000, valueBytes: 100 }, 'get').slice(0, callers);
  if (counted) return count(clients, keys, repetitions);

  const delay = monitorEventLoopDelay({ resolution: 1 });
  const times = keys.map((): number[] => []);
  delay.enable();
  for (let repetition = 0; repetition < repetitions; repetition += 1) {
    for (const [caller, ms] of (await once(clients, keys)).entries()) times[caller]!.push(ms);
    // Each burst by itself: the next one starts with an idle server.
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  delay.disable();
  const medians = times.map((ofCaller) => spread(ofCaller)?.median ?? Number.NaN);
  return {
    medians,
    first: medians[0] ?? Number.NaN,
    firstP99: p99(times[0] ?? []),
    last: medians.at(-1) ?? Number.NaN,
    lastP99: p99(times.at(-1) ?? []),
    loopDelayMs: delay.percentile(99) / 1e6,
  };
}

function p99(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN;
}

async function once(clients: readonly BenchClient[], keys: readonly string[]): Promise<number[]> {
  const start = performance.now();
  return Promise.all(
    keys.map((key, caller) => clients[caller % clients.length]!.get(key).then(() => performance.now() - start)),
  );
}

async function count(
  clients: readonly BenchClient[],
  keys: readonly string[],
  repetitions: number,
): Promise<Measurements> {
  const writes = new WriteCounter();
  let reads = 0;
  const push = Socket.prototype.push;
  Socket.prototype.push = function (chunk, encoding) {
    if (chunk !== null) reads += 1;
    return push.call(this, chunk, encoding);
  };
  for (let repetition = 0; repetition < repetitions; repetition += 1) await once(clients, keys);
  Socket.prototype.push = push;
  return { writes: writes.writes / repetitions, reads: reads / repetitions };
}
