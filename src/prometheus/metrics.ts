import { CODES, withCode } from '../errors.js';
import type { CoalescerStats } from '../stats.js';

/** The source of one client's metrics. */
export interface Reading {
  readonly stats: CoalescerStats;
  readonly maxInFlight: number;
  /** Whether the client is coalesced now. */
  readonly attached: boolean;
}

/** Counts by the value of one label, or a number alone. */
type Values = number | Readonly<Record<string, number>>;

interface MetricOf<Type extends string> {
  readonly type: Type;
  readonly name: string;
  readonly help: string;
}

/** A counter or gauge. */
export interface ScalarMetric extends MetricOf<'counter' | 'gauge'> {
  /** In addition to the client's own labels. */
  readonly label?: string;
  read(reading: Reading): Values;
}

/** A histogram that is counted elsewhere, in buckets whose bounds are powers of two. */
export interface HistogramMetric extends MetricOf<'histogram'> {
  /** How many of the counted unit make one of the exposed one. */
  readonly scale: number;
  /** The exponents of the lowest and the highest bound that is exposed. */
  readonly exponents: readonly [number, number];
  /** Counts by upper bound, not cumulated, and the sum of all values in the exposed unit. */
  read(reading: Reading): { readonly counts: Readonly<Record<string, number>>; readonly sum: number };
}

export type MetricDefinition = ScalarMetric | HistogramMetric;

const MICROSECONDS_PER_SECOND = 1_000_000;
const MILLISECONDS_PER_SECOND = 1_000;

export const METRICS: readonly MetricDefinition[] = [
  {
    type: 'counter',
    name: 'redis_coalesce_commands_total',
    help: 'Commands sent, by path: hot (encoded by ioredis-coalesce) or host (encoded by the client itself).',
    label: 'path',
    read: ({ stats }) => ({ hot: stats.hotCommands, host: stats.commands - stats.hotCommands }),
  },
  {
    type: 'counter',
    name: 'redis_coalesce_fall_throughs_total',
    help: 'Commands that could take the hot path and were left to the client, by reason.',
    label: 'reason',
    read: ({ stats }) => stats.fallThroughs,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_replies_total',
    help: 'Replies received, by who decoded them: hot (ioredis-coalesce) or host (the client itself).',
    label: 'path',
    read: ({ stats }) => ({ ...stats.replies }),
  },
  {
    type: 'counter',
    name: 'redis_coalesce_batches_total',
    help: 'Batches written, by what flushed them.',
    label: 'reason',
    read: ({ stats }) => stats.flushReasons,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_polled_turns_total',
    help: 'Turns after which the event loop looked for the replies instead of waiting (option busyPoll).',
    read: ({ stats }) => stats.polledTurns,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_polled_turns_answered_total',
    help: 'Of the polled turns, the ones for which a reply came in that time.',
    read: ({ stats }) => stats.polledTurnsAnswered,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_written_bytes_total',
    help: 'Bytes of commands handed to the socket.',
    read: ({ stats }) => stats.bytesWritten,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_shared_reads_total',
    help: 'Reads answered by the reply to an identical one (option shareReads); they are not among the commands sent.',
    read: ({ stats }) => stats.sharedReads,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_cache_hits_total',
    help: 'Reads answered from memory (option cache); they are not among the commands sent.',
    read: ({ stats }) => stats.cache?.hits ?? 0,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_cache_misses_total',
    help: 'Reads that could have been answered from memory and were sent.',
    read: ({ stats }) => stats.cache?.misses ?? 0,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_cache_held_total',
    help: 'Of these, reads whose answer was in memory and could not be used yet.',
    read: ({ stats }) => stats.cache?.held ?? 0,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_cache_invalidations_total',
    help: 'Answers removed from memory because their key has changed, or all keys have.',
    read: ({ stats }) => stats.cache?.invalidations ?? 0,
  },
  {
    type: 'counter',
    name: 'redis_coalesce_cache_evictions_total',
    help: 'Answers removed from memory for lack of room.',
    read: ({ stats }) => stats.cache?.evictions ?? 0,
  },
  {
    type: 'gauge',
    name: 'redis_coalesce_cache_entries',
    help: 'Answers kept in memory.',
    read: ({ stats }) => stats.cache?.entries ?? 0,
  },
  {
    type: 'gauge',
    name: 'redis_coalesce_cache_bytes',
    help: 'Approximate bytes of the answers kept in memory.',
    read: ({ stats }) => stats.cache?.bytes ?? 0,
  },
  {
    type: 'gauge',
    name: 'redis_coalesce_in_flight_commands',
    help: 'Commands that await their reply, sent or not.',
    read: ({ stats }) => stats.inFlight,
  },
  {
    type: 'gauge',
    name: 'redis_coalesce_queued_commands',
    help: 'Of the commands in flight, the ones that wait for room under maxInFlight.',
    read: ({ stats }) => stats.queued,
  },
  {
    type: 'gauge',
    name: 'redis_coalesce_max_in_flight_commands',
    help: 'The option maxInFlight, which limits each connection.',
    read: ({ maxInFlight }) => maxInFlight,
  },
  {
    type: 'gauge',
    name: 'redis_coalesce_attached',
    help: 'Whether the client is coalesced: 1, or 0 after detach().',
    read: ({ attached }) => Number(attached),
  },
  {
    type: 'histogram',
    name: 'redis_coalesce_batch_size_commands',
    help: 'Commands in a batch.',
    scale: 1,
    exponents: [0, 14],
    // Queued commands are in no batch yet. Of the others, at most those of the open batch are not counted yet.
    read: ({ stats }) => ({ counts: stats.batchSizes, sum: stats.commands - stats.queued }),
  },
  {
    type: 'histogram',
    name: 'redis_coalesce_flush_wait_seconds',
    help: 'How long the first command of a batch waited for the flush.',
    scale: MICROSECONDS_PER_SECOND,
    exponents: [4, 20],
    read: ({ stats }) => ({ counts: stats.flushWaits, sum: stats.flushWaitTotal / MILLISECONDS_PER_SECOND }),
  },
];

export function wrongOption(message: string): Error {
  return withCode(new TypeError(`ioredis-coalesce: ${message}`), CODES.OPTION);
}
