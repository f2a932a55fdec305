import { Queue, QueueEvents, Worker } from 'bullmq';
import Redis from 'ioredis-coalesce';
import { type Given, type Pattern, RUNS } from './patterns.js';

function patterns({ redis, prefix }: Given): Record<string, Pattern> {
  const key = (name: string, run: number) => `${prefix}${name}:${run}`;
  redis.defineCommand('takeTicket', { numberOfKeys: 1, lua: "return redis.call('incr', KEYS[1])" });
  const { takeTicket } = redis as never as { takeTicket(key: string): Promise<number> };
  return {
    async mail(run) {
      await redis.hgetall(key('user', run));
      // advice: together
      await redis.zrange(key('scores', run), '0', '-1');
    },
    async locked(run) {
      await redis.set(key('job-lock', run), run, 'EX', 30, 'NX');
      // advice: leave
      await redis.set(key('job-result', run), 'x');
      // advice: leave
      await redis.del(key('job-lock', run));
    },
    async order(run) {
      const id = await redis.incrby(`${prefix}orders:next`, 1_000);
      // advice: argument
      await redis.hset(`${prefix}order:${id}`, 'run', run);
    },
    async coldCache(run) {
      const cached = await redis.get(key('report', run));
      // advice: leave
      const rows = cached ?? (await redis.lrange(key('cart', run), 0, -1));
      // advice: argument
      await redis.set(key('report', run), String(rows));
    },
    async script(run) {
      await takeTicket.call(redis, `${prefix}tickets`);
      // advice: leave
      await redis.hgetall(key('user', run));
    },
    async doneBefore(run) {
      const isDone = await redis.sismember(`${prefix}done`, run % 8);
      if (isDone) return;
      // advice: if
      await redis.hset(key('work', run), 'state', 'new');
      // advice: leave
      await redis.sadd(`${prefix}done`, run % 8);
    },
    async exported() {
      // advice: together
      for (let item = 0; item < 3; item += 1) await redis.lrange(key('cart', item), 0, -1);
    },
  };
}

export async function bullmq(given: Given, url: string): Promise<void> {
  const all = patterns(given);
  const connection = new Redis(url, { maxRetriesPerRequest: null });
  const name = given.prefix.replaceAll(':', '-');
  const queue = new Queue(name, { connection });
  const events = new QueueEvents(name, { connection });
  const worker = new Worker(name, async (job) => void (await all[job.name]?.(job.data.run)), { connection });
  await events.waitUntilReady();
  const runs = Array.from({ length: RUNS }, (_, run) => Object.keys(all).map((pattern) => ({ name: pattern, run })));
  const jobs = await queue.addBulk(runs.flat().map(({ name: pattern, run }) => ({ name: pattern, data: { run } })));
  await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
  await Promise.all([worker.close(), events.close(), queue.close()]);
  connection.disconnect();
}
