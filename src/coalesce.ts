import { attach, notAClient } from './client/attach.js';
import type { Coalesced } from './handle.js';
import { type CoalesceSetting, resolveSetting } from './options.js';

export { type BatchEvent, CHANNELS, type ConnectionEvent } from './channels.js';
export type { Schedule, ScheduleFunction } from './connection/scheduler.js';
export { CODES, type CodedError } from './errors.js';
export type { ClientCache, Coalesced, Coalescer } from './handle.js';
export type {
  CacheOptions,
  CoalesceOptions,
  CoalesceSetting,
  ResolvedCacheOptions,
  ResolvedOptions,
} from './options.js';
export type { CacheStats, CacheUse, CoalescerStats, FallThroughReason, FlushReason } from './stats.js';

/**
 * Makes a client coalesce: commands that are issued one at a time leave as one batch, and each caller's promise is
 * settled from the batched replies. The client is changed in place and stays what it was in every other way.
 *
 * @param client - an ioredis 5 or 6 or iovalkey `Redis` or `Cluster`, connected or not, of whatever copy of the package.
 *   A client that is coalesced already is returned as it is, its options unchanged. A test's stand-in for a client,
 *   such as one of ioredis-mock, stays as it is, with an idle `coalescer` and one warning.
 * @param options - see {@link CoalesceOptions}. With `false` the client stays plain, and has an idle `coalescer`.
 * @returns the same object, with `coalescer` on it.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `client` is not such a client; `COALESCE_ERR_OPTION` for an unknown
 *   option or a wrong type.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export function coalesce<T extends object>(client: T, options?: CoalesceSetting): T & Coalesced {
  const resolved = resolveSetting(options, 'options');
  if (typeof (client as unknown) !== 'object' || client === null) throw notAClient(client);
  attach(client, resolved);
  return client as T & Coalesced;
}
