import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';

export interface Session {
  id: string;
  customer: string;
}

/** One key per session; it lives for `life` seconds after its last use. */
export class Sessions {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #life: number;

  constructor(redis: Redis, prefix: string, life: number) {
    this.#redis = redis;
    this.#prefix = prefix;
    this.#life = life;
  }

  async begin(customer: string): Promise<Session> {
    const id = randomBytes(16).toString('hex');
    await this.#redis.set(this.#key(id), JSON.stringify({ customer }), 'EX', this.#life);
    return { id, customer };
  }

  async find(id: string): Promise<Session | undefined> {
    const [text] = await Promise.all([this.#redis.get(this.#key(id)), this.#redis.expire(this.#key(id), this.#life)]);
    if (text === null) {
      return undefined;
    }
    const { customer } = JSON.parse(text) as { customer: string };
    return { id, customer };
  }

  async end(id: string): Promise<void> {
    await this.#redis.del(this.#key(id));
  }

  #key(id: string): string {
    return `${this.#prefix}session:${id}`;
  }
}
