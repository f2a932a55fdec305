import type { Redis } from 'ioredis';
import { callers } from '../variants/timing.js';
import type { OpenPackage } from './package.js';

/** More than a cache of default size holds, so that what a flow reads is not in memory. */
const IDENTITIES = 40_000;
const LISTED = 10;
const WRITTEN_AT_ONCE = 500;

/** Requests of services that await one read after the other, each of something else than the last ones. */
interface Flow {
  write(pipeline: ReturnType<Redis['pipeline']>, id: number): void;
  run(redis: Redis, id: number): Promise<unknown>;
}

const flows = (prefix: string) =>
  ({
    /** A session, then five reads of its user. */
    user: {
      write(pipeline, id) {
        pipeline
          .set(`${prefix}session:s${id}`, id)
          .hset(`${prefix}user:${id}:profile`, { name: `name ${id}`, lang: 'en' });
        for (const kind of ['settings', 'cart', 'flags', 'plan']) pipeline.set(`${prefix}user:${id}:${kind}`, kind);
      },
      async run(redis, id) {
        const user = await redis.get(`${prefix}session:s${id}`);
        await redis.hgetall(`${prefix}user:${user}:profile`);
        for (const kind of ['settings', 'cart', 'flags', 'plan']) await redis.get(`${prefix}user:${user}:${kind}`);
      },
    },
    /** A list of ten, then each element by itself. */
    list: {
      write(pipeline, id) {
        pipeline.set(`${prefix}product:${id}`, `product ${id}`);
        pipeline.rpush(`${prefix}list:${Math.floor(id / LISTED)}`, id);
      },
      async run(redis, id) {
        const products = await redis.lrange(`${prefix}list:${id % (IDENTITIES / LISTED)}`, 0, -1);
        for (const product of products) await redis.get(`${prefix}product:${product}`);
      },
    },
    /** Two reads that have nothing to do with each other. */
    none: {
      write(pipeline, id) {
        pipeline.set(`${prefix}a:${id}`, 'a').set(`${prefix}b:${id}`, 'b');
      },
      async run(redis, id) {
        await redis.get(`${prefix}a:${id}`);
        // 7919 is a prime: all are read, in another order.
        await redis.get(`${prefix}b:${(id * 7919) % IDENTITIES}`);
      },
    },
  }) satisfies Record<string, Flow>;

const open =
  (name: keyof ReturnType<typeof flows>): OpenPackage =>
  async ({ open: openClient, prefix, concurrency }) => {
    const redis = await openClient();
    const flow: Flow = flows(prefix)[name];
    await redis.unlink(...Array.from({ length: IDENTITIES / LISTED }, (_, id) => `${prefix}list:${id}`));
    for (let id = 0; id < IDENTITIES; ) {
      const pipeline = redis.pipeline();
      for (const end = id + WRITTEN_AT_ONCE; id < end; id += 1) flow.write(pipeline, id);
      await pipeline.exec();
    }
    let next = 0;
    return {
      run: callers(concurrency, () => {
        next = (next + 1) % IDENTITIES;
        return flow.run(redis, next);
      }),
    };
  };

export const FLOWS = { 'flow: user': open('user'), 'flow: list': open('list'), 'flow: none': open('none') } as const;
