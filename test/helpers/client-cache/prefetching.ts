import type { CacheOptions, CoalesceOptions } from 'ioredis-coalesce/coalesce';
import type { Client, CoalescedClient } from '../hosts.js';
import { cached } from './cached.js';

export const predictions = (client: CoalescedClient) => {
  const { predicted = 0, predictionsUsed = 0 } = client.coalescer.stats().cache ?? {};
  return { predicted, predictionsUsed };
};

/** A flow that a client has been seen to make: a read of `user:ID`, then four more of the same user. */
export class Flow {
  #next = 0;

  constructor(
    readonly client: CoalescedClient,
    /** Writes what is read; it may be the same client. */
    readonly writer: Client,
    readonly prefix: string,
  ) {}

  key(kind: string, id: string): string {
    return `${this.prefix}:${kind}:${id}`;
  }

  /** A user that nobody has read. */
  async newUser(): Promise<string> {
    this.#next += 1;
    const id = String(100_000 + this.#next);
    await this.writer.set(this.key('user', id), `user ${id}`);
    for (const kind of ['cart', 'flags', 'plan']) await this.writer.set(this.key(kind, id), `${kind} ${id}`);
    await this.writer.hset(this.key('profile', id), { name: `name ${id}`, mail: 'm' });
    return id;
  }

  async run(id: string): Promise<unknown[]> {
    const { client } = this;
    return [
      await client.get(this.key('user', id)),
      await client.hgetall(this.key('profile', id)),
      await client.get(this.key('cart', id)),
      await client.get(this.key('flags', id)),
      await client.get(this.key('plan', id)),
    ];
  }

  /** Runs it with new users until all of it is predicted. */
  async learn(): Promise<this> {
    for (let flow = 0; flow < 500; flow += 1) {
      const before = predictions(this.client).predictionsUsed;
      await this.run(await this.newUser());
      if (predictions(this.client).predictionsUsed === before + 4) return this;
    }
    throw new Error('expected four reads to be predicted after 500 flows');
  }

  /** A new user whose first read was made, so that the others are on their way, or there. */
  async begun(): Promise<string> {
    const id = await this.newUser();
    await this.client.get(this.key('user', id));
    return id;
  }
}

/** A client that predicts what follows a read of a user. */
export async function learned(
  url: string,
  writer: Client,
  prefix: string,
  cache: CacheOptions = {},
  options = {},
  coalesceOptions: CoalesceOptions = {},
): Promise<Flow> {
  const client = await cached(url, { ...cache, prefetch: true }, options, coalesceOptions);
  return new Flow(client, writer, prefix).learn();
}
