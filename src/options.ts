import { CODES, describe, describeType, warnOnce, wrongOption } from './errors.js';
import type { Schedule, ScheduleFunction } from './util/schedule.js';

export type { Schedule, ScheduleFunction };

/** Options of `coalesce()` and the drop-in class; all are optional. */
export interface CoalesceOptions {
  /**
   * When a batch is flushed; a later flush makes larger batches and longer latencies.
   * @default 'immediate'
   */
  schedule?: Schedule;
  /**
   * Whether the event loop polls briefly for replies before it sleeps: waking a sleeping thread takes longer than a
   * Redis on the same machine needs for a few commands. It polls after a turn of three or more commands, for 8
   * microseconds per command (20 over TLS), at most 100. It does not poll if the first reply takes longer than 0.12
   * milliseconds (0.2 over TLS), if polls find no replies, or if the process is often preempted. If it polls, turns
   * of 32 or more commands are sent in parts of 32, 64, 128 … (twice that with `fuseReads`), and Redis executes the
   * first part meanwhile.
   * @default true
   */
  busyPoll?: boolean;
  /**
   * Commands in one batch; the command that reaches this limit flushes at once. Smaller values let the server start
   * earlier on a large burst, larger ones save system calls. An integer, minimum 1, maximum 1000000.
   * @default 1000
   */
  maxBatchSize?: number;
  /**
   * Bytes per batch, excluding 64 per command; the command that reaches the limit flushes at once, so that the server
   * reads large values while later ones are encoded. An integer, minimum 1, maximum 67108864 (64 MiB): Node cannot
   * write much more in one call.
   * @default 8000
   */
  maxBatchBytes?: number;
  /**
   * Unanswered commands on the wire, per connection. The bytes of later commands wait in order in a client-side backlog
   * until replies make room, so that a burst of a million commands does not fill the server's reply buffers. A
   * transaction or explicit pipeline is never split; one larger than this limit is sent alone. An integer, minimum 1.
   * @default 10000
   */
  maxInFlight?: number;
  /**
   * Commands of a client, or of a Cluster's node, that may await their reply: on the wire, in the backlog, or queued
   * for the next connection. A call beyond that is rejected at once with `COALESCE_ERR_PENDING`, and none of it is
   * sent; a pipeline or transaction is rejected as a whole. Reads sent as one command count as one. Commands that the
   * client itself sends, and `quit`, are never rejected. An integer, minimum 1.
   * @default undefined, no limit
   */
  maxPending?: number | undefined;
  /**
   * Whether simple commands are encoded and decoded by this package, on the fast path. `false` selects cork mode, which
   * uses public APIs only; then `maxBatchSize`, `maxInFlight`, `maxPending`, `shareReads`, `fuseReads` and `cache`
   * cannot be given.
   * @default true
   */
  fastPath?: boolean;
  /**
   * Whether identical reads in one batch are sent once, if no other kind of command is between them. Each caller still
   * gets its own value.
   * @default false
   */
  shareReads?: boolean;
  /**
   * Whether adjacent `get`s are sent as one MGET, and adjacent `hget`s of one hash as one HMGET, at most 64 at a time.
   * A read then costs Redis less CPU. Each caller gets its own value. One difference: `get` of a key of another type
   * returns `null` instead of WRONGTYPE. ACLs, MONITOR and SLOWLOG see MGET and HMGET. Not in transactions, while keys
   * are watched, in explicit pipelines, or on a client with `cache`.
   * @default false
   */
  fuseReads?: boolean;
  /**
   * Whether replies to reads are kept in memory until Redis reports a change of their key. `true` uses the defaults of
   * {@link CacheOptions}. Needs RESP3 (ioredis 6), Redis 7.0.9 or Valkey, and `fastPath`.
   * @default false
   */
  cache?: boolean | CacheOptions;
  /**
   * Only for a Cluster: whether `mget`, `mset`, `del`, `unlink`, `exists` and `touch` may have keys of several slots.
   * Such a call is sent as one command per slot, and the replies are joined. It is not atomic: if one command fails,
   * the call fails with its error, but the others are executed.
   * @default false
   */
  splitKeys?: boolean;
}

