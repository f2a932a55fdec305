/**
 * Runs all patterns: `run.ts <url> <prefix> <folder with the compiled nest.js>`, with `IOREDIS_COALESCE=advise:json`.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { isMainThread, Worker } from 'node:worker_threads';
import Redis from 'ioredis-coalesce';
import { bullmq } from './bullmq.js';
import { onExpress } from './express.js';
import { fastify } from './fastify.js';
import { graphql } from './graphql.js';
import { type Given, RUNS } from './patterns.js';
import { threads } from './threads.js';

const [url = '', prefix = '', compiled = ''] = process.argv.slice(2);

async function seed(redis: Redis): Promise<void> {
  const batch = redis.pipeline();
  for (let run = 0; run < RUNS + 2; run += 1) {
    const user = `user:${run}`;
    batch.hset(prefix + user, 'name', `Ada the ${run}th`, 'town', 'London');
    batch.rpush(`${prefix}cart:${run}`, 'apples', 'pears');
    batch.zadd(`${prefix}scores:${run}`, 7_001, 'chess');
    batch.sadd(`${prefix}tags:${run}`, `label:red-${run}`, `label:blue-${run}`);
    batch.set(`${prefix}item:${run}`, `something-${run}`);
    batch.set(`${prefix}session:${run}`, user);
    batch.set(`${prefix}json:${run}`, JSON.stringify({ cart: `cart:${run}` }));
    batch.set(`${prefix}count:${run}`, 40 + run);
    batch.set(`${prefix}page:${run}`, (run % 4) + 3);
    batch.set(`${prefix}stock:${run}`, 300 + run);
    batch.set(`${prefix}role:${run}`, run % 2 ? 'admin' : 'reader');
    batch.hset(`${prefix}shop:${run}`, 'owner', user);
    batch.hset(`${prefix}post:${run}`, 'title', `Post no. ${run}`, 'author', user);
    batch.set(`${prefix}author-of:${run}`, `author-${run}`);
    batch.set(`${prefix}name-of:author-${run}`, 'Ada');
    if (run % 2) batch.set(`${prefix}cached:${run}`, run);
  }
  await batch.exec();
}

async function main(): Promise<void> {
  const given: Given = { redis: new Redis(url), other: new Redis(url), prefix };
  if (isMainThread) {
    await seed(given.redis);
    // Threads do not inherit the hooks of tsx.
    const code = `import('tsx/esm/api').then(({ register }) => register() && import('${import.meta.url}'))`;
    const worker = new Worker(code, { eval: true, argv: [url, prefix] });
    await new Promise((resolve) => worker.once('exit', resolve));
    await fastify(given);
    await onExpress(given);
    const { nest } = createRequire(import.meta.url)(join(compiled, 'nest.js')) as typeof import('./nest.js');
    await nest(given.redis, prefix);
    await bullmq(given, url);
    await graphql(given);
  } else await threads(given);
  given.redis.disconnect();
  given.other.disconnect();
}

await main();
