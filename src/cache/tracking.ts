import type { Arguments } from '../commands/effects.js';
import type { Outgoing } from '../core/outgoing.js';
import type { TransactionState } from '../core/transaction-state.js';
import { CODES, warnOnce } from '../errors.js';
import type { EntryContext } from '../host/command-facade.js';
import { InternalEntry, internalVariant, sendInternal } from '../reads/internal-entry.js';
import { meaningOfError } from '../resp/error-meaning.js';
import { now, setTimeout } from '../util/clock.js';
import type { CachedKey, CachedRead, CacheStore } from './store.js';

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

  /** Whether changes of this key are announced, at least if its read asks for that. */
  tracks(name: string): boolean {
    const { prefixes } = this;
    if (prefixes.length === 0) return true;
    for (const prefix of prefixes) if (name.startsWith(prefix)) return true;
    return false;
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

const CLIENT = internalVariant('client');
const PTTL = internalVariant('pttl');
const CACHING = ['CACHING', 'YES'];
const CACHING_ENCODED = '*3\r\n$6\r\nclient\r\n$7\r\nCACHING\r\n$3\r\nYES\r\n';
/** Replies to PTTL of a key that is missing, and of one that does not expire. */
const GONE = -2;
const LASTING = -1;

/** What is asked with each read whose answer will be kept: that its key is tracked, and how long that lives. */
export class AskedWithReads {
  /** False if the server refuses to tell times to live: then only the option `ttl` limits answers. */
  #asksTtl = true;

  constructor(
    readonly outgoing: Outgoing,
    readonly store: CacheStore,
    /** The server does not track keys for this user, or never does. */
    readonly refused: (error: Error) => void,
  ) {}

  /** RESP: the keys of the next command are tracked. */
  track(read: CachedRead): void {
    const entry = new InternalEntry(CLIENT, CACHING, this.outgoing.context, (error) => {
      if (error === undefined) return;
      this.store.drop(read.key);
      if (isReplyError(error) && isRefusal(error)) this.refused(error);
    });
    sendInternal(this.outgoing, entry, CACHING_ENCODED);
  }

  /**
   * Behind the read. RESP: the time to live is not part of the value, and Redis announces the end of a key only when it
   * removes it. Any change of it is announced.
   */
  timeToLive(read: CachedRead): void {
    if (read.key.expiresAt !== undefined) return;
    const { outgoing } = this;
    const askedAt = now();
    const told = (error: unknown, reply?: unknown) => {
      // As the invalidations before this reply have left it.
      const { key } = read;
      if (error === undefined) this.#told(key, Number(reply), askedAt);
      else if (isReplyError(error) && isRefusal(error)) {
        this.#asksTtl = false;
        key.expiresAt = Number.POSITIVE_INFINITY;
      }
    };
    if (this.#asksTtl) sendInternal(outgoing, new InternalEntry(PTTL, read.key.name, outgoing.context, told));
    else read.key.expiresAt = Number.POSITIVE_INFINITY;
  }

  /** @param ttl - milliseconds from `askedAt` on or from later. It ends early rather than late. */
  #told(key: CachedKey, ttl: number, askedAt: number): void {
    if (ttl !== GONE) key.expiresAt = ttl === LASTING ? Number.POSITIVE_INFINITY : askedAt + ttl;
    else if (key.isMissing) key.expiresAt = Number.POSITIVE_INFINITY;
    // It has expired since it was read. RESP: a replica does not announce that until its master does.
    else this.store.drop(key);
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
