import { randomBytes } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import { callers, timed } from '../variants/timing.js';
import type { OpenPackage, Package, PackageContext } from './package.js';

const BULK = 100;
const FEW_JOBS = 200;
/** A second of work: a worker runs for as long as there are jobs, so that its start counts little. */
const JOBS_AT_ONE = 4400;
/** Beyond it, more at once is not so much faster. */
const MOST_AT_ONCE = 6;

async function openQueue({ open, prefix }: PackageContext) {
  const connection = await open();
  // What BullMQ asks of a client that its workers block on.
  connection.options.maxRetriesPerRequest = null;
  const options = { connection, prefix: prefix.replaceAll(':', '-'), skipVersionCheck: true };
  const name = randomBytes(4).toString('hex');
  const queue = new Queue(name, options);
  const close = async () => {
    await queue.obliterate({ force: true });
    await queue.close();
  };
  return { name, options, queue, close };
}

export const bullmqAdd: OpenPackage = async (context) => {
  const { queue, close } = await openQueue(context);
  const add = () => queue.add('job', { text: 'x'.repeat(100) }, { removeOnComplete: true });
  return { refill: () => queue.drain(), run: callers(context.concurrency, add), close };
};

/** Jobs that do nothing: as many as there are, however long that takes. Latency is from a job's start to its end. */
export const bullmqWorker: OpenPackage = async (context): Promise<Package> => {
  const { name, options, queue, close } = await openQueue(context);
  const { concurrency } = context;
  let waiting = 0;
  return {
    async refill(seconds) {
      const wanted = Math.max(FEW_JOBS, seconds * JOBS_AT_ONE * Math.min(concurrency, MOST_AT_ONCE));
      for (; waiting < wanted; waiting += BULK) {
        const job = { name: 'job', data: {}, opts: { removeOnComplete: true } };
        await queue.addBulk(new Array(BULK).fill(job));
      }
    },
    async run() {
      const jobs = waiting;
      waiting = 0;
      const started = new Map<string, number>();
      const handle = async ({ id = '' }: { id?: string }) => {
        started.set(id, performance.now());
      };
      const worker = new Worker(name, handle, { ...options, concurrency, autorun: false, skipStalledCheck: true });
      await worker.waitUntilReady();
      const measured = await timed(async (latency) => {
        await new Promise<void>((resolve, reject) => {
          let done = 0;
          worker.on('completed', ({ id = '' }) => {
            latency.record(started.get(id)!);
            done += 1;
            if (done === jobs) resolve();
          });
          worker.run().catch(reject);
        });
        return jobs;
      });
      await worker.close();
      return measured;
    },
    close,
  };
};
