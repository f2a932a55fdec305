import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Redis } from 'ioredis';
import { readConfig } from './config.js';
import { DETAILS, HASHES, keyOf, sampleProducts } from './product.js';
import { connectRedis } from './redis.js';

export interface SeedOptions {
  prefix: string;
  products: number;
  /** Let the keys expire by themselves after this many seconds. */
  expireAfter?: number;
}

export function seedKeys({ prefix, products }: Pick<SeedOptions, 'prefix' | 'products'>): string[] {
  return sampleProducts(products).flatMap(({ id }) => DETAILS.map((detail) => keyOf(prefix, detail, id)));
}

/** Writes the products' hashes. No pipeline: a coalesced client makes one of it all the same. */
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

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const redis = await connectRedis(config);
  try {
    await seed(redis, config);
    console.log(`${config.products} products written as ${seedKeys(config).length} hashes under "${config.prefix}"`);
  } finally {
    await redis.quit();
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
