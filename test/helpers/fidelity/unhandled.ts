import { canonical } from './canonical.js';

type Listener = (reason: unknown, promise: Promise<unknown>) => void;

/**
 * Collects unhandled rejections instead of failing the run: a plain ioredis client leaves one behind when an argument's
 * `toString` throws, and a coalesced one must leave the same.
 */
export class UnhandledRejections {
  #seen: string[] = [];
  #others: Listener[] = [];
  readonly #listener: Listener = (reason) => void this.#seen.push(canonical(reason));

  start(): void {
    this.#others = process.listeners('unhandledRejection') as Listener[];
    process.removeAllListeners('unhandledRejection');
    process.on('unhandledRejection', this.#listener);
  }

  /** Those since the last call. */
  async take(): Promise<string[]> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    const seen = this.#seen;
    this.#seen = [];
    return seen;
  }

  stop(): void {
    process.off('unhandledRejection', this.#listener);
    for (const listener of this.#others) {
      process.on('unhandledRejection', listener);
    }
  }
}
