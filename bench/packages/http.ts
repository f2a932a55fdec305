import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import cookie from '@fastify/cookie';
import rateLimit from '@fastify/rate-limit';
import session from '@fastify/session';
import { type FastifyInstance, fastify } from 'fastify';
import { Load } from '../http/load-process.js';
import { Stopwatch } from '../variants/timing.js';
import type { OpenPackage, Package, PackageContext } from './package.js';

const SESSIONS = 50;
const SESSION_SECONDS = 600;
const SECRET = 'a secret of the benchmark, of more than 32 letters';

declare module 'fastify' {
  interface Session {
    views?: number;
  }
}

export const fastifyRateLimit: OpenPackage = async (context) => {
  const app = fastify();
  await app.register(rateLimit, {
    max: Number.MAX_SAFE_INTEGER,
    timeWindow: '1 minute',
    redis: await context.open(),
    nameSpace: `${context.prefix}rate-limit:`,
  });
  app.get('/', async () => 'through');
  return serve(app, context, async () => [{}]);
};

/** Sessions in Redis, as such stores do it: one GET and one SET with an expiry per request. */
export const fastifySession: OpenPackage = async (context) => {
  const app = fastify();
  const redis = await context.open();
  const key = (id: string) => `${context.prefix}session:${id}`;
  const store = {
    get(id: string, done: (error: unknown, found?: session.FastifySessionObject | null) => void) {
      redis.get(key(id)).then((text) => done(null, text === null ? null : JSON.parse(text)), done);
    },
    set(id: string, kept: object, done: (error?: unknown) => void) {
      redis.set(key(id), JSON.stringify(kept), 'EX', SESSION_SECONDS).then(() => done(), done);
    },
    destroy(id: string, done: (error?: unknown) => void) {
      redis.del(key(id)).then(() => done(), done);
    },
  };
  await app.register(cookie);
  await app.register(session, { secret: SECRET, store, cookie: { secure: false } });
  app.get('/', async (request) => {
    request.session.views = (request.session.views ?? 0) + 1;
    return { views: request.session.views };
  });
  return serve(app, context, (origin) =>
    Promise.all(
      Array.from({ length: SESSIONS }, async () => {
        const cookies = (await fetch(origin)).headers.getSetCookie();
        return { cookie: cookies.map((text) => text.split(';', 1)[0]).join('; ') };
      }),
    ),
  );
};

/** The app in this process, its load in another, which is not part of the CPU that is counted. */
async function serve(
  app: FastifyInstance,
  { concurrency }: PackageContext,
  visitors: (origin: string) => Promise<Record<string, string>[]>,
): Promise<Package> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  const origin = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  // Beside this file once both are bundled.
  const load = new Load(fileURLToPath(new URL('load.mjs', import.meta.url)));
  const requests = (await visitors(origin)).map((headers) => ({ path: '/', headers }));
  return {
    async run(seconds) {
      const watch = new Stopwatch();
      const { requests: done, ...measured } = await load.run({
        ...{ origin, requests, connections: concurrency, limit: { seconds } },
      });
      const { cpu } = watch.figures(done);
      const { seconds: took, ...latencies } = measured;
      return { commands: done, throughput: done / took, cpu, ...latencies };
    },
    async close() {
      await load.stop();
      await app.close();
    },
  };
}
