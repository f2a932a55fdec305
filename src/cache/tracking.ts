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
 * Earlier servers may send a push inside the reply to EXEC (redis#11038), or crash while they shrink their table of
 * tracked keys (redis#11814).
 */
const FIRST_VERSION = '7.0.9';

/** Milliseconds until the next attempt, if the server cannot switch tracking on now. */
const RETRY_MS = 1_000;
/** `ended` is final for this connection. */
type State = 'off' | 'on' | 'ended';

/**
 * Makes Redis announce changes of keys: those read after `CLIENT CACHING YES` (OPTIN), or all with one of the prefixes
 * (BCAST).
 *
 * RESP: https://redis.io/docs/latest/commands/client-tracking.
 */
export class Tracking {
  /** The arguments of CLIENT that switch tracking on. */
  readonly #args: readonly string[];
  #state: State = 'off';
  #requested = false;

  constructor(
    readonly context: EntryContext,
    /** Prefixes of the tracked keys on the wire. If empty, keys are tracked on request (OPTIN). */
    readonly prefixes: readonly string[],
    /** The user's transaction on this connection. */
    readonly transaction: Pick<TransactionState, 'open' | 'closed'>,
  ) {
    const mode = prefixes.length > 0 ? ['BCAST', ...prefixes.flatMap((prefix) => ['PREFIX', prefix])] : ['OPTIN'];
    this.#args = ['TRACKING', 'ON', ...mode];
  }

  get on(): boolean {
    return this.#state === 'on';
  }

  /** Whether changes of this key are announced (OPTIN: on request). */
  tracks(name: string): boolean {
    const { prefixes } = this;
    if (prefixes.length === 0) return true;
    for (const prefix of prefixes) if (name.startsWith(prefix)) return true;
    return false;
  }

  /** Switches tracking on. If the server cannot do that, warns once; commands work without it. */
  async arm(): Promise<void> {
    while (await this.#shouldRetry()) await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
  }

  async #shouldRetry(): Promise<boolean> {
    try {
      const hello = await this.#call('HELLO');
      const version = String(fieldOf(hello, 'version'));
      if (!/^\d/.test(version) || version.localeCompare(FIRST_VERSION, 'en', { numeric: true }) < 0) {
        warnUncached(`the server is of version ${version}, and pushes are reliable from ${FIRST_VERSION} on`);
        return false;
      }
      // Host: after NOPROTO it continues with RESP2, in which Redis accepts CLIENT TRACKING but pushes nothing.
      if (Number(fieldOf(hello, 'proto')) !== 3) {
        warnUncached('the server has refused RESP3, in which it would announce changes of keys');
        return false;
      }
      this.#requested = true;
      await this.#call('CLIENT', ...this.#args);
      if (this.#state === 'off') this.#state = 'on';
    } catch (error) {
      // After a lost connection, the next one tries again.
      if (!isReplyError(error)) return false;
      if (!isRefusal(error)) return true;
      warnUncached(`the server says "${error.message}"`);
    }
    return false;
  }

  /** Ordering: waits for the end of a transaction, whose EXEC would otherwise include the reply. */
  async #call(name: string, ...args: string[]): Promise<unknown> {
    const { transaction } = this;
    for (let open = transaction.closed(); open !== undefined; open = transaction.closed()) await open;
    if (this.#state === 'ended') throw new Error('the connection has ended');
    return this.#send(name, args);
  }

  /**
   * Host: it sends unanswered commands again on the next connection. There the server would refuse the same prefixes a
   * second time, so the entry becomes a PING. It settles only by `settle`; its own promise is never rejected.
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

  /** Whether these are the arguments of our own CLIENT TRACKING, which is sent like a command of the host. */
  isOwn(args: Arguments): boolean {
    return (
      args.count === this.#args.length + 1 && this.#args.every((argument, index) => args.text(index + 1) === argument)
    );
  }

  /**
   * The connection becomes plain and stays open. In a transaction, OFF would be one of the user's commands, so tracking
   * stays on; ioredis 6 ignores invalidations.
   */
  disarm(): void {
    if (!this.#requested || this.#state === 'ended' || this.transaction.open) return;
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
/** Replies to PTTL for a missing key, and for one that does not expire. */
const NO_KEY = -2;
const NO_EXPIRY = -1;

/** The commands sent with each read whose answer will be kept: one tracks its key, one asks for its time to live. */
export class CompanionCommands {
  /** False if the server refuses PTTL, so that only the option `ttl` limits the age of answers. */
  #asksTtl = true;

  constructor(
    readonly outgoing: Outgoing,
    readonly store: CacheStore,
    /** Called if the server does not track keys, or not for this user. */
    readonly refused: (error: Error) => void,
  ) {}

  /** RESP: CLIENT CACHING YES tracks the keys of the next command. */
  track(read: CachedRead): void {
    const entry = new InternalEntry(CLIENT, CACHING, this.outgoing.context, (error) => {
      if (error === undefined) return;
      this.store.drop(read.key);
      if (isReplyError(error) && isRefusal(error)) this.refused(error);
    });
    sendInternal(this.outgoing, entry, CACHING_ENCODED);
  }

  /**
   * Called after the read. RESP: a reply does not include the time to live, and Redis announces an expired key only
   * when it removes it. It announces any change of the time to live.
   */
  timeToLive(read: CachedRead): void {
    if (read.key.expiresAt !== undefined) return;
    const { outgoing } = this;
    const askedAt = now();
    const settled = (error: unknown, reply?: unknown) => {
      // The key at this time, because invalidations may have replaced it.
      const { key } = read;
      if (error === undefined) this.#setExpiry(key, Number(reply), askedAt);
      else if (isReplyError(error) && isRefusal(error)) {
        this.#asksTtl = false;
        key.expiresAt = Number.POSITIVE_INFINITY;
      }
    };
    if (this.#asksTtl) sendInternal(outgoing, new InternalEntry(PTTL, read.key.name, outgoing.context, settled));
    else read.key.expiresAt = Number.POSITIVE_INFINITY;
  }

  /** @param ttl - counted from `askedAt`, which is before the server's time: answers expire early, not late. */
  #setExpiry(key: CachedKey, ttl: number, askedAt: number): void {
    if (ttl !== NO_KEY) key.expiresAt = ttl === NO_EXPIRY ? Number.POSITIVE_INFINITY : askedAt + ttl;
    else if (key.couldBeMissing) key.expiresAt = Number.POSITIVE_INFINITY;
    // It has expired since the read. RESP: a replica announces that only after its master.
    else this.store.drop(key);
  }
}

/** A field of a map reply, which hosts return as an object or as a flat array. */
function fieldOf(map: unknown, name: string): unknown {
  if (Array.isArray(map)) return map[map.indexOf(name) + 1];
  return (map as Record<string, unknown> | null | undefined)?.[name];
}

export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Whether the server refuses our command for good. */
export function isRefusal(error: Error): boolean {
  const meaning = meaningOfError(error.message);
  return meaning === 'forbidden' || meaning === 'other';
}

export function warnUncached(why: string): void {
  warnOnce(CODES.CACHE, `ioredis-coalesce: options.cache is set, but nothing is cached: ${why}`);
}

/** Milliseconds without a byte from the server after which one read is sent as a probe. */
const PROBE_AFTER_MS = 1_000;
/** Milliseconds without a byte after which no answer is used: the connection may be dead, and invalidations lost. */
export const MAX_SILENCE_MS = 2_000;

/**
 * Whether the server has sent bytes recently. If every read were answered from memory, nothing would be written, and a
 * dead connection would go unnoticed. So one read is sent from time to time, without a timer.
 */
export class Liveness {
  /** When the last chunk arrived, in milliseconds of `now()`. */
  lastByteAt = now();
  #probing = false;

  /** When the first reads were sent because of the present silence, and the position of the first of them. */
  #asked: { readonly atMs: number; readonly position: number } | undefined;

  /** Because of a silence, reads are sent at `time`, from this position on. */
  asks(time: number, position: number): void {
    this.#asked ??= { atMs: time, position };
  }

  /**
   * @returns the position of a command issued less than `MAX_SILENCE_MS` ago whose reply must come before an answer is
   * used: the bytes that end a silence may be old, and invalidations of that time may follow.
   */
  bytesReceived(nextPosition: () => number): number | undefined {
    const time = now();
    const silence = time - this.lastByteAt;
    const asked = this.#asked;
    this.lastByteAt = time;
    this.#probing = false;
    this.#asked = undefined;
    if (silence < MAX_SILENCE_MS) return undefined;
    return asked !== undefined && time - asked.atMs < MAX_SILENCE_MS ? asked.position : nextPosition();
  }

  /** Whether a read may be answered from memory at `time`. */
  allows(time: number): boolean {
    const silence = time - this.lastByteAt;
    if (silence < PROBE_AFTER_MS) return true;
    if (silence >= MAX_SILENCE_MS || !this.#probing) {
      this.#probing = true;
      return false;
    }
    return true;
  }
}
