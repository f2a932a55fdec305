import cookie from '@fastify/cookie';
import rateLimit from '@fastify/rate-limit';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Carts } from '../cart.js';
import { Catalog } from '../catalog.js';
import { RequestError } from '../errors.js';
import { Leaderboard } from '../leaderboard.js';
import type { Metrics } from '../metrics.js';
import { type Session, Sessions } from '../sessions.js';
import { type ById, PRODUCT_ROUTE } from './product-schema.js';
import * as schemas from './shop-schemas.js';

const COOKIE = 'session';

export interface ShopOptions {
  keyPrefix: string;
  metrics: Metrics;
  rateLimit: number;
  sessionLife: number;
}

/** The shop itself: product pages, sessions, the cart and the best-sellers; rate limited and metered. */
export async function shopRoutes(app: FastifyInstance, options: ShopOptions): Promise<void> {
  const { redis } = app;
  const { keyPrefix, metrics, sessionLife } = options;
  const catalog = new Catalog(redis, keyPrefix);
  const sessions = new Sessions(redis, keyPrefix, sessionLife);
  const carts = new Carts(redis, keyPrefix, sessionLife);
  const leaderboard = new Leaderboard(redis, keyPrefix);

  await app.register(cookie);
  await app.register(rateLimit, {
    redis,
    nameSpace: `${keyPrefix}limit:`,
    max: options.rateLimit,
    timeWindow: '1 minute',
    // Without Redis, the routes themselves answer 503; the limiter does not have to.
    skipOnError: true,
    errorResponseBuilder: (_request, { max, after }) =>
      new RequestError(429, `expected at most ${max} requests a minute, try again in ${after}`),
  });
  app.addHook('onResponse', async (request, reply) => {
    const labels = { method: request.method, route: request.routeOptions.url ?? 'none', status: reply.statusCode };
    metrics.requestSeconds.observe(labels, reply.elapsedTime / 1000);
  });

  const sessionOf = async (request: FastifyRequest): Promise<Session> => {
    const id = request.cookies[COOKIE];
    const session = id === undefined ? undefined : await sessions.find(id);
    if (!session) {
      throw new RequestError(401, 'expected a session: POST /sessions first');
    }
    return session;
  };

  app.get<ById>('/products/:id', PRODUCT_ROUTE, async ({ params }) => catalog.readInParallel(params.id));

  app.post<{ Body: { customer: string } }>('/sessions', schemas.BEGIN_SESSION, async (request, reply) => {
    const { id, customer } = await sessions.begin(request.body.customer);
    reply.setCookie(COOKIE, id, { path: '/', httpOnly: true, sameSite: 'lax', maxAge: sessionLife });
    return reply.code(201).send({ customer });
  });
  app.get('/sessions/current', schemas.SESSION, async (request) => {
    const { customer } = await sessionOf(request);
    return { customer };
  });
  app.delete('/sessions/current', schemas.NO_CONTENT, async (request, reply) => {
    await sessions.end((await sessionOf(request)).id);
    return reply.clearCookie(COOKIE, { path: '/' }).code(204).send();
  });

  app.get('/cart', schemas.CART, async (request) => {
    return { lines: await carts.read((await sessionOf(request)).id) };
  });
  app.put<ById & { Body: { quantity: number } }>('/cart/:id', schemas.PUT_IN_CART, async (request, reply) => {
    const session = await sessionOf(request);
    await carts.put(session.id, request.params.id, request.body.quantity);
    return reply.code(204).send();
  });
  app.delete<ById>('/cart/:id', schemas.TAKE_FROM_CART, async (request, reply) => {
    const session = await sessionOf(request);
    await carts.remove(session.id, request.params.id);
    return reply.code(204).send();
  });
  app.post('/cart/checkout', schemas.CHECK_OUT, async (request) => {
    const session = await sessionOf(request);
    return { ordered: await carts.checkOut(session.id, leaderboard.key) };
  });

  app.get<{ Querystring: { top: number } }>('/leaderboard', schemas.LEADERBOARD, async ({ query }) => {
    return { bestSellers: await leaderboard.top(query.top) };
  });
}
