import type { FastifyInstance } from 'fastify';
import type { Metrics } from '../metrics.js';

export async function healthRoutes(app: FastifyInstance, { metrics }: { metrics: Metrics }): Promise<void> {
  const { redis } = app;

  app.get('/health', { logLevel: 'warn' }, async (_request, reply) => {
    if (redis.status !== 'ready') {
      return reply.code(503).send({ status: 'unavailable', redis: redis.status });
    }
    await redis.ping();
    return { status: 'ok', redis: redis.status };
  });

  app.get('/metrics', { logLevel: 'warn' }, async (_request, reply) => {
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics());
  });
}
