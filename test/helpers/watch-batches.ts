import { tracingChannel } from 'node:diagnostics_channel';
import { type BatchEvent, CHANNELS } from 'ioredis-coalesce/coalesce';
import { onTestFinished } from 'vitest';

/** When a subscriber is told of a batch: before it is handed to the socket, or after. */
export type Moment = 'start' | 'end';
export const MOMENTS = ['start', 'end'] as const;

/** Subscribes to the batches of all clients until the running test ends. */
export function watchBatches(moment: Moment, listener: (event: BatchEvent) => void): void {
  const channel = tracingChannel<string, BatchEvent>(CHANNELS.BATCH)[moment];
  const onEvent = (event: unknown): void => listener(event as BatchEvent);
  channel.subscribe(onEvent);
  onTestFinished(() => void channel.unsubscribe(onEvent));
}
