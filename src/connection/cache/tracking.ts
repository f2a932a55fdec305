import type { Arguments } from '../../commands/effects.js';
import { CODES, warnOnce } from '../../errors.js';
import { meaningOfError } from '../../resp/error-meaning.js';
import { now, setTimeout } from '../../util/clock.js';
import { type EntryContext, InternalEntry, internalVariant } from '../entries/entry.js';
import type { TransactionState } from '../transaction-state.js';

/**
 * Earlier servers may put a push within the reply of EXEC (redis#11038), or crash when they shrink their table of
 * tracked keys (redis#11814).
 */
const FIRST_VERSION = '7.0.9';

/** Milliseconds after which the server is asked again that cannot switch tracking on now. */
const TRIED_AGAIN_AFTER = 1_000;
/** `ended`: for the rest of this connection. */
type State = 'off' | 'on' | 'ended';

/**
 * Asks Redis to announce changes of keys: of those that are read after `CLIENT CACHING YES` (OPTIN), or of all keys
 * with one of the prefixes (BCAST).
 *
 * RESP: https://redis.io/docs/latest/commands/client-tracking.
 */
export class Tracking {
  /** The arguments of CLIENT that switch tracking on. */
  readonly #args: readonly string[];
  #state: State = 'off';
  #asked = false;

  constructor(
    readonly context: EntryContext,
    /** Prefixes of the keys to track, as on the wire; without any, the keys of reads that say so. */
    readonly prefixes: readonly string[],
    /** The user's, on this connection. */
    readonly transaction: Pick<TransactionState, 'open' | 'closed'>,
  ) {
    const mode = prefixes.length > 0 ? ['BCAST', ...prefixes.flatMap((prefix) => ['PREFIX', prefix])] : ['OPTIN'];
    this.#args = ['TRACKING', 'ON', ...mode];
  }

  get on(): boolean {
    return this.#state === 'on';
  }

  /** Switches tracking on. If the server cannot, a warning says why, once: commands work without it. */
  async arm(): Promise<void> {
    while (await this.#isToTryAgain()) await new Promise((resolve) => setTimeout(resolve, TRIED_AGAIN_AFTER).unref());
  }

  async #isToTryAgain(): Promise<boolean> {
    try {
      const hello = await this.#call('HELLO');
      const version = String(fieldOf(hello, 'version'));
      if (!/^\d/.test(version) || version.localeCompare(FIRST_VERSION, 'en', { numeric: true }) < 0) {
        warnUncached(`the server is of version ${version}, and pushes are reliable from ${FIRST_VERSION} on`);
        return false;
      }
      // Host: after NOPROTO it goes on with RESP2, where CLIENT TRACKING is accepted and nothing is pushed.
      if (Number(fieldOf(hello, 'proto')) !== 3) {
        warnUncached('the server has refused RESP3, in which it would announce changes of keys');
        return false;
      }
      this.#asked = true;
      await this.#call('CLIENT', ...this.#args);
      if (this.#state === 'off') this.#state = 'on';
    } catch (error) {
      // A lost connection says nothing about the server.
      if (!isReplyError(error)) return false;
      if (!isRefusal(error)) return true;
      warnUncached(`the server says "${error.message}"`);
    }
    return false;
  }

  /** Ordering: within a transaction, this would be one of the user's commands, and EXEC would show its reply. */
  async #call(name: string, ...args: string[]): Promise<unknown> {
    const { transaction } = this;
    for (let open = transaction.closed(); open !== undefined; open = transaction.closed()) await open;
    if (this.#state === 'ended') throw new Error('the connection has ended');
    return this.#send(name, args);
  }

  /**
   * Host: it sends unanswered commands again on the next connection, and drops what `sendCommand` returns. There the
   * server would refuse a second one with the same prefixes, so a PING takes its place; and an entry's promise is never
   * rejected.
   */
  #send(name: string, args: readonly string[]): Promise<unknown> {
    const { context } = this;
    return new Promise((resolve, reject) => {
      const settle = (error: unknown, value: unknown) => (error === undefined ? resolve(value) : reject(error));
      const entry = new InternalEntry(internalVariant(name), args, context, settle);
      const { stream } = context.client;
      const writable = entry.toWritable.bind(entry);
      entry.toWritable = (to) => {
        if (to === stream) return writable(to);
        reject(new Error('the connection has ended'));
        return '*1\r\n$4\r\nPING\r\n';
      };
      Promise.resolve(context.client.sendCommand(entry)).catch(reject);
    });
  }

  /** Whether these are the arguments of our own command, which passes as one of the host's. */
  isOwn(args: Arguments): boolean {
    return (
      args.count === this.#args.length + 1 && this.#args.every((argument, index) => args.text(index + 1) === argument)
    );
  }

  /**
   * The connection becomes plain and stays open. Within a transaction, OFF would be one of the user's commands, so
   * tracking stays on: ioredis 6 drops invalidations.
   */
  disarm(): void {
    if (!this.#asked || this.#state === 'ended' || this.transaction.open) return;
    this.#send('CLIENT', ['TRACKING', 'OFF']).catch(() => {});
  }

  end(): void {
    this.#state = 'ended';
  }
}

/** A field of a reply that is a map, which hosts return as an object or as a flat array. */
function fieldOf(map: unknown, name: string): unknown {
  if (Array.isArray(map)) return map[map.indexOf(name) + 1];
  return (map as Record<string, unknown> | null | undefined)?.[name];
}

export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Whether the server will not do what we have asked for, now or later. */
export function isRefusal(error: Error): boolean {
  const meaning = meaningOfError(error.message);
  return meaning === 'forbidden' || meaning === 'other';
}

export function warnUncached(why: string): void {
  warnOnce(CODES.CACHE, `ioredis-coalesce: options.cache is set, but nothing is cached: ${why}`);
}

/** Milliseconds without a byte from the server after which one read is sent, to see whether the server answers. */
const SILENCE_PROBED_AFTER = 1_000;
/** Milliseconds without a byte after which nothing is served: the connection may be dead, and invalidations lost. */
const LONGEST_SILENCE = 2_000;

/**
 * Whether the server has sent bytes recently. If every read is answered from memory, nothing is written, and a dead
 * connection would not be noticed. So a read is sent from time to time. No timer is needed for that.
 */
export class Liveness {
  /** Milliseconds of `now()` when the last chunk of bytes came. */
  lastByteAt = now();
  #probing = false;

  bytesReceived(): void {
    this.lastByteAt = now();
    this.#probing = false;
  }

  /** Whether a read may be answered from memory at `time`. */
  allows(time: number): boolean {
    const silence = time - this.lastByteAt;
    if (silence < SILENCE_PROBED_AFTER) return true;
    if (silence >= LONGEST_SILENCE || !this.#probing) {
      this.#probing = true;
      return false;
    }
    return true;
  }
}
