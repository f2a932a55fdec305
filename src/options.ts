import type { Schedule } from './connection/scheduler.js';
import { CODES, describe, describeType, withCode } from './errors.js';

/** What `coalesce()` and the drop-in class take; every key is optional. */
export interface CoalesceOptions {
  /**
   * When a batch is flushed, counted from its first command: at the end of this turn of the event loop, parts of it
   * sooner while the loop has time to wait (`'adaptive'`); at the end of the turn in one write (`'immediate'`); at the end of the running callback (`'tick'`), or when a function of yours calls the `flush` it
   * is given. A later flush makes larger batches and longer latencies. With `maxFlushDelay` or `shareReads`, which want
   * large batches, `'adaptive'` is `'immediate'`.
   * @default 'adaptive'
   */
  schedule?: Schedule;
  /**
   * Milliseconds that a batch may be held back for more commands, and only while more commands await their reply than
   * wait to be sent: a lone command never waits. It trades latency for fewer, larger writes. `0` switches it off.
   * Minimum 0.
   * @default 0
   */
  maxFlushDelay?: number;
  /**
   * Commands in one batch; the one that reaches it flushes at once. Smaller values let the server start earlier on a
   * large burst, larger ones save system calls. Minimum 1.
   * @default 1000
   */
  maxBatchSize?: number;
  /**
   * Bytes in one batch; the command that reaches it flushes at once. Minimum 1, maximum 67108864 (64 MiB): Node cannot
   * write much more in one go.
   * @default 262144
   */
  maxBatchBytes?: number;
  /**
   * Unanswered commands on the wire per connection. The bytes of later ones wait in the client, in order, until
   * replies make room, so that a burst of a million commands does not fill the server's reply buffers. A transaction
   * or explicit pipeline is never split; one larger than this goes alone. Minimum 1.
   * @default 10000
   */
  maxInFlight?: number;
  /**
   * Whether simple commands are encoded and decoded by this package (layer 2). `false` leaves the cork (layer 1) alone.
   * @default true
   */
  hotPath?: boolean;
  /**
   * Whether identical reads in one batch, with no other kind of command between them, are sent once; each caller still
   * gets a value of its own.
   * @default false
   */
  shareReads?: boolean;
  /**
   * Whether the answers of reads are kept in memory until Redis says that their key has changed. `true` takes the
   * defaults of {@link CacheOptions}. Needs RESP3: ioredis 6, and Redis 7 or Valkey.
   * @default false
   */
  cache?: boolean | CacheOptions;
}

/** What is kept of the answers of reads; every key is optional. */
export interface CacheOptions {
  /**
   * Beginnings of the keys that are cached, as callers write them: `keyPrefix` is added. Redis then keeps no list of
   * what was read, and announces every change of a key that begins so (`BCAST`). Without it, all keys are cached, and
   * Redis remembers each key that was read.
   * @default undefined
   */
  prefixes?: readonly string[] | undefined;
  /**
   * Milliseconds after which an answer is read anew, whatever Redis has said or not said. Minimum 1.
   * @default 60000
   */
  ttl?: number;
  /**
   * Answers kept on one connection; those not used lately make room. Minimum 1.
   * @default 10000
   */
  maxEntries?: number;
  /**
   * Bytes that the answers kept on one connection take, about. Minimum 1.
   * @default 67108864
   */
  maxBytes?: number;
}

export type ResolvedCacheOptions = Readonly<
  Required<Omit<CacheOptions, 'prefixes'>> & { prefixes: readonly string[] | undefined }
>;

/** Every option with its value; frozen. */
export type ResolvedOptions = Readonly<
  Required<Omit<CoalesceOptions, 'cache'>> & { cache: ResolvedCacheOptions | false }
>;

/** A `writev` of strings counts three bytes per character, and fails beyond about 700 MB; so does V8 beyond 2^29 characters. */
const MOST_BATCH_BYTES = 64 * 1024 * 1024;

export const DEFAULT_OPTIONS: ResolvedOptions = Object.freeze({
  schedule: 'adaptive',
  maxFlushDelay: 0,
  maxBatchSize: 1_000,
  maxBatchBytes: 256 * 1024,
  maxInFlight: 10_000,
  hotPath: true,
  shareReads: false,
  cache: false,
});

const DEFAULT_CACHE: ResolvedCacheOptions = Object.freeze({
  prefixes: undefined,
  ttl: 60_000,
  maxEntries: 10_000,
  maxBytes: 64 * 1024 * 1024,
});

/**
 * Fills in defaults and checks every key.
 *
 * @throws {TypeError} of code `COALESCE_ERR_OPTION` for an unknown key or a wrong type.
 * @throws {RangeError} of code `COALESCE_ERR_OPTION` for a number out of range.
 */
