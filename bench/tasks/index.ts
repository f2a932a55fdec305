/** What experiments have a client process do: each a function that returns its figures. */

import type { Measurements } from '../variants/protocol.js';
import { bystander } from './bystander.js';
import { cascade } from './cascade.js';
import type { Task, TaskContext } from './context.js';
import { floods } from './floods.js';
import { hotKey } from './hot-key.js';
import { manyClients } from './many-clients.js';
import { pings } from './pings.js';
import { consume, consumeReliably, idleConsumer, produce, work } from './queue.js';
import { requests } from './requests.js';
import { scripts } from './scripts.js';

const TASKS: Readonly<Record<string, Task>> = {
  bystander,
  cascade,
  consume,
  consumeReliably,
  floods,
  hotKey,
  idleConsumer,
  manyClients,
  pings,
  produce,
  requests,
  scripts,
  work,
};

export function runTask(name: string, context: TaskContext): Promise<Measurements> {
  const task = TASKS[name];
  if (task === undefined) throw new Error(`no task "${name}"; the tasks are ${Object.keys(TASKS).join(', ')}`);
  return task(context);
}
