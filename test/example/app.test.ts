import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildApp } from '../../examples/fastify-app/src/app.js';
import { readConfig } from '../../examples/fastify-app/src/config.js';
import { removeSeed, seed } from '../../examples/fastify-app/src/seed.js';
import { redisUrl, startServer, uniquePrefix } from '../helpers/redis.js';
import { share } from '../helpers/share.js';
import { ExampleService } from './service.js';

const README = new URL('../../README.md', import.meta.url);
const PRODUCTS = 5;
const TIMEOUT = 60_000;
const COALESCED = 'redis_coalesce_attached{client="shop"} 1';

type App = Awaited<ReturnType<typeof buildApp>>;

async function signIn(app: App): Promise<Record<string, string>> {
  const response = await app.inject({ method: 'POST', url: '/sessions', payload: { customer: 'Ada' } });
  expect(response.statusCode).toBe(201);
  const [cookie] = response.cookies as { name: string; value: string }[];
  return { [cookie!.name]: cookie!.value };
}

const CLIENTS = [
  ['plain', false],
  ['coalesced', true],
  ['auto-pipelining', false],
  ['cached', true],
  ['prefetch', true],
] as const;

// Of one kind or another each time; `npm start` has a coalesced one.
describe.each(share(CLIENTS, 2))('the shop on a client that is %s', (client, coalesced) => {
  let redis: Redis;
  let prefix: string;
  let app: App;

  /** Under keys of its own. */
  const openApp = (options: { prefix: string; rateLimit?: number }): Promise<App> =>
    buildApp({ redisUrl: redisUrl(), client, products: PRODUCTS, ...options });

  beforeEach(async () => {
    redis = new Redis(redisUrl());
    prefix = uniquePrefix('shop');
    await seed(redis, { prefix, products: PRODUCTS });
    app = await openApp({ prefix });
  });

  afterEach(async () => {
    await app.close();
    await removeSeed(redis, { prefix, products: PRODUCTS });
    redis.disconnect();
  });

  it('assembles a product page from its eight hashes', async () => {
    const response = await app.inject('/products/2');
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({
      id: '2',
      name: 'Stool no. 2',
      price: '12.02 EUR',
      stock: '14',
      seller: 'Field Supply',
      rating: '3.2',
      shipping: '3 to 5 working days',
      category: 'outdoor/camping',
      promo: '10% off until Sunday',
    });
  });

  it.each(['sequential', 'parallel', 'pipeline', 'no-redis'])('reads the same page at /%s', async (route) => {
    const expected = await app.inject('/products/3');
    const response = await app.inject(`/${route}/3`);
    expect(response.json()).toEqual(expected.json());
  });

  it('answers 404 for a product that does not exist, and 400 for anything but a product number', async () => {
    const missing = await app.inject('/products/99');
    expect(missing.statusCode).toBe(404);
    expect(missing.json()).toEqual({ statusCode: 404, error: 'Not Found', message: 'there is no product "99"' });
    expect((await app.inject('/products/kettle')).statusCode).toBe(400);
  });

  it('finds a session by its cookie until it is ended, and lets it expire', async () => {
    expect((await app.inject('/sessions/current')).statusCode).toBe(401);
    const cookies = await signIn(app);
    expect((await app.inject({ url: '/sessions/current', cookies })).json()).toEqual({ customer: 'Ada' });
    const life = await redis.ttl(`${prefix}session:${cookies.session}`);
    expect(life).toBeGreaterThan(0);
    expect(life).toBeLessThanOrEqual(1800);

    const ended = await app.inject({ method: 'DELETE', url: '/sessions/current', cookies });
    expect(ended.statusCode).toBe(204);
    expect((await app.inject({ url: '/sessions/current', cookies })).statusCode).toBe(401);
  });

  it('keeps a cart, and counts the products that are checked out as sold', async () => {
    const cookies = await signIn(app);
    const put = (id: number, quantity: number) =>
      app.inject({ method: 'PUT', url: `/cart/${id}`, cookies, payload: { quantity } });
    expect((await put(1, 2)).statusCode).toBe(204);
    expect((await put(3, 7)).statusCode).toBe(204);
    expect((await put(4, 1)).statusCode).toBe(204);
    expect((await put(99, 1)).statusCode).toBe(404);
    expect((await put(1, 100)).statusCode).toBe(400);
    expect((await app.inject({ method: 'DELETE', url: '/cart/4', cookies })).statusCode).toBe(204);

    expect((await app.inject({ url: '/cart', cookies })).json()).toEqual({
      lines: [
        { productId: '1', name: 'Lantern no. 1', price: '11.01 EUR', quantity: 2 },
        { productId: '3', name: 'Notebook no. 3', price: '13.03 EUR', quantity: 7 },
      ],
    });
    const ordered = await app.inject({ method: 'POST', url: '/cart/checkout', cookies });
    expect(ordered.json()).toEqual({ ordered: 9 });
    expect((await app.inject({ url: '/cart', cookies })).json()).toEqual({ lines: [] });
    expect((await app.inject('/leaderboard?top=1')).json()).toEqual({
      bestSellers: [{ rank: 1, productId: '3', name: 'Notebook no. 3', sold: 7 }],
    });
  });

  it('refuses requests beyond its limit per minute, and says so', async () => {
    const limited = await openApp({ prefix: `${prefix}limited:`, rateLimit: 2 });
    try {
      const answers = [];
      for (let request = 0; request < 3; request += 1) {
        answers.push(await limited.inject('/leaderboard'));
      }
      expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 429]);
      expect(answers[2]!.json<{ message: string }>().message).toBe(
        'expected at most 2 requests a minute, try again in 1 minute',
      );
    } finally {
      await limited.close();
    }
  });

  it('reports its health, and its counters at /metrics', async () => {
    expect((await app.inject('/health')).json()).toEqual({ status: 'ok', redis: 'ready' });
    await app.inject('/products/1');
    const metrics = await app.inject('/metrics');
    expect(metrics.headers['content-type']).toContain('text/plain');
    expect(metrics.body).toContain('\nredis_up 1\n');
    expect(metrics.body.includes(COALESCED)).toBe(coalesced);
    expect(metrics.body).toContain(
      'http_request_duration_seconds_count{method="GET",route="/products/:id",status="200"} 1',
    );
  });
});

