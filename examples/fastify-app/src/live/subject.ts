import type { Socket } from 'node:net';
import type { Redis } from 'ioredis';

export const VARIANTS = ['plain', 'coalesced', 'cached'] as const;

export type Variant = (typeof VARIANTS)[number];

/** What a client did so far. */
export interface Usage {
  commands: number;
  /** To the operating system. */
  writes: number;
  /** Commands that were sent, by the size of their write: the key is the upper bound, a power of two. */
  commandsBySize: Record<number, number>;
}

type Write = (this: Socket, ...args: unknown[]) => unknown;
type Writer = Record<'_write' | '_writev', Write>;

/** One of the clients under comparison, with a meter on its socket, the same for all. */
export class Subject {
  readonly variant: Variant;
  readonly #redis: Redis;
  readonly #hits: () => number;
  readonly #usage: Usage = { commands: 0, writes: 0, commandsBySize: {} };
  #written = 0;

  /** For a client that is connected; `hits` counts the commands it answered from memory. */
  constructor(variant: Variant, redis: Redis, hits = () => 0) {
    this.variant = variant;
    this.#redis = redis;
    this.#hits = hits;
    const meter = (): void => this.#meter(redis.stream as unknown as Writer);
    meter();
    // Each connection has its own socket.
    redis.on('connect', meter);
  }

  get redis(): Redis {
    return this.#redis;
  }

  hget(key: string, field: string): Promise<string | null> {
    this.#usage.commands += 1;
    return this.#redis.hget(key, field);
  }

  get(key: string): Promise<string | null> {
    this.#usage.commands += 1;
    return this.#redis.get(key);
  }

  usage(): Usage {
    return { ...this.#usage, commandsBySize: { ...this.#usage.commandsBySize } };
  }

  /** Below any cork: `_write` and `_writev` are what Node hands to the operating system. */
  #meter(socket: Writer): void {
    for (const name of ['_write', '_writev'] as const) {
      const original = socket[name];
      const count = (): void => this.#count();
      socket[name] = function (...args) {
        count();
        return original.apply(this, args);
      };
    }
  }

  #count(): void {
    const usage = this.#usage;
    const sent = usage.commands - this.#hits();
    const size = sent - this.#written;
    if (size === 0) {
      // Not one of ours: the handshake, or the rest of a write that did not fit.
      return;
    }
    this.#written = sent;
    usage.writes += 1;
    const bound = 2 ** Math.ceil(Math.log2(size));
    usage.commandsBySize[bound] = (usage.commandsBySize[bound] ?? 0) + size;
  }
}

export function usageSince(before: Usage, after: Usage): Usage {
  const commandsBySize: Record<number, number> = {};
  for (const [bound, commands] of Object.entries(after.commandsBySize)) {
    const added = commands - (before.commandsBySize[Number(bound)] ?? 0);
    if (added > 0) {
      commandsBySize[Number(bound)] = added;
    }
  }
  return { commands: after.commands - before.commands, writes: after.writes - before.writes, commandsBySize };
}
