import { LatencyRecorder } from '../variants/latency.js';
import type { Measurements } from '../variants/protocol.js';
import { atRate } from '../variants/rate.js';
import { numberOption, type TaskContext } from './context.js';

const PER_SECOND = 1000;

/** What another client notices: one GET each millisecond, timed from when it was due. Option: `seconds`. */
export async function bystander(context: TaskContext): Promise<Measurements> {
  const latency = new LatencyRecorder();
  const key = `${context.prefix}bystander`;
  const until = performance.now() + numberOption(context, 'seconds') * 1000;
  const commands = await atRate(() => context.client.get(key), PER_SECOND, 1, until, latency);
  const { p50, p99 } = latency.summary();
  return { commands, p50Ms: p50 / 1000, p99Ms: p99 / 1000 };
}
