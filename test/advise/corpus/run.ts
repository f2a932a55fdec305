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
import { shapes } from './shapes.js';
import { threads } from './threads.js';

const [url = '', prefix = '', compiled = ''] = process.argv.slice(2);

const WORDS = ['apple', 'lemon', 'fig', 'plum', 'pear', 'cherry', 'quince', 'grape', 'melon'];
const NODES = [
  [0, 5],
  [1, 7],
  [2, 6],
  [5, 3],
  [6, 8],
  [7, 4],
  [3, 9],
] as const;
const TREE = { 1: [7, 3], 7: [2, 9], 3: [5, 4, 8], 2: [], 9: [], 5: [], 4: [6], 8: [], 6: [] };

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
    // Short identities, as a small service has them.
    batch.sadd(`${prefix}ids:${run}`, 1 + (run % 3), 4 + (run % 3), 7 + (run % 3));
    batch.rpush(`${prefix}list:${run}`, 1 + (run % 4), 5 + (run % 4));
    // The session's token happens to end with the product.
    batch.hset(`${prefix}basket:k3v9x${1 + (run % 4)}`, 1 + (run % 4), 2);
    batch.hset(`${prefix}account:${run}`, 'plan', 'abc'[run % 3] as string, 'level', (run % 4) + 1);
    batch.set(
      `${prefix}doc:${run}`,
      JSON.stringify({ next: 1 + ((run * 4) % 9), dark: run % 2 > 0, author: 'xyz'[run % 3] }),
    );
    batch.set(`${prefix}on:${run}`, '1');
    batch.set(`${prefix}variant:${run}`, 'ab'[run % 2] as string);
    batch.sadd(`${prefix}allowed`, run);
    if (run % 3) batch.set(`${prefix}language:${run}`, run % 2 ? 'de' : 'fr');
    batch.set(`${prefix}current:${run}`, 1 + (run % 5));
    batch.hset(`${prefix}shelf:${run}`, 'a', 'much', 'b', 'little', 'c', 'none');
  }
  for (const [index, word] of WORDS.entries()) batch.set(`${prefix}word:${index + 1}`, word);
  for (const [index, amount] of [3, 1, 4, 1, 5, 9, 2, 6].entries()) batch.set(`${prefix}amount:${index + 1}`, amount);
  for (const [node, next] of NODES) batch.set(`${prefix}node:${node}`, next);
  for (const [node, children] of Object.entries(TREE)) batch.set(`${prefix}tree:${node}`, JSON.stringify({ children }));
  for (let field = 0; field < 600; field += 1) batch.hset(`${prefix}large`, `field-${field}`, 'x');
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
    await shapes(given);
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
