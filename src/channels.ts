import { tracingChannel } from 'node:diagnostics_channel';
import type { FlushReason } from './stats.js';
import { debugAttach } from './util/debug.js';

/**
 * Names for `diagnostics_channel.tracingChannel(name)`. Events are synchronous, so `start` and `end` are published for
 * each, with one and the same object; nothing is built while nobody subscribes.
 */
export const CHANNELS = {
  /** A batch is handed to its socket, see {@link BatchEvent}; `end` minus `start` is what that cost. */
  BATCH: 'ioredis-coalesce:batch',
  /** A connection's coalescing changes, see {@link ConnectionEvent}. */
  CONNECTION: 'ioredis-coalesce:connection',
} as const;

/** No arguments of commands, nor their names, are in here. */
export interface BatchEvent {
  /** Commands, those of explicit pipelines and transactions included. */
  readonly size: number;
  /** Of these, the ones that took the hot path. */
  readonly hotCommands: number;
  /** Of these, the ones that the host encoded. */
  readonly hostCommands: number;
  readonly bytes: number;
  readonly reason: FlushReason;
  /** Milliseconds since the batch's first command. */
  readonly waited: number;
  /** `host:port` of the server, or the path of its socket. */
  readonly address: string;
}

export interface ConnectionEvent {
  /**
   * - `attached`: commands of this connection are coalesced from now on.
   * - `downgraded`: from the hot path to the cork alone, see `reason`.
   * - `detached`: it has ended, or `detach()` was called.
   */
  readonly change: 'attached' | 'downgraded' | 'detached';
  /** `hot`: hot path and cork; `cork`: the cork alone; `detached`: neither. */
  readonly mode: 'hot' | 'cork' | 'detached';
  readonly reason?: string;
  readonly address: string;
}

const batch = tracingChannel<BatchEvent>(CHANNELS.BATCH);
const connection = tracingChannel<ConnectionEvent>(CHANNELS.CONNECTION);

/** Whether anyone watches batches. Not `hasSubscribers` of the tracing channel: Node has it since 20.13 only. */
export function watchesBatches(): boolean {
  return batch.start.hasSubscribers || batch.end.hasSubscribers;
}

export function traceBatch(event: BatchEvent, send: () => void): void {
  batch.traceSync(send, event);
}

export function watchesConnections(): boolean {
  return debugAttach.enabled || connection.start.hasSubscribers || connection.end.hasSubscribers;
}

export function reportConnection(event: ConnectionEvent): void {
  const { change, mode, reason, address } = event;
  if (debugAttach.enabled)
    debugAttach('%s: %s, mode %s%s', address, change, mode, reason === undefined ? '' : ` (${reason})`);
  if (connection.start.hasSubscribers || connection.end.hasSubscribers) connection.traceSync(() => {}, event);
}
