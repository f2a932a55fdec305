import { LatencyRecorder } from '../arms/latency.js';
import { atRate } from '../arms/rate.js';
import type { Figures } from '../workload.js';
import { numberOption } from './context.js';
import type { TaskContext } from './index.js';

const PER_SECOND = 1000;

/** What somebody else notices: one GET each millisecond, timed from when it was due. Option: `seconds`. */
export async function bystander(context: TaskContext): Promise<Figures> {
  const latency = new LatencyRecorder();
  const key = `${context.prefix}bystander`;
  const until = performance.now() + numberOption(context, 'seconds') * 1000;
  const commands = await atRate(() => context.client.get(key), PER_SECOND, 1, until, latency);
  const { p50, p99 } = latency.summary();
  return { commands, p50Ms: p50 / 1000, p99Ms: p99 / 1000 };
}
