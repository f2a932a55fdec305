/** What experiments have a client process do: each a function that returns its figures. */

import type { Measurements } from '../variants/protocol.js';
import { cascade } from './cascade.js';
import type { TaskContext } from './context.js';
import { fixedRate, floods, loops, pings, scripts } from './loads.js';
import { consume, idleConsumer, produce, work } from './queue.js';

const TASKS = { cascade, consume, fixedRate, floods, idleConsumer, loops, pings, produce, scripts, work };
export type Tasks = typeof TASKS;

export function runTask(name: keyof Tasks, context: TaskContext, options: object): Promise<Measurements> {
  return (TASKS[name] as (context: TaskContext, options: object) => Promise<Measurements>)(context, options);
}
