import { type Processor, Queue, QueueEvents, Worker, type WorkerOptions } from 'bullmq';
import { onTestFinished } from 'vitest';
import type { Client } from '../../helpers/hosts.js';
import { uniquePrefix } from '../../helpers/redis.js';
import { type ClientKind, recordDuplicates } from './clients.js';

/** A queue whose workers and events are all on one client that was handed to BullMQ, and on duplicates of it. */
export interface TestQueue {
  readonly client: Client;
  /** What BullMQ made of the client: workers block on one of their own. */
  readonly duplicates: readonly Client[];
  readonly queue: Queue;
  /** Ready to hear of jobs. */
  readonly events: QueueEvents;
  /** Starts a worker. Like all else here it is closed when the running test ends. */
  work(processor: Processor, options?: Partial<WorkerOptions>): Worker;
}

export async function createQueue(kind: ClientKind): Promise<TestQueue> {
  const client = kind.create({ maxRetriesPerRequest: null });
  const duplicates = recordDuplicates(client);
  const name = uniquePrefix('bullmq').replaceAll(':', '-');
  const queue = new Queue(name, { connection: client });
  // Each job that is waited for listens.
  queue.setMaxListeners(0);
  const events = new QueueEvents(name, { connection: client });
  onTestFinished(async () => {
    await events.close();
    await queue.close();
  });
  await events.waitUntilReady();
  const work: TestQueue['work'] = (processor, options = {}) => {
    const worker = new Worker(name, processor, { connection: client, ...options });
    onTestFinished(() => worker.close(true));
    return worker;
  };
  return { client, duplicates, queue, events, work };
}
