import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify';
import type { Redis } from 'ioredis';
import { DEFAULT_PREFIX, DEFAULT_PRODUCTS } from './config.js';
import { handleErrors } from './errors.js';
import { livePage } from './live/page.js';
import { createMetrics } from './metrics.js';
import { healthRoutes } from './routes/health.js';
import { readingRoutes } from './routes/reading.js';
import { shopRoutes } from './routes/shop.js';

export interface AppOptions {
  /** Any ioredis client. The routes neither know nor care whether it coalesces. */
  redis: Redis;
  logger?: NonNullable<FastifyServerOptions['logger']>;
  /** What every key of the shop begins with. @default 'shop:' */
  prefix?: string;
  /** How many products there are. @default 1000 */
  products?: number;
  /** Requests per client and minute. @default 600 */
  rateLimit?: number;
  /** In seconds. @default 1800 */
  sessionLife?: number;
  /** Whether `/` serves the live page, which opens connections of its own to `redisUrl`. @default false */
  livePage?: boolean;
  redisUrl?: string;
}

export function buildApp(options: AppOptions): FastifyInstance {
  const { redis, prefix = DEFAULT_PREFIX, products = DEFAULT_PRODUCTS } = options;
  const app = Fastify({ logger: options.logger ?? false });
  const metrics = createMetrics(redis);
  handleErrors(app, redis);

  app.register(healthRoutes, { redis, metrics });
  // Fastify takes `prefix` for the routes' own.
  const keyPrefix = prefix;
  app.register(readingRoutes, { redis, keyPrefix, products });
  app.register(shopRoutes, {
    redis,
    keyPrefix,
    metrics,
    rateLimit: options.rateLimit ?? 600,
    sessionLife: options.sessionLife ?? 1800,
  });
  if (options.livePage && options.redisUrl !== undefined) {
    app.register(livePage, { redisUrl: options.redisUrl, keyPrefix, products });
  }
  return app;
}
