/** The errors and warnings of this package, with their codes. Failed commands keep the host's own errors. */
import { processWide } from './util/process-wide.js';

/** Stable codes of the errors and warnings this package raises. */
export const CODES = {
  /** An option is unknown, of the wrong type or out of range. */
  OPTION: 'COALESCE_ERR_OPTION',
  /** The argument of `coalesce()` or `cork()` is not a supported client, or that of `corkStream()` not a stream. */
  CLIENT: 'COALESCE_ERR_CLIENT',
  /** A reply exceeds `REPLY_LIMITS` or would go to the wrong caller; the client emits it as `error`. */
  REPLY: 'COALESCE_ERR_REPLY',
  /** A call was refused, because `maxPending` commands already await their reply. */
  PENDING: 'COALESCE_ERR_PENDING',
  /** A client is in cork mode because of its configuration, so options that need fast mode are ignored. */
  CORK: 'COALESCE_WARN_CORK',
  /** The client's release was not recognized, so it is in cork mode. */
  UNKNOWN_CLIENT: 'COALESCE_WARN_UNKNOWN_CLIENT',
  /** The client has `enableAutoPipelining` on, so its commands stay with the client and are not coalesced. */
  AUTO_PIPELINING: 'COALESCE_WARN_AUTO_PIPELINING',
  /** Commands wait behind a blocking one on a connection that they share with it. */
  BLOCKING: 'COALESCE_WARN_BLOCKING',
  /** A test double for a client was passed to `coalesce()`, and is left unchanged. */
  TEST_DOUBLE: 'COALESCE_WARN_TEST_DOUBLE',
  /** The server does not report changed keys, or not reliably, so nothing is cached. */
  CACHE: 'COALESCE_WARN_CACHE',
  /** For a minute, scripts have blocked most answers of a cache; `scripts: 'keys'` would help. */
  CACHE_HELD: 'COALESCE_WARN_CACHE_HELD',
  /** Other code has replaced a function of the client; until it is restored, the client handles its own commands. */
  REPLACED: 'COALESCE_WARN_REPLACED',
  /** A client under load has had no fast command for a minute, for a reason that a setting can fix. */
  NOT_FAST: 'COALESCE_WARN_NOT_FAST',
  /** `fuseReads` has no effect: with `cache`, or on a connection whose user the server refuses MGET or HMGET. */
  FUSE: 'COALESCE_WARN_FUSE',
  /** The environment variable `IOREDIS_COALESCE` has an unknown value, so clients stay plain. */
  ENVIRONMENT: 'COALESCE_WARN_ENVIRONMENT',
} as const;

/** An Error with a stable `code`. */
export type CodedError<T extends Error = Error> = T & { readonly code: string };

/** An error of this package. As in Node's own errors, `code` is an own enumerable property. */
export function coded<T extends Error>(make: new (message: string) => T, code: string, message: string): CodedError<T> {
  return Object.assign(new make(`ioredis-coalesce: ${message}`), { code });
}

/** A `COALESCE_ERR_OPTION`. */
export function wrongOption(message: string, make: new (message: string) => Error = TypeError): CodedError {
  return coded(make, CODES.OPTION, message);
}

/** `a string`, `an array`: the type of a value that may contain a password. */
export function describeType(value: unknown): string {
  return typeof value === 'string' ? 'a string' : describe(value);
}

/** `-1 (number)`, `"abc" (string)`, `null`: a value as the messages of this package quote it, cut at 60 characters. */
export function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === 'function') return 'a function';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array';
  if (typeof value === 'object') return `an object (${value.constructor?.name || 'no constructor'})`;
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return `${text.length > 60 ? `${text.slice(0, 60)}…` : text} (${typeof value})`;
}

const warned = processWide('warned', () => new Set<string>());

/** Emits a process warning with a stable code, once per process and text. */
export function warnOnce(code: string, message: string): void {
  const key = `${code}:${message}`;
  if (warned.has(key)) return;
  warned.add(key);
  process.emitWarning(message, { type: 'CoalesceWarning', code });
}