it('while Redis is away: answers 503, and serves again when it is back', { timeout: TIMEOUT }, async () => {
  const first = await startServer();
  const app = await buildApp({ redisUrl: first.url, products: PRODUCTS });
  const { redis } = app;
  redis.on('error', () => {});
  let second: Awaited<ReturnType<typeof startServer>> | undefined;
  try {
    await seed(redis, { prefix: 'shop:', products: PRODUCTS });
    expect((await app.inject('/products/1')).statusCode).toBe(200);

    await first.stop();
    await expect.poll(() => redis.status, { timeout: TIMEOUT }).not.toBe('ready');
    expect((await app.inject('/health')).statusCode).toBe(503);
    const answer = await app.inject('/products/1');
    expect(answer.json()).toEqual({
      statusCode: 503,
      error: 'Service Unavailable',
      message: 'the shop cannot answer this right now',
    });
    expect((await app.inject('/metrics')).body).toContain('\nredis_up 0\n');

    second = await startServer({ port: first.port });
    await expect.poll(() => redis.status, { timeout: TIMEOUT }).toBe('ready');
    expect((await app.inject('/health')).statusCode).toBe(200);
  } finally {
    await app.close();
    await first.stop();
    await second?.stop();
  }
});

describe('the live page’s own routes', () => {
  let redis: Redis;
  let app: App;
  let origin: string;
  const prefix = uniquePrefix('live');

  beforeAll(async () => {
    redis = new Redis(redisUrl());
    await seed(redis, { prefix, products: PRODUCTS });
    app = await buildApp({ redisUrl: redisUrl(), prefix, products: PRODUCTS, livePage: true });
    origin = await app.listen({ host: '127.0.0.1', port: 0 });
  });

  afterAll(async () => {
    await app.close();
    await removeSeed(redis, { prefix, products: PRODUCTS });
    redis.disconnect();
  });

  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${origin}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });

  it('reads as many fields as requested, the same on all clients', async () => {
    const [plain, coalesced, cached] = await Promise.all(
      ['plain', 'coalesced', 'cached'].map(async (variant) => {
        const response = await fetch(`${origin}/live/load/${variant}/2?commands=10`);
        return (await response.json()) as { values: string[] };
      }),
    );
    expect(plain!.values).toHaveLength(10);
    expect(plain!.values[0]).toBe('Notebook no. 3');
    expect(coalesced).toEqual(plain);
    expect(cached).toEqual(plain);
  });

  it('measures a cascade of 200 callers, with a write per caller or one for all', async () => {
    const response = await fetch(`${origin}/live/cascade`, { method: 'POST' });
    const { bursts, redisCpuUs } = (await response.json()) as {
      bursts: Record<'plain' | 'coalesced', { askedMs: number[]; answeredMs: number[]; writes: number }>;
      redisCpuUs: Record<'plain' | 'coalesced' | 'fused', number>;
    };
    expect(Object.keys(redisCpuUs)).toEqual(['plain', 'coalesced', 'fused']);
    for (const cpu of Object.values(redisCpuUs)) expect(cpu).toBeGreaterThan(0);
    const metrics = await (await fetch(`${origin}/metrics`)).text();
    const [, fused] = /^redis_coalesce_fused_reads_total\{client="live page, fused"\} (\d+)$/m.exec(metrics) ?? [];
    // The reads of its first turn ask whether the server has MGET.
    expect(Number(fused)).toBeGreaterThan(9_000);
    for (const { askedMs, answeredMs } of Object.values(bursts)) {
      expect(askedMs).toHaveLength(200);
      expect(answeredMs).toHaveLength(200);
      expect(answeredMs.every((answered, caller) => answered > askedMs[caller]!)).toBe(true);
    }
    expect(bursts.plain.writes).toBe(200);
    // In parts that double, where Redis is near.
    expect(bursts.coalesced.writes).toBeLessThanOrEqual(3);
    expect(await redis.keys(`${prefix}cascade:*`)).toEqual([]);
  });

  it('measures a request of eight awaits at a distance, which prefetch learns', async () => {
    type Await = { askedMs: number; answeredMs: number; sent: boolean };
    const clients = ['plain', 'corked', 'coalesced', 'prefetch'] as const;
    const measure = async () => {
      const { requests } = (await (await post('/live/request', {})).json()) as { requests: Record<string, Await[]> };
      expect(Object.keys(requests)).toEqual(clients);
      for (const awaits of Object.values(requests)) {
        expect(awaits).toHaveLength(8);
        for (const [index, { askedMs, answeredMs, sent }] of awaits.entries()) {
          if (sent) expect(answeredMs - askedMs).toBeGreaterThanOrEqual(1);
          expect(askedMs).toBeGreaterThanOrEqual(awaits[index - 1]?.answeredMs ?? 0);
        }
      }
      return clients.map((client) => requests[client]!.filter(({ sent }) => sent).length);
    };
    // Prefetch rests after a second in which this process was busy.
    await expect.poll(measure, { timeout: TIMEOUT }).toEqual([8, 8, 8, 2]);
    expect(await redis.keys(`${prefix}request:*`)).toEqual([]);
  });

  it('measures one at a time, and ends that when it closes', async () => {
    const closing = await buildApp({ redisUrl: redisUrl(), prefix, products: PRODUCTS, livePage: true });
    const url = `${await closing.listen({ host: '127.0.0.1', port: 0 })}/live/request`;
    const statuses = [1, 2].map(async () => (await fetch(url, { method: 'POST' })).status);
    expect(await Promise.race(statuses)).toBe(409);
    await closing.close();
    expect((await Promise.all(statuses)).toSorted()).toEqual([409, 503]);
    expect(await redis.keys(`${prefix}request:*`)).toEqual([]);
  });

  it('allows one load run at a time, bounded, and the load can be stopped', { timeout: TIMEOUT }, async () => {
    const loaded = await buildApp({ redisUrl: redisUrl(), prefix, products: PRODUCTS, livePage: true });
    const url = await loaded.listen({ host: '127.0.0.1', port: 0 });
    const run = (method: string): Promise<Response> =>
      fetch(`${url}/live/run`, {
        method,
        ...(method === 'POST' ? { headers: { 'content-type': 'application/json' }, body: SETTINGS } : {}),
      });
    expect((await run('POST')).status).toBe(202);
    const second = await run('POST');
    expect(second.status).toBe(409);
    expect(await second.json()).toMatchObject({ message: 'a load run is under way: one at a time' });
    expect((await fetch(`${url}/live/cascade`, { method: 'POST' })).status).toBe(409);

    expect((await run('DELETE')).status).toBe(204);
    await expect.poll(async () => (await run('POST')).status, { timeout: TIMEOUT, interval: 100 }).toBe(202);
    await loaded.close();
  });

  it.each(['/live/run', '/live/cascade', '/live/request'])('refuses %s to another machine', async (url) => {
    const payload = JSON.parse(SETTINGS) as object;
    const response = await app.inject({ method: 'POST', url, payload, remoteAddress: '192.0.2.1' });
    expect(response.statusCode).toBe(403);
  });

  it('lets a dashboard see the load: it moves the counters of the page’s coalesced client at /metrics', async () => {
    const fastCommands = async (): Promise<number> => {
      const text = await (await fetch(`${origin}/metrics`)).text();
      const counter = /^redis_coalesce_commands_total\{path="fast",client="live page"\} (\d+)$/m;
      return Number(counter.exec(text)?.[1]);
    };
    const before = await fastCommands();
    expect(before).toBeGreaterThanOrEqual(0);
    await fetch(`${origin}/live/load/plain/1?commands=8`);
    expect(await fastCommands()).toBe(before);
    await fetch(`${origin}/live/load/coalesced/1?commands=8`);
    expect(await fastCommands()).toBe(before + 8);
  });

  it('answers what the cached client has read from memory, until it changes', async () => {
    const read = async (): Promise<string[]> => {
      const response = await fetch(`${origin}/live/load/cached/3?commands=8`);
      return ((await response.json()) as { values: string[] }).values;
    };
    const hits = async (): Promise<number> => {
      const text = await (await fetch(`${origin}/metrics`)).text();
      return Number(/^redis_coalesce_cache_hits_total\{client="live page, cached"\} (\d+)$/m.exec(text)?.[1]);
    };
    const first = await read();
    const before = await hits();
    expect(await read()).toEqual(first);
    expect((await hits()) - before).toBe(8);

    await redis.hset(`${prefix}product:4`, 'name', 'renamed');
    await expect.poll(async () => (await read())[0]).toBe('renamed');
  });

  it('refuses a run beyond its limits', async () => {
    const tooLong = await post('/live/run', { connections: 10, commands: 8, seconds: 11 });
    expect(tooLong.status).toBe(400);
    expect(await tooLong.json()).toMatchObject({ message: 'body/seconds must be <= 10' });
  });
});

