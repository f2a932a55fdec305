import { readFile } from 'node:fs/promises';
import type { FastifyInstance } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { buildApp as buildCoalesced } from './app/coalesced.js';
import { buildApp as buildPlain } from './app/plain.js';

type Answer = { readonly status: number; readonly body: unknown };

it('swapping @fastify/redis for ioredis-coalesce/fastify changes one line', async () => {
  const [plain, coalesced] = await Promise.all([linesOf('plain'), linesOf('coalesced')]);
  expect(plain.filter((line) => !coalesced.includes(line))).toEqual(["import fastifyRedis from '@fastify/redis';"]);
  expect(coalesced.filter((line) => !plain.includes(line))).toEqual([
    "import fastifyRedis from 'ioredis-coalesce/fastify';",
  ]);
});

it('an app with the swapped plugin answers every request as before', async () => {
  const plain = await answersOf(buildPlain);
  const coalesced = await answersOf(buildCoalesced);
  expect(coalesced.answers).toEqual(plain.answers);
  expect(plain.answers.map(({ status }) => status)).toContain(500);
  expect(plain.app.redis).not.toHaveProperty('coalescer');
  const { commands, batches, fastCommands } = coalesced.app.redis.coalescer.stats();
  expect(fastCommands).toBeGreaterThan(0);
  expect(batches).toBeLessThan(commands);
});

/** The same requests for every application, over keys of its own. */
async function answersOf(build: typeof buildPlain): Promise<{ app: FastifyInstance; answers: Answer[] }> {
  const app = build({ url: redisUrl(), keyPrefix: uniquePrefix('swap') });
  onTestFinished(() => app.close());
  const ids = Array.from({ length: 30 }, (_, index) => index);
  const answers: Answer[] = [];
  const all = async (requests: readonly Promise<Answer>[]) => answers.push(...(await Promise.all(requests)));

  await all(ids.map((id) => request(app, 'PUT', `/products/${id}`, { name: `Tea ${id} ☕`, price: id * 1.5 })));
  await all(ids.map((id) => request(app, 'GET', `/products/${id}`)));
  await all([request(app, 'GET', '/products/missing'), request(app, 'GET', '/products')]);
  await all(ids.map((id) => request(app, 'POST', `/carts/${id % 3}`, { product: String(id) })));
  await all([0, 1, 2].map((id) => request(app, 'GET', `/carts/${id}`)));
  await all([request(app, 'POST', '/products/1/broken')]);
  return { app, answers };
}

async function request(app: FastifyInstance, method: 'GET' | 'PUT' | 'POST', url: string, payload?: object) {
  const response = await app.inject({ method, url, ...(payload && { payload }) });
  return { status: response.statusCode, body: response.json<unknown>() };
}

async function linesOf(name: string): Promise<string[]> {
  return (await readFile(new URL(`app/${name}.ts`, import.meta.url), 'utf8')).split('\n');
}