export function resolveOptions(options: CoalesceOptions | undefined): ResolvedOptions {
  if (options === undefined) return DEFAULT_OPTIONS;
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw withCode(new TypeError(`options must be an object, got ${describeType(options)}`), CODES.OPTION);
  }
  checkKeys('options', options, DEFAULT_OPTIONS);
  const cache = validCache(options.cache);
  if (cache && options.hotPath === false) {
    throw withCode(
      new TypeError('options.cache needs the hot path, which options.hotPath: false switches off'),
      CODES.OPTION,
    );
  }
  return Object.freeze({
    schedule: validSchedule(options.schedule),
    maxFlushDelay: validDelay(options.maxFlushDelay),
    maxBatchSize: validCount('maxBatchSize', options.maxBatchSize, DEFAULT_OPTIONS.maxBatchSize),
    maxBatchBytes: validCount('maxBatchBytes', options.maxBatchBytes, DEFAULT_OPTIONS.maxBatchBytes, MOST_BATCH_BYTES),
    maxInFlight: validCount('maxInFlight', options.maxInFlight, DEFAULT_OPTIONS.maxInFlight),
    hotPath: validBoolean('hotPath', options.hotPath),
    shareReads: validBoolean('shareReads', options.shareReads),
    cache,
  });
}

function checkKeys(name: string, given: object, known: object): void {
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(known, key)) {
      const names = Object.keys(known).join(', ');
      throw withCode(new TypeError(`${name}.${key} is not an option; the options are ${names}`), CODES.OPTION);
    }
  }
}

function validCache(value: CoalesceOptions['cache']): ResolvedOptions['cache'] {
  if (value === undefined || value === false) return false;
  if (value === true) return DEFAULT_CACHE;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw typeError('cache', 'a boolean or an object', value);
  }
  checkKeys('options.cache', value, DEFAULT_CACHE);
  return Object.freeze({
    prefixes: validPrefixes(value.prefixes),
    ttl: validCount('cache.ttl', value.ttl, DEFAULT_CACHE.ttl),
    maxEntries: validCount('cache.maxEntries', value.maxEntries, DEFAULT_CACHE.maxEntries),
    maxBytes: validCount('cache.maxBytes', value.maxBytes, DEFAULT_CACHE.maxBytes),
  });
}

/** Redis refuses a prefix that begins with another one, and needs it no more. */
function validPrefixes(value: unknown): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const expected = 'an array of one or more strings that are not empty';
  if (!Array.isArray(value)) throw typeError('cache.prefixes', expected, value);
  const wrong = value.findIndex((prefix) => typeof prefix !== 'string' || prefix === '' || !prefix.isWellFormed());
  if (value.length === 0) throw typeError('cache.prefixes', expected, value);
  if (wrong >= 0) throw typeError(`cache.prefixes[${wrong}]`, 'a string that is not empty', value[wrong]);
  const prefixes = [...new Set(value as string[])];
  return Object.freeze(
    prefixes.filter((prefix) => !prefixes.some((other) => other !== prefix && prefix.startsWith(other))),
  );
}

function validSchedule(value: Schedule | undefined): Schedule {
  if (value === undefined) return DEFAULT_OPTIONS.schedule;
  if (value === 'adaptive' || value === 'immediate' || value === 'tick' || typeof value === 'function') return value;
  throw typeError('schedule', "'adaptive', 'immediate', 'tick' or a function that takes the flush", value);
}

function validDelay(value: number | undefined): number {
  if (value === undefined) return DEFAULT_OPTIONS.maxFlushDelay;
  const expected = 'a number of milliseconds from 0 to 2147483647';
  if (typeof value !== 'number') throw typeError('maxFlushDelay', expected, value);
  if (!(value >= 0 && value <= 0x7fffffff)) throw rangeError('maxFlushDelay', expected, value);
  return value;
}

function validCount(
  name: string,
  value: number | undefined,
  byDefault: number,
  most = Number.MAX_SAFE_INTEGER,
): number {
  if (value === undefined) return byDefault;
  const expected = most < Number.MAX_SAFE_INTEGER ? `a positive integer of at most ${most}` : 'a positive integer';
  if (typeof value !== 'number') throw typeError(name, expected, value);
  if (!Number.isSafeInteger(value) || value < 1 || value > most) throw rangeError(name, expected, value);
  return value;
}

function validBoolean(name: 'hotPath' | 'shareReads', value: boolean | undefined): boolean {
  if (value === undefined) return DEFAULT_OPTIONS[name];
  if (typeof value === 'boolean') return value;
  throw typeError(name, 'a boolean', value);
}

function typeError(name: string, expected: string, got: unknown): TypeError {
  return withCode(new TypeError(`options.${name} must be ${expected}, got ${describe(got)}`), CODES.OPTION);
}

function rangeError(name: string, expected: string, got: unknown): RangeError {
  return withCode(new RangeError(`options.${name} must be ${expected}, got ${describe(got)}`), CODES.OPTION);
}
