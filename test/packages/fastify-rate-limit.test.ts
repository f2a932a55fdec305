import rateLimit from '@fastify/rate-limit';
import { type FastifyInstance, fastify } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Client } from '../helpers/hosts.js';
import { ready } from '../helpers/hosts.js';
import { uniquePrefix } from '../helpers/redis.js';
import { CLIENT_KINDS, expectTookPart } from './helpers/clients.js';

const MAX = 20;
const REQUESTS = 60;

describe.each(CLIENT_KINDS)('@fastify/rate-limit with $name', (kind) => {
  it('lets exactly `max` requests of a burst through, each with a different remainder', async () => {
    const client = await ready(kind.create());
    const app = await createApp(client);
    const replies = await burst(app, '/', '10.0.0.1');
    const passed = replies.filter(({ statusCode }) => statusCode === 200);
    const refused = replies.filter(({ statusCode }) => statusCode === 429);
    expect([passed.length, refused.length]).toEqual([MAX, REQUESTS - MAX]);
    const remaining = passed.map(({ headers }) => Number(headers['x-ratelimit-remaining']));
    expect(remaining.sort((a, b) => a - b)).toEqual(Array.from({ length: MAX }, (_, index) => index));
    for (const { headers } of refused) {
      expect(headers).toMatchObject({ 'x-ratelimit-limit': String(MAX), 'x-ratelimit-remaining': '0' });
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    }
    expectTookPart(kind, client, { batched: true, fast: true });
  });

  it('counts callers, and routes with their own limit, separately', async () => {
    const client = await ready(kind.create());
    const app = await createApp(client);
    const [first, second, route] = await Promise.all([
      burst(app, '/', '10.0.0.1'),
      burst(app, '/', '10.0.0.2'),
      burst(app, '/narrow', '10.0.0.1'),
    ]);
    const passed = [first, second, route].map(
      (replies) => replies.filter(({ statusCode }) => statusCode === 200).length,
    );
    expect(passed).toEqual([MAX, MAX, 3]);
    expectTookPart(kind, client, { batched: true, fast: true });
  });
});

async function createApp(redis: Client): Promise<FastifyInstance> {
  const app = fastify();
  onTestFinished(() => app.close());
  const nameSpace = uniquePrefix('fastify-rate-limit');
  await app.register(rateLimit, { max: MAX, timeWindow: '10 minutes', redis, nameSpace });
  app.get('/', async () => 'through');
  app.get('/narrow', { config: { rateLimit: { max: 3, timeWindow: '10 minutes' } } }, async () => 'through');
  return app;
}

function burst(app: FastifyInstance, url: string, remoteAddress: string) {
  return Promise.all(Array.from({ length: REQUESTS }, () => app.inject({ url, remoteAddress })));
}
