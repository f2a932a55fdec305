import type { Measurements } from '../variants/protocol.js';
import { loopsFor, numberOption, Stopwatch, type TaskContext } from './context.js';

/** All callers read the same key: `loops` of sequential awaits, for `seconds`. */
export async function hotKey(context: TaskContext): Promise<Measurements> {
  const key = `${context.prefix}hot`;
  await context.client.set(key, 'v'.repeat(100));
  const watch = new Stopwatch();
  const commands = await loopsFor(numberOption(context, 'loops'), numberOption(context, 'seconds'), () =>
    context.client.get(key),
  );
  return watch.figures(commands);
}
