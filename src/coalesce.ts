import { ClientAttachment } from './client/client-attachment.js';
import { ClusterAttachment } from './client/cluster-attachment.js';
import { CODES, describeType, withCode } from './errors.js';
import type { Coalesced } from './handle.js';
import { isHostCluster } from './host/cluster.js';
import { isHostClient } from './host/probe.js';
import type { HostClient } from './host/types.js';
import { type CoalesceOptions, resolveOptions } from './options.js';

export { type BatchEvent, CHANNELS, type ConnectionEvent } from './channels.js';
export type { Schedule, ScheduleFunction } from './connection/scheduler.js';
export { CODES, type CodedError } from './errors.js';
export type { ClientCache, Coalesced, Coalescer } from './handle.js';
export type { CacheOptions, CoalesceOptions, ResolvedCacheOptions, ResolvedOptions } from './options.js';
export type { CacheStats, CacheUse, CoalescerStats, FallThroughReason, FlushReason } from './stats.js';

/**
 * Makes a client coalesce: commands that are issued one at a time leave as one batch, and each caller's promise is
 * settled from the batched replies. The client is changed in place and stays what it was in every other way.
 *
 * @param client - an ioredis 5 or 6 or iovalkey `Redis` or `Cluster`, connected or not, of whatever copy of the package. A client
 *   that is coalesced already is returned as it is, its options unchanged.
 * @param options - see {@link CoalesceOptions}.
 * @returns the same object, with `coalescer` on it.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `client` is not such a client; `COALESCE_ERR_OPTION` for an unknown
 *   option or a wrong type.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export function coalesce<T extends object>(client: T, options?: CoalesceOptions): T & Coalesced {
  const resolved = resolveOptions(options);
  if (!isHostClient(client as unknown)) {
    throw withCode(
      new TypeError(
        `coalesce() expects an ioredis or iovalkey client, such as new Redis() or new Cluster(), got ${describeType(client as unknown)}`,
      ),
      CODES.CLIENT,
    );
  }
  if (isHostCluster(client)) ClusterAttachment.attach(client, resolved);
  else ClientAttachment.attach(client as unknown as HostClient, resolved);
  return client as T & Coalesced;
}
