import { tracingChannel } from 'node:diagnostics_channel';
import { debugAttach } from './debug.js';
import type { FlushReason } from './stats.js';

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
   * - `fell-back`: it is left with the cork (layer 1) alone, see `why`.
   * - `detached`: it has ended, or `detach()` was called.
   */
  readonly change: 'attached' | 'fell-back' | 'detached';
  /** 2 with the hot path, 1 with the cork alone, 0 detached. */
  readonly layer: 0 | 1 | 2;
  readonly why?: string;
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
  const { change, layer, why, address } = event;
  if (debugAttach.enabled)
    debugAttach('%s: %s, layer %d%s', address, change, layer, why === undefined ? '' : ` (${why})`);
  if (connection.start.hasSubscribers || connection.end.hasSubscribers) connection.traceSync(() => {}, event);
}
