import type { Redis } from 'ioredis';
import { DETAILS, HASHES, keyOf, sampleProducts } from './product.js';

const STEP = 1000;

export interface SeedOptions {
  prefix: string;
  products: number;
  /** Let the keys expire by themselves after this many seconds. */
  expireAfter?: number;
}

export function seedKeys({ prefix, products }: Pick<SeedOptions, 'prefix' | 'products'>): string[] {
  return sampleProducts(products).flatMap(({ id }) => DETAILS.map((detail) => keyOf(prefix, detail, id)));
}

/** Writes the products' hashes. No pipeline: a coalesced client batches the writes anyway. */
export async function seed(redis: Redis, { prefix, products, expireAfter }: SeedOptions): Promise<void> {
  const writes: Promise<unknown>[] = [];
  for (const product of sampleProducts(products)) {
    for (const detail of DETAILS) {
      const key = keyOf(prefix, detail, product.id);
      writes.push(redis.hset(key, HASHES[detail].field, product[detail] ?? ''));
      if (expireAfter !== undefined) {
        writes.push(redis.expire(key, expireAfter));
      }
    }
  }
  await Promise.all(writes);
}

/** Seeds only if the last product is missing; a service may call this at every start. */
export async function seedIfMissing(redis: Redis, options: SeedOptions): Promise<boolean> {
  const missing = (await redis.exists(keyOf(options.prefix, 'promo', String(options.products)))) === 0;
  if (missing) {
    await seed(redis, options);
  }
  return missing;
}

export async function removeSeed(redis: Redis, options: Pick<SeedOptions, 'prefix' | 'products'>): Promise<void> {
  const keys = seedKeys(options);
  for (let first = 0; first < keys.length; first += STEP) {
    await redis.unlink(keys.slice(first, first + STEP));
  }
}
