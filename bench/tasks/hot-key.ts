import type { Figures } from '../workload.js';
import { loopsFor, numberOption, Stopwatch } from './context.js';
import type { TaskContext } from './index.js';

/** Everybody reads the same key: `loops` of sequential awaits, for `seconds`. */
export async function hotKey(context: TaskContext): Promise<Figures> {
  const key = `${context.prefix}hot`;
  await context.client.set(key, 'v'.repeat(100));
  const watch = new Stopwatch();
  const commands = await loopsFor(numberOption(context, 'loops'), numberOption(context, 'seconds'), () =>
    context.client.get(key),
  );
  return watch.figures(commands);
}
