import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import { connectRedis } from '../../examples/fastify-app/src/redis.js';
import { removeSeed, seed } from '../../examples/fastify-app/src/seed.js';
import { readServerCpuUs, readServerVersion } from '../../examples/fastify-app/src/server-info.js';

export const PRODUCTS = 500;

// Should the demo be killed so hard that it cannot clean up, the keys do not stay in somebody's server.
const EXPIRE_AFTER_S = 3600;

/** The products in Redis, under a prefix of this run's own, and what Redis says about its work. */
export class Shop {
  readonly prefix = `coalesce-demo:${randomBytes(4).toString('hex')}:`;
  readonly #redis: Redis;
  #filled = false;

  static async open(redisUrl: string): Promise<Shop> {
    return new Shop(await connectRedis({ redisUrl, coalesce: false }));
  }

  private constructor(redis: Redis) {
    this.#redis = redis;
    // What it means is told by the command that fails.
    redis.on('error', () => {});
  }

  async fill(): Promise<void> {
    // Known before the first is written: an interrupted run removes them too.
    this.#filled = true;
    await seed(this.#redis, { prefix: this.prefix, products: PRODUCTS, expireAfter: EXPIRE_AFTER_S });
  }

  /** User and system time of the server so far, in microseconds. */
  cpuUs(): Promise<number> {
    return readServerCpuUs(this.#redis);
  }

  version(): Promise<string> {
    return readServerVersion(this.#redis);
  }

  /** Removes what else was written under the prefix: sessions, carts, counters of a service that people used. */
  async removeOthers(): Promise<void> {
    for await (const keys of this.#redis.scanStream({ match: `${this.prefix}*`, count: 1000 })) {
      if (keys.length > 0) {
        await this.#redis.unlink(keys);
      }
    }
  }

  async close(): Promise<void> {
    try {
      if (this.#filled) {
        await removeSeed(this.#redis, { prefix: this.prefix, products: PRODUCTS });
      }
    } finally {
      this.#redis.disconnect();
    }
  }
}
