/** Checked by `tsc`, never run: what compiles and, by `@ts-expect-error`, what must not. */
import { fastify } from 'fastify';
import { Cluster, Redis } from 'ioredis';
import type { Coalesced, Coalescer, Redis as DropIn } from 'ioredis-coalesce';
import fastifyCoalesce, {
  type FastifyRedis,
  type FastifyRedisNamespacedInstance,
  type FastifyRedisPluginOptions,
  fastifyRedis,
} from 'ioredis-coalesce/fastify';
import { collectMetrics } from 'ioredis-coalesce/prometheus';
import { Redis as Redis5 } from 'ioredis5';
import { Redis as Valkey } from 'iovalkey';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._equal: Equal<A, B> extends true ? [] : ['types differ', A, B]): void {}

const app = fastify();

// The options of @fastify/redis, and ours.
app.register(fastifyCoalesce);
app.register(fastifyRedis, { url: 'redis://127.0.0.1', namespace: 'one', lazyConnect: true });
app.register(fastifyCoalesce, { host: '127.0.0.1', port: 6379, coalesce: { maxBatchSize: 5 } });
app.register(fastifyCoalesce, { client: new Redis(), closeClient: true, coalesce: {} });
app.register(fastifyCoalesce, { client: new Cluster([]), namespace: 'two' });
app.register(fastifyCoalesce, { client: new Redis5() });
app.register(fastifyCoalesce, { client: new Valkey() });
app.register(fastifyCoalesce, { nodes: [{ host: '127.0.0.1', port: 7000 }], scaleReads: 'slave' });
const options: FastifyRedisPluginOptions = { url: 'redis://127.0.0.1' };
app.register(fastifyCoalesce, options);
// @ts-expect-error: not an option
app.register(fastifyCoalesce, { urll: 'redis://127.0.0.1' });
// @ts-expect-error: not an option of `coalesce`
app.register(fastifyCoalesce, { coalesce: { maxBatch: 5 } });
// @ts-expect-error: not a client
app.register(fastifyCoalesce, { client: {} });
// @ts-expect-error: a client has its server already
app.register(fastifyCoalesce, { client: new Redis(), url: 'redis://127.0.0.1' });
// @ts-expect-error: a Cluster starts from its nodes
app.register(fastifyCoalesce, { nodes: [6379], url: 'redis://127.0.0.1' });

// The decoration: a client, and clients by namespace; each has its coalescer.
same<typeof app.redis, FastifyRedis>();
const { coalescer }: { coalescer: Coalescer } = app.redis;
same<ReturnType<typeof coalescer.stats>, ReturnType<typeof app.redis.coalescer.stats>>();
// @ts-expect-error: not a member
app.redis.coalescer.statistics();
same<Awaited<ReturnType<typeof app.redis.get>>, string | null>();
same<typeof app.redis.one, (Redis & Coalesced) | undefined>();
const namespaces: FastifyRedisNamespacedInstance = app.redis;
namespaces.two?.coalescer.stats();

// What takes a coalesced client, a plain one or one of the drop-in class takes `app.redis`, and clients by namespace.
collectMetrics(app.redis);
if (app.redis.one !== undefined) collectMetrics(app.redis.one);
const pong: Promise<'PONG'> = app.redis.coalescer.withOptions({ timeout: 500 }).ping();
const asDropIn: DropIn = app.redis;
const asPlain: Redis = app.redis;
const copyOfDropIn: DropIn = app.redis.duplicate({ coalesce: { shareReads: true } });

export { asDropIn, asPlain, copyOfDropIn, pong };
