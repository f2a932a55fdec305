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
    prefixes: readonly string[],
  ) {
    const broadcast = prefixes.length > 0 ? ['BCAST', ...prefixes.flatMap((prefix) => ['PREFIX', prefix])] : [];
    this.#args = ['TRACKING', 'ON', ...broadcast];
  }

  /**
   * @returns whether tracking is on. If not, a warning says why, once: commands work without it.
   */
  async arm(): Promise<boolean> {
    const { client } = this;
    try {
      const version = versionOf(await client.call('HELLO'));
      if (!(Number.parseInt(version, 10) >= FIRST_MAJOR_VERSION)) {
        warnUncached(`the server is of version ${version}, and pushes are reliable from ${FIRST_MAJOR_VERSION}.0 on`);
        return false;
      }
      await client.call('CLIENT', ...this.#args);
      return true;
    } catch (error) {
      // A lost connection says nothing about the server.
      if (error instanceof Error && error.name === 'ReplyError') warnUncached(`the server says "${error.message}"`);
      return false;
    }
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

/** The server's version. HELLO's reply is a map, which hosts return as an object or as a flat array. */
function versionOf(hello: unknown): string {
  if (Array.isArray(hello)) return String(hello[hello.indexOf('version') + 1]);
  return String((hello as { version?: unknown } | null)?.version);
}

function warnUncached(why: string): void {
  warnOnce(CODES.CACHE, `ioredis-coalesce: options.cache is set, but nothing is cached: ${why}`);
}
