import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { seed, seedKeys } from '../../examples/fastify-app/src/seed.js';

export const PRODUCTS = 500;

// Should the demo be killed so hard that it cannot clean up, the keys do not stay in somebody's server.
const EXPIRE_AFTER_S = 3600;
const UNLINK_STEP = 1000;

/** The products in Redis, under a prefix of this run's own, and what Redis says about its work. */
export class Shop {
  readonly prefix = `coalesce-demo:${randomBytes(4).toString('hex')}:`;
  readonly #redis: Redis;
  #keys: string[] = [];

  static async open(redisUrl: string): Promise<Shop> {
    const redis = new Redis(redisUrl, { lazyConnect: true, retryStrategy: () => null });
    let failure: Error | undefined;
    redis.on('error', (error) => {
      failure ??= error;
    });
    try {
      await redis.connect();
    } catch (error) {
      const reason = failure ?? error;
      const { host } = new URL(redisUrl);
      throw new Error(`Redis at ${host} is not reachable: ${reason instanceof Error ? reason.message : reason}`);
    }
    return new Shop(redis);
  }

  private constructor(redis: Redis) {
    this.#redis = redis;
  }

  async fill(): Promise<void> {
    const products = { prefix: this.prefix, products: PRODUCTS };
    // Known before the first is written: an interrupted run removes them too.
    this.#keys = seedKeys(products);
    await seed(this.#redis, { ...products, expireAfter: EXPIRE_AFTER_S });
  }

  /** User and system time of the server so far, in microseconds. */
  async cpuUs(): Promise<number> {
    const info = await this.#redis.info('cpu');
    return (numberIn(info, 'used_cpu_user') + numberIn(info, 'used_cpu_sys')) * 1e6;
  }

  async version(): Promise<string> {
    const info = await this.#redis.info('server');
    const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
    return valkey ? `Valkey ${valkey}` : `Redis ${/^redis_version:(\S+)/m.exec(info)?.[1] ?? '(unknown version)'}`;
  }

  async close(): Promise<void> {
    try {
      for (let first = 0; first < this.#keys.length; first += UNLINK_STEP) {
        await this.#redis.unlink(this.#keys.slice(first, first + UNLINK_STEP));
      }
    } finally {
      this.#redis.disconnect();
    }
  }
}

function numberIn(info: string, name: string): number {
  const text = new RegExp(`^${name}:(.+)$`, 'm').exec(info)?.[1];
  const value = Number(text);
  if (text === undefined || !Number.isFinite(value)) {
    throw new Error(`expected a number for ${name} in INFO cpu, got ${text}`);
  }
  return value;
}