describe('npm start', () => {
  let service: ExampleService | undefined;

  afterEach(() => service?.destroy());

  it('works by itself: starts a Redis, serves, and closes in order on SIGTERM', { timeout: TIMEOUT }, async () => {
    service = new ExampleService({ command: ['npm', 'start'] });
    const origin = await service.listening();
    expect(service.output).toContain('REDIS_URL is not set: started');
    expect(await (await fetch(`${origin}/health`)).json()).toEqual({ status: 'ok', redis: 'ready' });
    expect(await (await fetch(`${origin}/products/1000`)).json()).toMatchObject({ id: '1000', name: 'Flask no. 1000' });
    // An open page would keep a server from closing that does not end its event streams.
    const page = await fetch(`${origin}/live/events`);
    const events = page.text();

    await service.stop();
    expect(service.output).toContain('"msg":"SIGTERM: closing"');
    expect(service.output).toContain('"msg":"closed"');
    expect(await events).toContain('event: redis');
  });

  it('ends with one clear line when the Redis at REDIS_URL is not there', { timeout: TIMEOUT }, async () => {
    const server = await startServer();
    await server.stop();
    service = new ExampleService({ env: { REDIS_URL: server.url } });
    expect(await service.exited).toBe(1);
    expect(service.output.trim()).toBe(
      `Redis at 127.0.0.1:${server.port} is not reachable (connect ECONNREFUSED 127.0.0.1:${server.port})`,
    );
  });

  it('fills a Redis that comes back empty, and closes in order while it is away', { timeout: TIMEOUT }, async () => {
    const first = await startServer();
    service = new ExampleService({ env: { REDIS_URL: first.url, SEED_PRODUCTS: '5' } });
    const origin = await service.listening();
    await first.stop();
    const second = await startServer({ port: first.port });
    try {
      const name = async (): Promise<unknown> => (await fetch(`${origin}/products/5`)).json();
      await expect.poll(name, { timeout: 20_000 }).toMatchObject({ id: '5', name: 'Trowel no. 5' });
      await expect.poll(() => service?.output).toContain('Redis came back empty: 5 products written under');
    } finally {
      await second.stop();
    }
    await expect.poll(async () => (await fetch(`${origin}/health`)).status, { timeout: TIMEOUT }).toBe(503);
    expect(await service.stop()).toBe(0);
    expect(service.output).toContain('"msg":"closed"');
  });

  it('IOREDIS_COALESCE=advise prints what README shows', { timeout: TIMEOUT }, async () => {
    const prefix = uniquePrefix('advised');
    const shop = await buildApp({ redisUrl: redisUrl(), client: 'plain', prefix, products: PRODUCTS });
    await seed(shop.redis, { prefix, products: PRODUCTS });
    const cookies = await signIn(shop);
    await shop.inject({ method: 'PUT', url: '/cart/2', cookies, payload: { quantity: 2 } });
    await shop.close();

    const settings = { SEED_PREFIX: prefix, SEED_PRODUCTS: `${PRODUCTS}`, LIVE_PAGE: 'off' };
    service = new ExampleService({ env: { ...settings, REDIS_URL: redisUrl(), IOREDIS_COALESCE: 'advise' } });
    const origin = await service.listening();
    const cookie = Object.entries(cookies).map((one) => one.join('='))[0]!;
    for (let request = 0; request < 40; request += 1) await fetch(`${origin}/sequential/1`);
    for (let request = 0; request < 20; request += 1) await fetch(`${origin}/cart`, { headers: { cookie } });
    await service.stop();

    const report = (text: string) =>
      /^ioredis-coalesce: \d+ places wait.*\n(?: {2}.*\n)+/m.exec(text)?.[0] ?? 'no report';
    const withoutNumbers = (text: string) => report(text).replaceAll(/\d[\d,.]*/g, '#');
    expect(withoutNumbers(service.output), service.output).toBe(withoutNumbers(readFileSync(README, 'utf8')));
  });

  it('ends in the same way when a variable is invalid', () => {
    expect(() => readConfig({ REDIS_CLIENT: 'maybe' })).toThrow(
      'REDIS_CLIENT must be one of coalesced, cached, prefetch, plain, auto-pipelining, got "maybe"',
    );
  });
});

const SETTINGS = JSON.stringify({ connections: 5, commands: 2, seconds: 10 });
