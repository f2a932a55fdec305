import type { Coalescer } from '../handle.js';
import type { CoalescerStats } from '../stats.js';

/** Reads a metric of one client. */
type Read<Value> = (stats: CoalescerStats, coalescer: Coalescer) => Value;

/** `label` tells the counts of one metric apart, in addition to the client's own labels. */
type Scalar = readonly [help: string, read: Read<number>] | readonly [help: string, read: Read<Counts>, label: string];
type Counts = Readonly<Record<string, number>>;

/** A histogram that is counted elsewhere, in buckets whose bounds are powers of two. */
export interface HistogramMetric {
  readonly help: string;
  /** How many of the counted unit make one of the exposed one. */
  readonly scale: number;
  /** The exponents of the lowest and the highest bound that is exposed. */
  readonly exponents: readonly [number, number];
  /** Counts by upper bound, not cumulated, and the sum of all values in the exposed unit. */
  read: Read<{ readonly counts: Counts; readonly sum: number }>;
}

const MICROSECONDS_PER_SECOND = 1_000_000;
const MILLISECONDS_PER_SECOND = 1_000;

export const COUNTERS: Readonly<Record<string, Scalar>> = {
  redis_coalesce_commands_total: [
    'Commands sent, by path: hot (encoded by ioredis-coalesce) or host (encoded by the client itself).',
    ({ commands, hotCommands }) => ({ hot: hotCommands, host: commands - hotCommands }),
    'path',
  ],
  redis_coalesce_fall_throughs_total: [
    'Commands that could take the hot path and were left to the client, by reason.',
    (stats) => stats.fallThroughs,
    'reason',
  ],
  redis_coalesce_replies_total: [
    'Replies received, by who decoded them: hot (ioredis-coalesce) or host (the client itself).',
    (stats) => stats.replies,
    'path',
  ],
  redis_coalesce_batches_total: ['Batches written, by what flushed them.', (stats) => stats.flushReasons, 'reason'],
  redis_coalesce_polled_turns_total: [
    'Turns after which the event loop looked for the replies instead of waiting (option busyPoll).',
    (stats) => stats.polledTurns,
  ],
  redis_coalesce_polled_turns_answered_total: [
    'Of the polled turns, the ones for which a reply came in that time.',
    (stats) => stats.polledTurnsAnswered,
  ],
  redis_coalesce_written_bytes_total: ['Bytes of commands handed to the socket.', (stats) => stats.bytesWritten],
  redis_coalesce_shared_reads_total: [
    'Reads answered by the reply to an identical one (option shareReads); they are not among the commands sent.',
    (stats) => stats.sharedReads,
  ],
  redis_coalesce_cache_hits_total: [
    'Reads answered from memory (option cache); they are not among the commands sent.',
    ({ cache }) => cache?.hits ?? 0,
  ],
  redis_coalesce_cache_misses_total: [
    'Reads that could have been answered from memory and were sent.',
    ({ cache }) => cache?.misses ?? 0,
  ],
  redis_coalesce_cache_held_total: [
    'Of these, reads whose answer was in memory and could not be used yet.',
    ({ cache }) => cache?.held ?? 0,
  ],
  redis_coalesce_cache_invalidations_total: [
    'Answers removed from memory because their key has changed, or all keys have.',
    ({ cache }) => cache?.invalidations ?? 0,
  ],
  redis_coalesce_cache_evictions_total: [
    'Answers removed from memory for lack of room.',
    ({ cache }) => cache?.evictions ?? 0,
  ],
};

export const GAUGES: Readonly<Record<string, Scalar>> = {
  redis_coalesce_cache_entries: ['Answers kept in memory.', ({ cache }) => cache?.entries ?? 0],
  redis_coalesce_cache_bytes: ['Approximate bytes of the answers kept in memory.', ({ cache }) => cache?.bytes ?? 0],
  redis_coalesce_in_flight_commands: ['Commands that await their reply, sent or not.', (stats) => stats.inFlight],
  redis_coalesce_queued_commands: [
    'Of the commands in flight, the ones that wait for room under maxInFlight.',
    (stats) => stats.queued,
  ],
  redis_coalesce_max_in_flight_commands: [
    'The option maxInFlight, which limits each connection.',
    (_, { options }) => options.maxInFlight,
  ],
  redis_coalesce_attached: [
    'Whether the client is coalesced: 1, or 0 after detach().',
    (_, { enabled }) => Number(enabled),
  ],
};

export const HISTOGRAMS: Readonly<Record<string, HistogramMetric>> = {
  redis_coalesce_batch_size_commands: {
    help: 'Commands in a batch.',
    scale: 1,
    exponents: [0, 14],
    // Queued commands are in no batch yet. Of the others, at most those of the open batch are not counted yet.
    read: ({ batchSizes, commands, queued }) => ({ counts: batchSizes, sum: commands - queued }),
  },
  redis_coalesce_flush_wait_seconds: {
    help: 'How long the first command of a batch waited for the flush.',
    scale: MICROSECONDS_PER_SECOND,
    exponents: [4, 20],
    read: (stats) => ({ counts: stats.flushWaits, sum: stats.flushWaitTotal / MILLISECONDS_PER_SECOND }),
  },
};
