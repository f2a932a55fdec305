import type { Redis } from 'ioredis';
import { HASHES, keyOf } from './product.js';

export interface BestSeller {
  rank: number;
  productId: string;
  name: string;
  sold: number;
}

/** The best-selling products: a sorted set that checkouts increment. */
export class Leaderboard {
  readonly key: string;
  readonly #redis: Redis;
  readonly #prefix: string;

  constructor(redis: Redis, prefix: string) {
    this.key = `${prefix}sales`;
    this.#redis = redis;
    this.#prefix = prefix;
  }

  async top(count: number): Promise<BestSeller[]> {
    const flat = await this.#redis.zrevrange(this.key, 0, count - 1, 'WITHSCORES');
    const ids = flat.filter((_, index) => index % 2 === 0);
    const names = await Promise.all(
      ids.map((id) => this.#redis.hget(keyOf(this.#prefix, 'name', id), HASHES.name.field)),
    );
    return ids.map((productId, index) => ({
      rank: index + 1,
      productId,
      name: names[index] ?? '(no longer sold)',
      sold: Number(flat[2 * index + 1]),
    }));
  }
}
