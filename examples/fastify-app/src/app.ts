import { STATUS_CODES } from 'node:http';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyServerOptions } from 'fastify';
import type { Redis } from 'ioredis';
import { Catalog } from './catalog.js';
import { DEFAULT_PREFIX, DEFAULT_PRODUCTS } from './config.js';
import { DETAILS, ProductNotFound, type ProductPage, sampleProducts } from './product.js';

export interface AppOptions {
  /** Any ioredis client. The routes neither know nor care whether it coalesces. */
  redis: Redis;
  logger?: NonNullable<FastifyServerOptions['logger']>;
  /** What the keys of the products begin with. @default 'shop:' */
  prefix?: string;
  /** How many products the route without Redis holds in memory. @default 1000 */
  products?: number;
}

interface ById {
  Params: { id: string };
}

const nullableText = { type: 'string', nullable: true } as const;
const failure = {
  type: 'object',
  properties: { statusCode: { type: 'integer' }, error: { type: 'string' }, message: { type: 'string' } },
} as const;

const productRoute = {
  schema: {
    params: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'string', pattern: '^[0-9]{1,9}$' } },
    },
    response: {
      200: {
        type: 'object',
        required: ['id', 'name'],
        properties: {
          id: { type: 'string' },
          ...Object.fromEntries(DETAILS.map((detail) => [detail, nullableText])),
          name: { type: 'string' },
        },
      },
      '4xx': failure,
      '5xx': failure,
    },
  },
} as const;

export function buildApp({ redis, logger, prefix, products }: AppOptions): FastifyInstance {
  const app = Fastify({ logger: logger ?? false });
  const catalog = new Catalog(redis, prefix ?? DEFAULT_PREFIX);
  const inMemory = new Map(sampleProducts(products ?? DEFAULT_PRODUCTS).map((product) => [product.id, product]));

  app.get<ById>('/sequential/:id', productRoute, async ({ params }) => catalog.readInSequence(params.id));
  app.get<ById>('/parallel/:id', productRoute, async ({ params }) => catalog.readInParallel(params.id));
  app.get<ById>('/pipeline/:id', productRoute, async ({ params }) => catalog.readInPipeline(params.id));
  app.get<ById>('/no-redis/:id', productRoute, async ({ params }): Promise<ProductPage> => {
    const product = inMemory.get(params.id);
    if (!product) {
      throw new ProductNotFound(params.id);
    }
    return product;
  });

  app.get('/health', { logLevel: 'warn' }, async (_request, reply) => {
    if (redis.status !== 'ready') {
      return reply.code(503).send({ status: 'unavailable', redis: redis.status });
    }
    await redis.ping();
    return { status: 'ok', redis: redis.status };
  });

  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const statusCode = statusOf(error, redis);
    if (statusCode >= 500) {
      request.log.error({ err: error }, 'request failed');
    }
    // What went wrong inside is for the log, not for the caller.
    const message = statusCode < 500 ? error.message : 'the product cannot be read right now';
    return reply.code(statusCode).send({ statusCode, error: STATUS_CODES[statusCode] ?? 'Error', message });
  });

  return app;
}

/** Redis being away is not a fault of this service: say 503, so that a load balancer tries elsewhere. */
function statusOf(error: FastifyError, redis: Redis): number {
  if (error.statusCode !== undefined) {
    return error.statusCode;
  }
  return redis.status === 'ready' ? 500 : 503;
}
