import type { Redis } from 'ioredis';
import { HASHES, keyOf, ProductNotFound } from './product.js';

export interface CartLine {
  productId: string;
  name: string;
  price: string | null;
  quantity: number;
}

/** A session's cart: one hash from product to quantity, with the lifetime of the session. */
export class Carts {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #life: number;

  constructor(redis: Redis, prefix: string, life: number) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#life = life;
  }

  async read(sessionId: string): Promise<CartLine[]> {
    const quantities = await this.#redis.hgetall(this.#key(sessionId));
    const lines = Object.entries(quantities).map(async ([productId, quantity]): Promise<CartLine> => {
      const [name, price] = await Promise.all([this.#detail(productId, 'name'), this.#detail(productId, 'price')]);
      return { productId, name: name ?? '(no longer sold)', price, quantity: Number(quantity) };
    });
    return Promise.all(lines);
  }

  async put(sessionId: string, productId: string, quantity: number): Promise<void> {
    if ((await this.#detail(productId, 'name')) === null) {
      throw new ProductNotFound(productId);
    }
    const key = this.#key(sessionId);
    await Promise.all([this.#redis.hset(key, productId, quantity), this.#redis.expire(key, this.#life)]);
  }

  async remove(sessionId: string, productId: string): Promise<void> {
    await this.#redis.hdel(this.#key(sessionId), productId);
  }

  /** Empties the cart and counts its contents as sold, both or neither. */
  async checkOut(sessionId: string, salesKey: string): Promise<number> {
    const quantities = Object.entries(await this.#redis.hgetall(this.#key(sessionId)));
    const transaction = this.#redis.multi();
    for (const [productId, quantity] of quantities) {
      transaction.zincrby(salesKey, Number(quantity), productId);
    }
    await transaction.del(this.#key(sessionId)).exec();
    return quantities.reduce((sum, [, quantity]) => sum + Number(quantity), 0);
  }

  #detail(productId: string, detail: 'name' | 'price'): Promise<string | null> {
    return this.#redis.hget(keyOf(this.#prefix, detail, productId), HASHES[detail].field);
  }

  #key(sessionId: string): string {
    return `${this.#prefix}cart:${sessionId}`;
  }
}
