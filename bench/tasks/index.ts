/** What experiments have a client process do: each a function that returns its figures. */

import type { OpenArm } from '../arms/clients.js';
import type { ClientOptions, Figures } from '../workload.js';
import { bystander } from './bystander.js';
import { cascade } from './cascade.js';
import { floods } from './floods.js';
import { hotKey } from './hot-key.js';
import { httpLoad } from './http-load.js';
import { manyClients } from './many-clients.js';
import { pings } from './pings.js';
import { consume, consumeReliably, idleConsumer, produce, work } from './queue.js';
import { requests } from './requests.js';
import { scripts } from './scripts.js';

export interface TaskContext {
  readonly client: OpenArm['client'];
  /** One more client of the same kind; the task closes it. */
  open(options?: ClientOptions): Promise<OpenArm>;
  readonly url: string;
  readonly prefix: string;
  readonly options: Readonly<Record<string, unknown>>;
}

export type Task = (context: TaskContext) => Promise<Figures>;

const TASKS: Readonly<Record<string, Task>> = {
  bystander,
  cascade,
  consume,
  consumeReliably,
  floods,
  hotKey,
  httpLoad,
  idleConsumer,
  manyClients,
  pings,
  produce,
  requests,
  scripts,
  work,
};

export function runTask(name: string, context: TaskContext): Promise<Figures> {
  const task = TASKS[name];
  if (task === undefined) throw new Error(`no task "${name}"; the tasks are ${Object.keys(TASKS).join(', ')}`);
  return task(context);
}
