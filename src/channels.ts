import { tracingChannel } from 'node:diagnostics_channel';
import debug from 'debug';
import type { FlushReason } from './stats.js';

/**
 * `DEBUG=ioredis-coalesce:*` prints attachments, flushes and fallbacks, through the package `debug`, as ioredis
 * does. No arguments of commands are printed.
 */
export const debugAttach = debug('ioredis-coalesce:attach');
export const debugFlush = debug('ioredis-coalesce:flush');
export const debugFallback = debug('ioredis-coalesce:fallback');

/**
 * Names of our own channels, for `diagnostics_channel.tracingChannel(name)`. Events are synchronous, so each publishes
 * `start` and `end` with the same object. Without subscribers no event is created. For the host's channel, see
 * `host/state.ts`.
 */
export const CHANNELS = {
  /** A batch is handed to its socket, see {@link BatchEvent}; the time from `start` to `end` is its cost. */
  BATCH: 'ioredis-coalesce:batch',
  /** A connection's coalescing changes, see {@link ConnectionEvent}. */
  CONNECTION: 'ioredis-coalesce:connection',
} as const;

/** One batch. Contains neither names nor arguments of commands. */
export interface BatchEvent {
  /** Commands, those of explicit pipelines and transactions included. */
  readonly size: number;
  /** Of these, the ones that took the fast path. */
  readonly fastCommands: number;
  /** Of these, the ones that the host encoded. */
  readonly fallbackCommands: number;
  readonly bytes: number;
  readonly reason: FlushReason;
  /** Milliseconds since the batch's first command, with fractions. */
  readonly waited: number;
  /** `host:port` of the server, or the path of its socket. */
  readonly address: string;
}

export interface ConnectionEvent {
  /**
   * - `attached`: commands of this connection are coalesced from now on.
   * - `downgraded`: the client decodes all replies from now on, see `reason`.
   * - `detached`: the connection has ended, or `detach()` was called.
   */
  readonly change: 'attached' | 'downgraded' | 'detached';
  /** `fast`: the fast path; `cork`: the cork, or a connection that was downgraded; `detached`: neither. */
  readonly mode: 'fast' | 'cork' | 'detached';
  readonly reason?: string;
  readonly address: string;
}

const batch = tracingChannel<BatchEvent>(CHANNELS.BATCH);
const connection = tracingChannel<ConnectionEvent>(CHANNELS.CONNECTION);

/** Whether batches have a subscriber. Tracing channels have `hasSubscribers` only since Node 20.13. */
export function hasBatchSubscribers(): boolean {
  return batch.start.hasSubscribers || batch.end.hasSubscribers;
}

export function traceBatch(event: BatchEvent, send: () => void): void {
  batch.traceSync(send, event);
}

/**
 * @param of - has the server's address, which is read only if there are subscribers.
 * @param reason - why it is not on the fast path; undefined if it is.
 */
export function reportConnection(
  of: { readonly address: string },
  change: ConnectionEvent['change'],
  reason: string | undefined,
): void {
  const hasSubscribers = connection.start.hasSubscribers || connection.end.hasSubscribers;
  if (!hasSubscribers && !debugAttach.enabled) return;
  const { address } = of;
  const mode = change === 'detached' ? 'detached' : reason === undefined ? 'fast' : 'cork';
  debugAttach('%s: %s, mode %s%s', address, change, mode, reason === undefined ? '' : ` (${reason})`);
  if (hasSubscribers)
    connection.traceSync(() => {}, { change, mode, ...(reason !== undefined && { reason }), address });
}