/** Which replies to reads are kept in memory, and for how long; every key is optional. */
export interface CacheOptions {
  /**
   * Only keys with one of these prefixes are cached; `keyPrefix` is added to each. Redis then announces every change of
   * such a key (`BCAST`) and need not remember which keys were read. Without this option all keys are cached, and Redis
   * remembers each key that was read. One or more strings, none of them empty.
   * @default undefined
   */
  prefixes?: readonly string[] | undefined;
  /**
   * Milliseconds after which a kept answer is no longer used, even if Redis has announced no change. An integer,
   * minimum 1.
   * @default 60000
   */
  ttl?: number;
  /**
   * Answers kept per connection; answers that were not used recently are removed to make room. An integer, minimum 1.
   * @default 10000
   */
  maxEntries?: number;
  /**
   * Approximate bytes of memory for the answers kept per connection. An integer, minimum 1.
   * @default 67108864
   */
  maxBytes?: number;
  /**
   * What a script or function of this client (`EVAL`, `EVALSHA`, `FCALL`) may change: `anything`, so that no read is
   * answered from memory until the script has run; or only the `keys` it declares, as Redis requires but does not
   * check.
   * @default 'anything'
   */
  scripts?: 'anything' | 'keys';
  /**
   * Whether reads that nearly always follow another read are sent together with it, and reads of a list's elements once
   * the list has arrived. See docs/prefetch.md.
   * @default false
   */
  prefetch?: boolean;
}

/** The options of `cork()` and `corkStream()`: those of {@link CoalesceOptions} that need no fast path. */
export type CorkOptions = {
  readonly [Name in 'schedule' | 'busyPoll' | 'maxBatchBytes']?: CoalesceOptions[Name] | undefined;
};

/** Options of calls, which override the client's; every key is optional. */
export interface CallOptions {
  /**
   * Rejects the calls at once with the signal's reason when it is aborted. A call made before that is still executed,
   * unless it is waiting for a connection.
   * @default undefined
   */
  signal?: AbortSignal | undefined;
  /**
   * Milliseconds after which a call is rejected, instead of the client's `commandTimeout`. Minimum 1, maximum
   * 2147483647.
   * @default the client's `commandTimeout`
   */
  timeout?: number | undefined;
  /**
   * Whether a read may be answered from the client's `cache`. `false` asks Redis, and caches its answer.
   * @default true
   */
  cache?: boolean | undefined;
}

/** How to coalesce: options, `true` for the defaults, or `false` to leave the client plain. */
export type CoalesceSetting = CoalesceOptions | boolean;

export type ResolvedCacheOptions = Readonly<
  Required<Omit<CacheOptions, 'prefixes'>> & { prefixes: readonly string[] | undefined }
>;

export type ResolvedCorkOptions = Readonly<Required<Pick<CoalesceOptions, keyof CorkOptions>>>;

/** All options with their values; frozen. */
export type ResolvedOptions = Readonly<
  Required<Omit<CoalesceOptions, 'cache'>> & { cache: ResolvedCacheOptions | false }
>;

/**
 * Fills in defaults and checks every key.
 *
 * @param name - the caller's name for the setting, for messages: `options`, or `option coalesce` of a class.
 * @returns false if the client is to stay plain.
 * @throws {TypeError} of code `COALESCE_ERR_OPTION` for an unknown key or a wrong type.
 * @throws {RangeError} of code `COALESCE_ERR_OPTION` for a number out of range.
 */
export function resolveSetting(setting: CoalesceSetting | undefined, name: string): ResolvedOptions | false {
  if (setting === false) return false;
  if (setting === undefined || setting === true) return DEFAULT_OPTIONS;
  const resolved = resolve(setting, name, OPTIONS, 'an object, true or false');
  if (resolved.fuseReads && resolved.cache) {
    warnOnce(
      CODES.FUSE,
      `ioredis-coalesce: ${name}.fuseReads has no effect on a client with ${name}.cache; leave one of them out`,
    );
  }
  const [lost] = resolved.fastPath ? [] : needingFastPath(resolved);
  if (lost === undefined) return resolved;
  throw wrongOption(`${name}.${lost} needs the fast path, which ${name}.fastPath: false switches off`);
}

