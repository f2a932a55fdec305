import { isDeepStrictEqual } from 'node:util';
import { CODES, warnOnce } from '../errors.js';
import type { HostClient } from '../host/types.js';

/** Earlier servers may put a push within the reply to a command. */
const FIRST_MAJOR_VERSION = 7;

/**
 * Asks Redis to announce changes of the keys that this connection has read.
 *
 * RESP: https://redis.io/docs/latest/commands/client-tracking.
 */
export class Tracking {
  /** The arguments of CLIENT that switch tracking on. */
  readonly #args: readonly string[];

  constructor(
    readonly client: HostClient,
    /** Prefixes of the keys to track, as on the wire; without any, all keys that are read. */
    readonly prefixes: readonly string[],
    /** Resolves when the open transaction has ended, and rejects if its connection has; undefined if none is open. */
    readonly transaction: () => Promise<void> | undefined,
  ) {
    const broadcast = prefixes.length > 0 ? ['BCAST', ...prefixes.flatMap((prefix) => ['PREFIX', prefix])] : [];
    this.#args = ['TRACKING', 'ON', ...broadcast];
  }

  /**
   * @returns whether tracking is on. If not, a warning says why, once: commands work without it.
   */
  async arm(): Promise<boolean> {
    try {
      const version = String(fieldOf(await this.#call('HELLO'), 'version'));
      if (!(Number.parseInt(version, 10) >= FIRST_MAJOR_VERSION)) {
        warnUncached(`the server is of version ${version}, and pushes are reliable from ${FIRST_MAJOR_VERSION}.0 on`);
        return false;
      }
      await this.#call('CLIENT', ...this.#args).catch((error: unknown) => this.#unlessOn(error));
      return true;
    } catch (error) {
      // A lost connection says nothing about the server.
      if (isReplyError(error)) warnUncached(`the server says "${error.message}"`);
      return false;
    }
  }

  /** Ordering: within a transaction, this would be one of the user's commands, and EXEC would show its reply. */
  async #call(name: string, ...args: string[]): Promise<unknown> {
    for (let open = this.transaction(); open !== undefined; open = this.transaction()) await open;
    return this.client.call(name, ...args);
  }

  /**
   * Host: unanswered commands of a lost connection are sent again on the next one (ioredis, event_handler.js). There
   * our own command is the second one with the same prefixes, so the server refuses it.
   *
   * @throws the error if tracking is not on with this object's settings.
   */
  async #unlessOn(error: unknown): Promise<void> {
    if (!isReplyError(error) || this.prefixes.length === 0) throw error;
    const info = await this.#call('CLIENT', 'TRACKINGINFO').catch((reason: unknown) => {
      if (!isReplyError(reason)) throw reason;
    });
    const prefixes = fieldOf(info, 'prefixes');
    if (!Array.isArray(prefixes) || !isDeepStrictEqual([...prefixes].sort(), [...this.prefixes].sort())) throw error;
  }

  /** Whether these arguments of CLIENT are this object's own, sent by it or sent again by the host. */
  isOwn(args: { readonly count: number; text(index: number): string }): boolean {
    return (
      args.count === this.#args.length + 1 && this.#args.every((argument, index) => args.text(index + 1) === argument)
    );
  }

  /** Switches tracking off again. */
  disarm(): void {
    this.client.call('CLIENT', 'TRACKING', 'OFF').catch(() => {});
  }
}

/** A field of a reply that is a map, which hosts return as an object or as a flat array. */
function fieldOf(map: unknown, name: string): unknown {
  if (Array.isArray(map)) return map[map.indexOf(name) + 1];
  return (map as Record<string, unknown> | null | undefined)?.[name];
}

function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

function warnUncached(why: string): void {
  warnOnce(CODES.CACHE, `ioredis-coalesce: options.cache is set, but nothing is cached: ${why}`);
}
