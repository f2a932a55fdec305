import fastifyRedis from '@fastify/redis';
import { type FastifyInstance, fastify } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../helpers/hosts.js';
import { uniquePrefix } from '../helpers/redis.js';
import { CLIENT_KINDS, expectTookPart } from './helpers/clients.js';

const prefix = uniquePrefix('fastify-redis');

describe.each(CLIENT_KINDS)('@fastify/redis with $name', (kind) => {
  it('serves concurrent requests that await Redis one key at a time', async () => {
    const client = kind.create();
    const app = createApp();
    await app.register(fastifyRedis, { client });
    expect(app.redis).toBe(client);
    app.put<{ Params: { id: string } }>('/users/:id', async ({ params: { id } }) => {
      await app.redis.hset(`${prefix}${kind.name}:${id}`, { id, name: `User ${id} ☕` });
      return app.redis.rpush(`${prefix}${kind.name}:log`, id);
    });
    app.get<{ Params: { id: string } }>('/users/:id', async ({ params: { id } }) => {
      const [user, missing] = await Promise.all([
        app.redis.hgetall(`${prefix}${kind.name}:${id}`),
        app.redis.get(`${prefix}${kind.name}:missing`),
      ]);
      return { user, missing };
    });

    const ids = Array.from({ length: 50 }, (_, index) => String(index));
    const lengths = await Promise.all(ids.map((id) => app.inject({ method: 'PUT', url: `/users/${id}` })));
    expect(lengths.map((reply) => reply.json<number>()).sort((a, b) => a - b)).toEqual(
      ids.map((_, index) => index + 1),
    );
    const users = await Promise.all(ids.map((id) => app.inject(`/users/${id}`)));
    expect(users.map((reply) => reply.json<unknown>())).toEqual(
      ids.map((id) => ({ user: { id, name: `User ${id} ☕` }, missing: null })),
    );
    expectTookPart(kind, client, { batched: true, fast: true });
  });

  it('answers a command that Redis refuses with that error', async () => {
    const client = kind.create();
    const app = createApp();
    await app.register(fastifyRedis, { client });
    app.get('/wrong', async () => {
      await app.redis.set(`${prefix}${kind.name}:text`, 'text');
      return app.redis.incr(`${prefix}${kind.name}:text`);
    });
    const reply = await app.inject('/wrong');
    expect(reply.statusCode).toBe(500);
    expect(reply.json()).toMatchObject({ message: 'ERR value is not an integer or out of range' });
    expectTookPart(kind, client, { batched: false, fast: true });
  });

  it('separates clients by namespace, and quits only the one with closeClient', async () => {
    const closed = kind.create();
    const kept = kind.create();
    const app = createApp();
    await app.register(fastifyRedis, { client: closed, namespace: 'closed', closeClient: true });
    await app.register(fastifyRedis, { client: kept, namespace: 'kept' });
    expect(app.redis.closed).toBe(closed);
    expect(app.redis.kept).toBe(kept);

    const write = app.redis.closed!.set(`${prefix}${kind.name}:last`, 'written');
    await app.close();
    expect(await write).toBe('OK');
    await until(() => closed.status === 'end', 'the namespace’s client ends with the app', 15_000);
    expect(kept.status).toBe('ready');
    expect(await kept.get(`${prefix}${kind.name}:last`)).toBe('written');
    expectTookPart(kind, kept, { batched: false, fast: true });
  });
});

function createApp(): FastifyInstance {
  const app = fastify();
  onTestFinished(() => app.close());
  return app;
}