const NEED_FAST_PATH = ['maxBatchSize', 'maxInFlight', 'maxPending', 'shareReads', 'fuseReads', 'cache'] as const;

/** The options that differ from their defaults, and need the fast path. */
export function needingFastPath(options: ResolvedOptions): readonly string[] {
  return NEED_FAST_PATH.filter((name) => options[name] !== DEFAULT_OPTIONS[name]);
}

/** Fills in defaults and checks every key, as {@link resolveSetting} does. */
export function resolveCorkOptions(options: CorkOptions): ResolvedCorkOptions {
  return resolve(options, 'options', CORK_OPTIONS, 'an object');
}

/** The options of a corked client. */
export function corkOptionsOf({ schedule, busyPoll, maxBatchBytes }: ResolvedOptions): ResolvedCorkOptions {
  return { schedule, busyPoll, maxBatchBytes };
}

/** Omits the cache without RESP3, so that `duplicate({ protocol: 2 })` succeeds as on a plain client. */
export function withoutCacheUnless(resp3: boolean, options: ResolvedOptions): ResolvedOptions {
  return resp3 || !options.cache ? options : { ...options, cache: false };
}

/** The host's options, including inherited ones, which it also reads (`utils/defaults.js`, in ioredis 5 lodash's). */
export function withoutCoalesce<T extends object>(options: T): Omit<T, 'coalesce'> {
  const own: Record<string, unknown> = {};
  for (const key in options) if (key !== 'coalesce') own[key] = options[key];
  return own as Omit<T, 'coalesce'>;
}

/**
 * Checks the options of calls, as {@link resolveSetting} does.
 *
 * @param base - the options used if none are given.
 */
export function resolveCallOptions(options: CallOptions, base?: CallOptions): CallOptions {
  return resolve(options, 'withOptions()', CALL_OPTIONS, 'an object with signal, timeout or cache', base);
}

/** How to resolve one option. */
interface Rule<Value> {
  readonly byDefault: Value;
  /** Checks a given value, and returns the value to use. `name` is the caller's name for it, for messages. */
  check(value: unknown, name: string): Value;
}

export type Rules<Options> = { readonly [Key in keyof Options]-?: Rule<Options[Key]> };

export function rule<Value>(
  byDefault: Value,
  expected: string,
  isType: (value: unknown) => boolean,
  isInRange = (_: unknown) => true,
): Rule<Value> {
  const check = (value: unknown, name: string) =>
    checked<Value>(value, name, expected, isType(value), isInRange(value));
  return { byDefault, check };
}

/** @throws {TypeError} or {RangeError}, of code `COALESCE_ERR_OPTION`. */
export function checked<Value>(
  value: unknown,
  name: string,
  expected: string,
  isType: boolean,
  isInRange = true,
): Value {
  if (isType && isInRange) return value as Value;
  throw wrongOption(`${name} must be ${expected}, got ${describe(value)}`, isType ? RangeError : TypeError);
}

const isBoolean = (value: unknown) => typeof value === 'boolean';
const isNumber = (value: unknown) => typeof value === 'number';
const isFrom = (least: number, most: number) => (value: unknown) =>
  isNumber(value) && (value as number) >= least && (value as number) <= most;

function boolean<Value>(byDefault: Value): Rule<Value> {
  return rule(byDefault, 'a boolean', isBoolean);
}

/** @param note - the limit, or the unit if the name does not contain it. */
function count<Value = number>(byDefault: Value, note = '', most = Number.MAX_SAFE_INTEGER): Rule<Value> {
  const isInRange = isFrom(1, most);
  const isCount = (value: unknown) => Number.isInteger(value) && isInRange(value);
  return rule(byDefault, `a positive integer${note}`, isNumber, isCount);
}

/** A `writev` of strings takes three bytes per character and fails beyond 700 MB; V8 has strings of up to 2^29. */
const MOST_BATCH_BYTES = 64 * 1024 * 1024;
/** `maxBatchBytes` does not count 64 bytes of each. */
const MOST_BATCH_COMMANDS = 1_000_000;

