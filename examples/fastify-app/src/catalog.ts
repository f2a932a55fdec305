import type { Redis } from 'ioredis';
import { type Detail, HASHES, keyOf, ProductNotFound, type ProductPage } from './product.js';

/** Reads product pages from Redis: the same eight HGETs, written in the three ways that services use. */
export class Catalog {
  readonly #redis: Redis;
  readonly #prefix: string;

  constructor(redis: Redis, prefix: string) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** One awaited after the other. */
  async readInSequence(id: string): Promise<ProductPage> {
    const name = await this.#read(id, 'name');
    const price = await this.#read(id, 'price');
    const stock = await this.#read(id, 'stock');
    const seller = await this.#read(id, 'seller');
    const rating = await this.#read(id, 'rating');
    const shipping = await this.#read(id, 'shipping');
    const category = await this.#read(id, 'category');
    const promo = await this.#read(id, 'promo');
    return page(id, name, { price, stock, seller, rating, shipping, category, promo });
  }

  /** All at once. */
  async readInParallel(id: string): Promise<ProductPage> {
    const [name, price, stock, seller, rating, shipping, category, promo] = await Promise.all([
      this.#read(id, 'name'),
      this.#read(id, 'price'),
      this.#read(id, 'stock'),
      this.#read(id, 'seller'),
      this.#read(id, 'rating'),
      this.#read(id, 'shipping'),
      this.#read(id, 'category'),
      this.#read(id, 'promo'),
    ]);
    return page(id, name, { price, stock, seller, rating, shipping, category, promo });
  }

  /** All at once, in a pipeline written by hand. */
  async readInPipeline(id: string): Promise<ProductPage> {
    const results = await this.#redis
      .pipeline()
      .hget(this.#key(id, 'name'), HASHES.name.field)
      .hget(this.#key(id, 'price'), HASHES.price.field)
      .hget(this.#key(id, 'stock'), HASHES.stock.field)
      .hget(this.#key(id, 'seller'), HASHES.seller.field)
      .hget(this.#key(id, 'rating'), HASHES.rating.field)
      .hget(this.#key(id, 'shipping'), HASHES.shipping.field)
      .hget(this.#key(id, 'category'), HASHES.category.field)
      .hget(this.#key(id, 'promo'), HASHES.promo.field)
      .exec();
    const [
      name = null,
      price = null,
      stock = null,
      seller = null,
      rating = null,
      shipping = null,
      category = null,
      promo = null,
    ] = (results ?? []).map(unwrap);
    return page(id, name, { price, stock, seller, rating, shipping, category, promo });
  }

  #read(id: string, detail: Detail): Promise<string | null> {
    return this.#redis.hget(this.#key(id, detail), HASHES[detail].field);
  }

  #key(id: string, detail: Detail): string {
    return keyOf(this.#prefix, detail, id);
  }
}

function unwrap([error, value]: [error: Error | null, result: unknown]): string | null {
  if (error) {
    throw error;
  }
  return typeof value === 'string' ? value : null;
}

function page(id: string, name: string | null, details: Omit<ProductPage, 'id' | 'name'>): ProductPage {
  if (name === null) {
    throw new ProductNotFound(id);
  }
  return { id, name, ...details };
}
