import { keysOf } from '../variants/data.js';
import { LatencyRecorder } from '../variants/latency.js';
import type { Measurements } from '../variants/protocol.js';
import { atRate } from '../variants/rate.js';
import { numberOption, type TaskContext } from './context.js';

/** A service at a fixed rate: `perSecond` requests of `commands` concurrent GETs each, for `seconds`. */
export async function requests(context: TaskContext): Promise<Measurements> {
  const commands = numberOption(context, 'commands');
  const keys = keysOf(context.prefix, { keys: 1000, valueBytes: 100 }, 'get');
  const latency = new LatencyRecorder();
  const until = performance.now() + numberOption(context, 'seconds') * 1000;
  const request = (index: number) =>
    Promise.all(
      Array.from({ length: commands }, (_, offset) => context.client.get(keys[(index + offset) % keys.length]!)),
    );
  await atRate(request, numberOption(context, 'perSecond'), keys.length, until, latency);
  const { p50, p99 } = latency.summary();
  return { averageMs: latency.mean() / 1000, p50Ms: p50 / 1000, p99Ms: p99 / 1000 };
}
