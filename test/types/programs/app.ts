/** As people write an application on Fastify. Checked as `service.ts` is. */
import Fastify, { type FastifyInstance } from 'fastify';
import type { Redis } from 'ioredis';
import fastifyRedis from 'ioredis-coalesce/fastify';

export async function oneClient(url: string): Promise<FastifyInstance> {
  const app = Fastify();
  await app.register(fastifyRedis, { url, maxRetriesPerRequest: 1, coalesce: { shareReads: true } });
  app.get<{ Params: { id: string } }>('/users/:id', (request) => app.redis.hgetall(`user:${request.params.id}`));
  app.get('/stats', async (request) => request.server.redis.coalescer.stats().batches);
  return app;
}

export async function clientsByName(app: FastifyInstance, url: string): Promise<void> {
  await app.register(fastifyRedis, { url, namespace: 'sessions' });
  await app.register(fastifyRedis, { nodes: [{ host: '10.0.0.1', port: 6379 }], namespace: 'catalog' });
  const sessions: Redis | undefined = app.redis.sessions;
  const stored: string | null | undefined = await sessions?.get('session:1');
  app.get('/session', async () => ({ stored, batches: app.redis.sessions?.coalescer.stats().batches }));
}

/** A plugin of one's own finds the client that was registered. */
export async function leaderboard(app: FastifyInstance): Promise<void> {
  app.get('/top', async () => {
    const ids: string[] = await app.redis.zrevrange('sales', 0, 9);
    return Promise.all(ids.map((id) => app.redis.hget(`product:${id}`, 'name')));
  });
}
