import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import fastifyRedis from '@fastify/redis';
import serveStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';
import fastifyCoalesce from 'ioredis-coalesce/fastify';
import { isCoalesced, type Metrics } from '../metrics.js';
import { DETAILS, HASHES, keyOf, productPrefixes } from '../product.js';
import { CLIENT_OPTIONS } from '../redis.js';
import { Laboratory } from './laboratory.js';
import type { RunSettings } from './load-run.js';
import { assertLocal, originOf } from './loopback.js';
import * as schemas from './page-schemas.js';
import type { Variant } from './subject.js';

export interface LivePageOptions {
  redisUrl: string;
  keyPrefix: string;
  products: number;
  metrics: Metrics;
}

interface LoadRoute {
  Params: { variant: Variant; id: number };
  Querystring: { commands: number };
}

const CONTENT_SECURITY_POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'";

/** The page at `/`: a plain, a coalesced and a cached client side by side, measured in this very service. */
export async function livePage(
  app: FastifyInstance,
  { redisUrl, keyPrefix, products, metrics }: LivePageOptions,
): Promise<void> {
  const client = { url: redisUrl, ...CLIENT_OPTIONS };
  await app.register(fastifyRedis, { ...client, namespace: 'plain' });
  await app.register(fastifyCoalesce, {
    ...client,
    namespace: 'coalesced',
    // The page shows one write per turn beside one write per command.
    coalesce: { schedule: 'immediate' },
  });
  await app.register(fastifyCoalesce, {
    ...client,
    namespace: 'cached',
    coalesce: { schedule: 'immediate', cache: { prefixes: productPrefixes(keyPrefix) } },
  });
  await app.register(fastifyCoalesce, {
    ...client,
    namespace: 'fused',
    coalesce: { schedule: 'immediate', fuseReads: true },
  });
  const { plain, coalesced, cached, fused } = app.redis;
  if (!plain || !coalesced || !cached || !fused || !isCoalesced(cached)) {
    throw new Error('expected the plugins to have registered "plain", "coalesced", "cached" and "fused"');
  }
  metrics.collect('live page', coalesced);
  metrics.collect('live page, cached', cached);
  metrics.collect('live page, fused', fused);
  const laboratory = await Laboratory.open({
    plain,
    coalesced,
    cached,
    fused,
    observer: app.redis,
    redisUrl,
    prefix: keyPrefix,
  });
  // Open event streams would keep the server from closing.
  app.addHook('preClose', async () => laboratory.stop());

  await app.register(serveStatic, {
    root: fileURLToPath(new URL('../../public/', import.meta.url)),
    index: 'index.html',
    cacheControl: false,
    setHeaders: (reply) => {
      reply.setHeader('content-security-policy', CONTENT_SECURITY_POLICY);
      reply.setHeader('x-content-type-options', 'nosniff');
    },
  });
  await app.register(serveStatic, {
    root: dirname(fileURLToPath(import.meta.resolve('uplot'))),
    prefix: '/uplot/',
    decorateReply: false,
    logLevel: 'warn',
  });

  app.get('/live/events', { logLevel: 'warn' }, (_request, reply) => {
    reply.hijack();
    laboratory.feed.add(reply.raw);
  });

  // The load requests this: the given number of HGETs, all at once, on the given client.
  app.get<LoadRoute>('/live/load/:variant/:id', schemas.LOAD, async ({ params, query }) => {
    const subject = laboratory.subjects[params.variant];
    const values = await Promise.all(
      Array.from({ length: query.commands }, (_, index) => {
        const detail = DETAILS[index % DETAILS.length]!;
        const product = 1 + ((params.id + Math.floor(index / DETAILS.length)) % products);
        return subject.hget(keyOf(keyPrefix, detail, String(product)), HASHES[detail].field);
      }),
    );
    return { values };
  });

  app.post<{ Body: RunSettings }>('/live/run', schemas.RUN, async (request, reply) => {
    assertLocal(request);
    laboratory.startRun(request.body, originOf(app));
    return reply.code(202).send({ started: true });
  });
  app.delete('/live/run', async (request, reply) => {
    assertLocal(request);
    laboratory.stopRun();
    return reply.code(204).send();
  });
  app.post('/live/cascade', async (request) => {
    assertLocal(request);
    return laboratory.cascade();
  });
  app.post('/live/request', async (request, reply) => {
    assertLocal(request);
    // It takes seconds, and a connection that becomes idle while the service closes delays closing.
    reply.header('connection', 'close');
    return laboratory.request();
  });
}
