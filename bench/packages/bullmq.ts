import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { Queue, Worker } from 'bullmq';
import { ioredisOf } from '../variants/operations.js';
import type { OpenPackage, Package, PackageContext } from './index.js';
import { callers, timed } from './loops.js';

const STOCK_PER_SECOND = 15_000;
const SMALLEST_STOCK = 200;
const BULK = 500;

async function openQueue({ open, prefix }: PackageContext) {
  const variant = await open();
  const connection = ioredisOf(variant.client);
  // What BullMQ asks of a client that its workers block on.
  connection.options.maxRetriesPerRequest = null;
  const options = { connection, prefix: prefix.replaceAll(':', '-'), skipVersionCheck: true };
  const name = randomBytes(4).toString('hex');
  const queue = new Queue(name, options);
  const close = async () => {
    await queue.obliterate({ force: true });
    await queue.close();
    variant.close();
  };
  return { name, options, queue, close };
}

export const bullmqAdd: OpenPackage = async (context) => {
  const { queue, close } = await openQueue(context);
  const run = callers(context.concurrency, () =>
    queue.add('job', { text: 'x'.repeat(100) }, { removeOnComplete: true }),
  );
  return {
    async run(seconds) {
      const measured = await run(seconds);
      await queue.drain();
      return measured;
    },
    close,
  };
};

/** Jobs that do nothing; time per job is from its start to its end, as its own timestamps have it in whole milliseconds. */
export const bullmqWorker: OpenPackage = async (context): Promise<Package> => {
  const { name, options, queue, close } = await openQueue(context);
  let stockPerSecond = STOCK_PER_SECOND / 10;
  return {
    async run(seconds) {
      const jobs = Math.max(SMALLEST_STOCK, Math.round(stockPerSecond * seconds));
      for (let added = 0; added < jobs; added += BULK) {
        const bulk = Array.from({ length: Math.min(BULK, jobs - added) }, () => ({
          name: 'job',
          data: {},
          opts: { removeOnComplete: true },
        }));
        await queue.addBulk(bulk);
      }
      const started = new Map<string, number>();
      const worker = new Worker(
        name,
        async (job) => {
          started.set(job.id!, performance.now());
        },
        { ...options, concurrency: context.concurrency, autorun: false, skipStalledCheck: true },
      );
      await worker.waitUntilReady();
      const measured = await timed(async (latency) => {
        const drained = once(worker, 'drained');
        let done = 0;
        const allDone = new Promise<void>((resolve) => {
          worker.on('completed', (job) => {
            latency.record(started.get(job.id!)!);
            done += 1;
            if (done === jobs) resolve();
          });
        });
        worker.run().catch(() => {});
        await Promise.race([allDone, drained.then(() => allDone)]);
        return done;
      });
      await worker.close();
      stockPerSecond = Math.min(STOCK_PER_SECOND, measured.perSecond ?? stockPerSecond);
      return measured;
    },
    close,
  };
};