const CACHE_OPTIONS: Rules<ResolvedCacheOptions> = {
  prefixes: { byDefault: undefined, check: validPrefixes },
  ttl: count(60_000, ' of milliseconds'),
  maxEntries: count(10_000),
  maxBytes: count(64 * 1024 * 1024),
  scripts: rule('anything', "'anything' or 'keys'", (value) => value === 'anything' || value === 'keys'),
  prefetch: boolean(false),
};

const OPTIONS: Rules<ResolvedOptions> = {
  schedule: rule(
    'immediate',
    "'immediate', 'tick' or a function that takes the flush",
    (value) => value === 'immediate' || value === 'tick' || typeof value === 'function',
  ),
  busyPoll: boolean(true),
  maxBatchSize: count(1_000, ` of at most ${MOST_BATCH_COMMANDS}`, MOST_BATCH_COMMANDS),
  maxBatchBytes: count(8_000, ` of at most ${MOST_BATCH_BYTES}`, MOST_BATCH_BYTES),
  maxInFlight: count(10_000),
  maxPending: count<number | undefined>(undefined),
  fastPath: boolean(true),
  shareReads: boolean(false),
  fuseReads: boolean(false),
  cache: {
    byDefault: false,
    check: (value, name) =>
      value !== false && resolve(value === true ? {} : value, name, CACHE_OPTIONS, 'a boolean or an object'),
  },
  splitKeys: boolean(false),
};

const CORK_OPTIONS: Rules<ResolvedCorkOptions> = {
  schedule: OPTIONS.schedule,
  busyPoll: OPTIONS.busyPoll,
  maxBatchBytes: OPTIONS.maxBatchBytes,
};

export const DEFAULT_OPTIONS = resolve({}, 'options', OPTIONS, 'an object');

const CALL_OPTIONS: Rules<CallOptions> = {
  signal: rule(undefined, 'an AbortSignal', isSignal),
  timeout: rule(undefined, 'a number of milliseconds from 1 to 2147483647', isNumber, isFrom(1, 0x7fffffff)),
  cache: boolean(undefined),
};

/** Checks a signal's members, not its class, which test environments replace. */
function isSignal(value: unknown): boolean {
  const { aborted, addEventListener, removeEventListener } = Object(value) as Partial<AbortSignal>;
  return isBoolean(aborted) && typeof addEventListener === 'function' && typeof removeEventListener === 'function';
}

/** Omits prefixes that begin with another one, because Redis refuses overlapping ones. */
function validPrefixes(value: unknown, name: string): readonly string[] {
  const expected = 'an array of one or more strings that are not empty';
  const prefixes = checked<string[]>(value, name, expected, Array.isArray(value) && value.length > 0);
  for (const [index, prefix] of prefixes.entries()) {
    const isText = typeof prefix === 'string' && prefix !== '' && prefix.isWellFormed();
    checked(prefix, `${name}[${index}]`, 'a string that is not empty', isText);
  }
  const isCovered = (prefix: string) => prefixes.some((other) => other !== prefix && prefix.startsWith(other));
  return Object.freeze([...new Set(prefixes)].filter((prefix) => !isCovered(prefix)));
}

/**
 * Checks every key, and fills in the defaults, also for undefined. Refuses a Map, a Date or the like, whose contents
 * are not properties.
 *
 * @param base - used instead of the defaults.
 */
export function resolve<Options extends object>(
  given: unknown,
  name: string,
  rules: Rules<Options>,
  expected: string,
  base?: Options,
): Options {
  if (!/^\[object (Object|Module)\]$/.test(Object.prototype.toString.call(given))) {
    throw wrongOption(`${name} must be ${expected}, got ${describeType(given)}`);
  }
  const known = Object.keys(rules) as (string & keyof Options)[];
  for (const key of Object.keys(given as object)) {
    if (Object.hasOwn(rules, key)) continue;
    throw wrongOption(`${name}.${key} is not an option; the options are ${known.join(', ')}`);
  }
  const resolved = {} as Options;
  for (const key of known) {
    const value = (given as Partial<Options>)[key];
    if (value !== undefined) resolved[key] = rules[key].check(value, `${name}.${key}`);
    else resolved[key] = base === undefined ? rules[key].byDefault : base[key];
  }
  return Object.freeze(resolved);
}
