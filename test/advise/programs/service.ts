/**
 * A service with cascades, and a worker; it answers each request once, then ends. Run with `IOREDIS_COALESCE=advise`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, QueueEvents, Worker } from 'bullmq';
import Fastify from 'fastify';
import Redis from 'ioredis-coalesce';

const [url = '', prefix = ''] = process.argv.slice(2);
const redis = new Redis(url, { connectionName: 'service' });
const items = [1, 2, 3, 4, 5].flatMap((id) => [`${prefix}item:${id}`, 'something']);
await redis.mset(`${prefix}session`, 'u-4711', `${prefix}a`, 'a', ...items);
await redis.hset(`${prefix}user`, 'name', 'Ada');
const feeds = redis.pipeline();
for (const id of [1, 2]) {
  const posts = ['a', 'b', 'c'].map((name) => `post-${id}-${name}`);
  feeds.rpush(`${prefix}feed:${id}`, ...posts);
  for (const post of posts) feeds.set(`${prefix}post:${post}`, 'text');
}
await feeds.exec();

async function loadItems(ids: number[]): Promise<unknown[]> {
  const items: unknown[] = [];
  for (const id of ids) items.push(await redis.get(`${prefix}item:${id}`));
  return items;
}

const app = Fastify();
app.addHook('preHandler', async () => {});
app.get('/loop', () => loadItems([1, 2, 3, 4, 5]));
app.get('/pair', async function userAndCart() {
  const user = await redis.hgetall(`${prefix}user`);
  return { user, cart: await redis.llen(`${prefix}cart`) };
});
app.get<{ Params: { id: string } }>('/feed/:id', async function feed({ params: { id } }) {
  const title = await redis.get(`${prefix}title:${id}`);
  const posts = await redis.lrange(`${prefix}feed:${id}`, 0, -1);
  const texts: unknown[] = [];
  for (const post of posts) texts.push(await redis.get(`${prefix}post:${post}`));
  return { title, texts };
});
app.get('/cached', async function cached() {
  const found = await redis.get(`${prefix}cached`);
  if (found === null) await redis.set(`${prefix}cached`, '1');
  return { found };
});
app.get('/dependent', async () => {
  const user = await redis.get(`${prefix}session`);
  return redis.hgetall(`${prefix}${user}`);
});
app.get('/together', () => Promise.all([redis.strlen(`${prefix}a`), redis.exists(`${prefix}a`)]));
for (const path of ['/loop', '/pair', '/dependent', '/together', '/cached', '/cached', '/loop', '/feed/1', '/feed/2']) {
  // Requests come on their own: none waits for another one.
  await sleep(2);
  const { statusCode } = await app.inject(path);
  if (statusCode !== 200) throw new Error(`${path}: ${statusCode}`);
}

const name = prefix.replaceAll(':', '-');
const connection = new Redis(url, { maxRetriesPerRequest: null });
const queue = new Queue(name, { connection });
const events = new QueueEvents(name, { connection });
const worker = new Worker(
  name,
  async () => {
    await redis.setnx(`${prefix}job`, 1);
    await redis.ttl(`${prefix}job`);
  },
  { connection },
);
await events.waitUntilReady();
const job = await queue.add('once', {});
await job.waitUntilFinished(events);
await Promise.all([worker.close(), events.close(), queue.close(), app.close()]);

if (process.argv[4] === 'signal') {
  process.kill(process.pid, 'SIGUSR2');
  await sleep(200);
  process.kill(process.pid, 'SIGKILL');
}
redis.disconnect();
connection.disconnect();
