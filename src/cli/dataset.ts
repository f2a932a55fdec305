import { randomBytes } from 'node:crypto';
import { briefly, type Client } from './clients.js';
import { Failure } from './interrupt.js';

const CHUNK_BYTES = 4 * 1024 * 1024;
const CHUNK_KEYS = 1_000;

/** The keys that are read: under one random prefix, with an expiry in case they cannot be removed. */
export class Dataset {
  readonly prefix = `ioredis-coalesce:bench:${randomBytes(8).toString('hex')}:`;
  readonly keys: readonly string[];
  readonly value: string;
  readonly #client: Client;
  #attempted = 0;

  /** Writing and removing share one connection, so that no write can arrive after the removal. */
  constructor(client: Client, keys: number, valueBytes: number) {
    this.#client = client;
    this.keys = Array.from({ length: keys }, (_, index) => `${this.prefix}${index}`);
    this.value = randomBytes(Math.ceil(valueBytes / 2))
      .toString('hex')
      .slice(0, valueBytes);
  }

  async write(expireMs: number, signal: AbortSignal): Promise<void> {
    const chunk = Math.max(1, Math.min(CHUNK_KEYS, Math.floor(CHUNK_BYTES / this.value.length)));
    while (this.#attempted < this.keys.length) {
      signal.throwIfAborted();
      const keys = this.keys.slice(this.#attempted, this.#attempted + chunk);
      this.#attempted += keys.length;
      await allOf(keys.map((key) => this.#client.set(key, this.value, 'PX', expireMs)));
    }
  }

  /** Reads every key once with this client and compares every value. */
  async verify(client: Client, signal: AbortSignal): Promise<void> {
    for (let first = 0; first < this.keys.length; first += CHUNK_KEYS) {
      signal.throwIfAborted();
      const keys = this.keys.slice(first, first + CHUNK_KEYS);
      const values = await allOf(keys.map((key) => client.get(key)));
      const wrong = values.findIndex((value) => value !== this.value);
      if (wrong === -1) continue;
      const found = values[wrong];
      const got = found == null ? 'no value: was it evicted?' : `${found.length} other characters`;
      throw new Failure(`${keys[wrong]} should hold the ${this.value.length} characters written to it, got ${got}`);
    }
  }

  /** Removes every key that was written, or may have been. */
  async remove(): Promise<void> {
    for (let first = 0; first < this.#attempted; first += CHUNK_KEYS) {
      const keys = this.keys.slice(first, Math.min(first + CHUNK_KEYS, this.#attempted));
      await allOf(keys.map((key) => this.#client.unlink(key)));
    }
  }
}

/** Waits for all of them, also when one fails: no command may be in flight when the keys are removed. */
async function allOf<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(promises);
  return results.map((result) => {
    if (result.status === 'fulfilled') return result.value;
    throw new Failure(`Redis refused a command: ${briefly(result.reason as Error)}`);
  });
}
