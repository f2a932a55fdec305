import { isDeepStrictEqual } from 'node:util';
import { advise } from './advise/layer.js';
import { attach } from './attach/attach.js';
import { coalescerOf } from './attach/attachment.js';
import { wrongOption } from './errors.js';
import type { CoalescedClient } from './handle.js';
import { type CoalesceSetting, type ResolvedOptions, resolveSetting } from './options.js';

export type { RoundTrips } from './advise/advisor.js';
export { roundTrips } from './advise/layer.js';
export type { Site } from './advise/sites.js';
export type { Advice, Wait } from './advise/waits.js';
export { type BatchEvent, CHANNELS, type ConnectionEvent } from './channels.js';
export { CODES, type CodedError } from './errors.js';
export type { ClientCache, Coalesced, CoalescedClient, Coalescer } from './handle.js';
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
export type { CacheStats, CacheUse, CoalescerStats, FallbackReason, FlushReason } from './stats.js';

advise();

/**
 * Makes a client coalesce: commands that are issued one at a time are sent as one batch, and each caller's promise is
 * settled from the batched replies. The client is changed in place and behaves as before in every other way.
 *
 * @param client - a `Redis` or `Cluster` of ioredis 5 or 6 or of iovalkey, connected or not, from any copy of the
 *   package. A client that is already coalesced is returned unchanged, with the options it has. A test double for a
 *   client, such as one of ioredis-mock, is left unchanged, with an idle `coalescer` and one warning.
 * @param options - see {@link CoalesceOptions}; default: those that the client had before `detach()`, or else all
 *   defaults. With `false` the client stays plain, and has an idle `coalescer`.
 * @returns the same object, with `coalescer` on it.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `client` is not such a client; `COALESCE_ERR_OPTION` for an unknown
 *   option, a wrong type, `cache` with a client that does not speak RESP3, or an option that differs from that of a
 *   client which is already coalesced.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export function coalesce<T extends object>(client: T, options?: CoalesceSetting): CoalescedClient<T> {
  const resolved = options === undefined ? undefined : resolveSetting(options, 'options');
  attach(client, resolved);
  if (resolved !== undefined) checkSame(client, options as CoalesceSetting, resolved);
  return client as CoalescedClient<T>;
}

/** Throws for options that an already coalesced client does not have. `true` requests no options. */
function checkSame(client: object, given: CoalesceSetting, resolved: ResolvedOptions | false): void {
  const present = coalescerOf(client)?.options;
  if (present === undefined) return;
  const names = Object.entries(given).filter(([, value]) => value !== undefined) as [keyof ResolvedOptions, unknown][];
  const differing = names.filter(([name]) => resolved && !isDeepStrictEqual(resolved[name], present[name]));
  if (resolved && differing.length === 0) return;
  throw wrongOption(
    `the client is coalesced already${resolved ? `, with another ${differing.map(([name]) => name).join(', ')}` : ''}; ` +
      'give options where it is coalesced first, or call client.coalescer.detach() before',
  );
}
