import fastifyRedis from '@fastify/redis';
import Fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify';
import fastifyCoalesce from 'ioredis-coalesce/fastify';
import { DEFAULT_PREFIX, DEFAULT_PRODUCTS } from './config.js';
import { handleErrors } from './errors.js';
import { livePage } from './live/page.js';
import { createMetrics } from './metrics.js';
import { CLIENT_OPTIONS, type ClientKind, settingOf } from './redis.js';
import { healthRoutes } from './routes/health.js';
import { readingRoutes } from './routes/reading.js';
import { shopRoutes } from './routes/shop.js';

export interface AppOptions {
  redisUrl: string;
  /** Kind of `app.redis`. @default 'coalesced' */
  client?: ClientKind;
  logger?: NonNullable<FastifyServerOptions['logger']>;
  /** The prefix of every key of the shop. @default 'shop:' */
  prefix?: string;
  /** Number of products. @default 1000 */
  products?: number;
  /** Requests per client and minute. @default 600 */
  rateLimit?: number;
  /** In seconds. @default 1800 */
  sessionLife?: number;
  /** Whether `/` serves the live page, which opens four more connections to `redisUrl`. @default false */
  livePage?: boolean;
}

/** Resolves when `app.redis` is connected; if Redis is not there, rejects after Fastify's timeout. */
export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const app = Fastify({ logger: options.logger ?? false });
  try {
    await addParts(app, options);
  } catch (error) {
    await app.close();
    throw error;
  }
  return app;
}

async function addParts(app: FastifyInstance, options: AppOptions): Promise<void> {
  const { redisUrl, prefix = DEFAULT_PREFIX, products = DEFAULT_PRODUCTS } = options;
  await registerRedis(app, options.client ?? 'coalesced', { redisUrl, prefix });
  const metrics = createMetrics(app.redis);
  handleErrors(app);

  app.register(healthRoutes, { metrics });
  // Fastify would apply `prefix` to the URLs.
  const keyPrefix = prefix;
  app.register(readingRoutes, { keyPrefix, products });
  app.register(shopRoutes, {
    keyPrefix,
    metrics,
    rateLimit: options.rateLimit ?? 600,
    sessionLife: options.sessionLife ?? 1800,
  });
  if (options.livePage) {
    app.register(livePage, { redisUrl, keyPrefix, products, metrics });
  }
}

async function registerRedis(
  app: FastifyInstance,
  kind: ClientKind,
  { redisUrl, prefix }: { redisUrl: string; prefix: string },
): Promise<void> {
  const client = { url: redisUrl, ...CLIENT_OPTIONS };
  const setting = settingOf(kind, prefix);
  if (setting === false) {
    await app.register(fastifyRedis, { ...client, enableAutoPipelining: kind === 'auto-pipelining' });
  } else {
    await app.register(fastifyCoalesce, { ...client, coalesce: setting });
  }
}
