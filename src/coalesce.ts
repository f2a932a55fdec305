import { attach } from './client/attach.js';
import type { Coalesced } from './handle.js';
import { type CoalesceSetting, resolveSetting } from './options.js';

export { type BatchEvent, CHANNELS, type ConnectionEvent } from './channels.js';
export { CODES, type CodedError } from './errors.js';
export type { ClientCache, Coalesced, Coalescer } from './handle.js';
export type {
  CacheOptions,
  CallOptions,
  CoalesceOptions,
  CoalesceSetting,
  ResolvedCacheOptions,
  ResolvedOptions,
  Schedule,
  ScheduleFunction,
} from './options.js';
export type { CacheStats, CacheUse, CoalescerStats, FallThroughReason, FlushReason } from './stats.js';

/**
 * Makes a client coalesce: commands that are issued one at a time are sent as one batch, and each caller's promise is
 * settled from the batched replies. The client is changed in place and behaves as before in every other way.
 *
 * @param client - a `Redis` or `Cluster` of ioredis 5 or 6 or of iovalkey, connected or not, from any copy of the
 *   package. A client that is already coalesced is returned unchanged, with the options it has. A test's stand-in for a
 *   client, such as one of ioredis-mock, is left unchanged, with an idle `coalescer` and one warning.
 * @param options - see {@link CoalesceOptions}; default: those that the client had before `detach()`, or else all
 *   defaults. With `false` the client stays plain, and has an idle `coalescer`.
 * @returns the same object, with `coalescer` on it.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `client` is not such a client; `COALESCE_ERR_OPTION` for an unknown
 *   option, a wrong type, or `cache` with a client that does not speak RESP3.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export function coalesce<T extends object>(client: T, options?: CoalesceSetting): T & Coalesced {
  attach(client, options === undefined ? undefined : resolveSetting(options, 'options'));
  return client as T & Coalesced;
}
