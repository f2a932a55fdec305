import type { Coalescer } from '../handle.js';
import type { CoalescerStats } from '../stats.js';

export type Labels = Readonly<Record<string, string | number>>;

/** A value of a metric, with labels beside the client's own, and what its name has beside the metric's. */
export interface Sample {
  readonly value: number;
  readonly labels?: Labels;
  readonly suffix?: string;
}

/** What it says of one client. */
type Read = (stats: CoalescerStats, coalescer: Coalescer) => number | readonly Sample[];
type Metrics = Readonly<Record<string, readonly [help: string, read: Read]>>;
type Counts = Readonly<Record<string, number>>;

const COUNTERS: Metrics = {
  redis_coalesce_commands_total: [
    'Commands sent, by path: hot (encoded by ioredis-coalesce) or host (encoded by the client itself).',
    ({ commands, hotCommands }) => by('path', { hot: hotCommands, host: commands - hotCommands }),
  ],
  redis_coalesce_fall_throughs_total: [
    'Commands that could take the hot path and were left to the client, by reason.',
    (stats) => by('reason', stats.fallThroughs),
  ],
  redis_coalesce_replies_total: [
    'Replies received, by who decoded them: hot (ioredis-coalesce) or host (the client itself).',
    (stats) => by('path', stats.replies),
  ],
  redis_coalesce_batches_total: ['Batches written, by what flushed them.', (stats) => by('reason', stats.flushReasons)],
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

const GAUGES: Metrics = {
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

const HISTOGRAMS: Metrics = {
  redis_coalesce_batch_size_commands: [
    'Commands in a batch.',
    // Queued commands are in no batch yet. Of the others, at most those of the open batch are not counted yet.
    ({ batchSizes, commands, queued }) => histogram(batchSizes, commands - queued, 1, [0, 14]),
  ],
  redis_coalesce_flush_wait_seconds: [
    'How long the first command of a batch waited for the flush.',
    ({ flushWaits, flushWaitTotal }) => histogram(flushWaits, flushWaitTotal / 1_000, 1_000_000, [4, 20]),
  ],
};

export const METRICS = [
  ['counter', COUNTERS],
  ['gauge', GAUGES],
  ['histogram', HISTOGRAMS],
] as const;

function by(label: string, counts: Counts): Sample[] {
  return Object.entries(counts).map(([of, value]) => ({ value, labels: { [label]: of } }));
}

/**
 * Cumulated, as Prometheus has it.
 *
 * @param counts - by upper bound, a power of two; not cumulated.
 * @param sum - of all values, in the exposed unit.
 * @param scale - how many of the counted unit make one of the exposed one.
 * @param exponents - of the lowest and the highest bound that is exposed.
 */
function histogram(counts: Counts, sum: number, scale: number, [lowest, highest]: [number, number]): Sample[] {
  const upTo = (bound: number) =>
    Object.entries(counts).reduce((total, [upper, count]) => (Number(upper) <= bound ? total + count : total), 0);
  const bounds = Array.from({ length: highest - lowest + 1 }, (_, index) => 2 ** (lowest + index));
  const all = upTo(Number.POSITIVE_INFINITY);
  return [
    ...bounds.map((bound) => ({ suffix: '_bucket', value: upTo(bound), labels: { le: bound / scale } })),
    { suffix: '_bucket', value: all, labels: { le: '+Inf' } },
    { suffix: '_sum', value: sum },
    { suffix: '_count', value: all },
  ];
}
