/**
 * Why a batch was flushed:
 *
 * - `schedule`: its schedule ran;
 * - `size`, `bytes`: it reached `maxBatchSize`, `maxBatchBytes`;
 * - `age`: on the cork, it was open for more than 0.1 ms when a command was added;
 * - `part`: a large turn is sent in parts, as Redis is near;
 * - `script`: a script was added to a batch that was open for more than 40 µs;
 * - `capacity`: replies made room under `maxInFlight`;
 * - `large`: the next write by the host is larger than `maxBatchBytes`;
 * - `end`, `exit`: the connection, or the process, is about to end;
 * - `idle`: the cork's first write of a turn, if data arrived since the last write;
 * - `manual`: `coalescer.flush()` was called.
 */
export type FlushReason = keyof typeof NO_FLUSHES;

const NO_FLUSHES = {
  schedule: 0,
  idle: 0,
  size: 0,
  part: 0,
  bytes: 0,
  age: 0,
  script: 0,
  capacity: 0,
  large: 0,
  end: 0,
  exit: 0,
  manual: 0,
};

/**
 * Why a command that could take the fast path was left to the host. An explicit pipeline or transaction that was left
 * to the host as a whole counts once:
 *
 * - `connection`: not ready, ending, or just attached while connected; a temporary state;
 * - `downgraded`: the client decodes all replies: one could not be read here, or the stream's `write` was replaced;
 * - `subscriber`: RESP2 subscriber mode;
 * - `options`: `enableAutoPipelining` is set, or `showFriendlyErrorStack` was switched on later. If
 *   `showFriendlyErrorStack` is set from the start, no method of ours is on the callers' stack, and nothing is counted;
 * - `patched`: the method, or the client's own `sendCommand`, is not the host's; or tracers wrap `sendCommand`, and
 *   the call is a pipeline, has a callback or options, or the client has a cache;
 * - `traced`: the same with a subscriber of the channel `ioredis:command`, or `ioredis:batch` for transactions;
 * - `arguments`: one is not a string, finite number or Buffer, or only the host can apply `keyPrefix`;
 * - `transformer`: an argument transformer threw, or only the host can apply it;
 * - `routing`: a Cluster's command whose first argument is not a key, whose slot is not known yet, or whose node is
 *   chosen by a function (`scaleReads`);
 * - `command`: an explicit pipeline or transaction holds one that changes the client's state, such as `select`.
 */
export type FallbackReason = keyof typeof NO_FALLBACKS;

const NO_FALLBACKS = {
  connection: 0,
  downgraded: 0,
  subscriber: 0,
  options: 0,
  patched: 0,
  traced: 0,
  arguments: 0,
  transformer: 0,
  routing: 0,
  command: 0,
};

/** A copy of a client's counters since `coalesce()`, as plain data. */
export interface CoalescerStats {
  /**
   * - `fast`: commands take the fast path, or fall back (`fallbacks`);
   * - `cork`: one write per turn, through public APIs only. `commands` counts writes (a pipeline is one), `inFlight` is
   *   0;
   * - `plain`: the client is not coalesced.
   */
  readonly mode: Mode;
  /** Commands sent, those of explicit pipelines and transactions included. */
  readonly commands: number;
  /** Of these, the ones that took the fast path. */
  readonly fastCommands: number;
  /** Of the fast ones, those that passed through tracers over `sendCommand`, or were published on `ioredis:command`. */
  readonly observedCommands: number;
  /** Flushes that wrote something. */
  readonly batches: number;
  /** Bytes of commands handed to the socket. */
  readonly bytesWritten: number;
  /** Reads answered by the reply to an identical read (`shareReads`); they are not counted in `commands`. */
  readonly sharedReads: number;
  /** Commands sent within an MGET or HMGET (`fuseReads`). */
  readonly fusedReads: number;
  /** Calls refused because of `maxPending`; a pipeline or transaction is one call. */
  readonly refusedCalls: number;
  /** Commands that await their reply, sent or not. */
  readonly inFlight: number;
  /** Of these, the ones whose bytes wait for room under `maxInFlight`. */
  readonly queued: number;
  /** Batches by size: the key is the upper bound of commands (`'1'`, `'2'`, `'4'`, …), the value counts batches. */
  readonly batchSizes: Readonly<Record<string, number>>;
  /**
   * Batches by how long their first command waited for the flush: the key is the upper bound in microseconds (`'1'`,
   * `'2'`, `'4'`, …).
   */
  readonly flushWaits: Readonly<Record<string, number>>;
  /** The sum of these waits, in milliseconds. */
  readonly flushWaitTotal: number;
  /** Batches by flush reason. */
  readonly flushReasons: Readonly<Record<FlushReason, number>>;
  /** Turns of the event loop after which it polled for replies instead of waiting (`busyPoll`). */
  readonly polledTurns: number;
  /** Of these, the ones for which a reply came in that time. */
  readonly polledTurnsAnswered: number;
  /** Commands that could take the fast path and were left to the host, by reason. */
  readonly fallbacks: Readonly<Record<FallbackReason, number>>;
  /** Replies by decoder: this package (`fast`) or the host (`fallback`). */
  readonly replies: { readonly fast: number; readonly fallback: number };
  /** Only with the option `cache`. */
  readonly cache?: CacheStats;
  /** The package and its version, if the client is corked because they are unknown. */
  readonly unknownClient?: string;
}

export type Mode = 'fast' | 'cork' | 'plain';

/** Reads answered from memory, and the answers that are kept. */
export interface CacheStats extends CacheUse {
  /** Reads answered from memory; they are not counted in `commands`. */
  readonly hits: number;
  /** Reads that could have been answered from memory, and were sent. */
  readonly misses: number;
  /**
   * Of these, the ones whose answer was in memory but could not be used yet: a script, an unknown command, one that may
   * show any key, or another read of the key is in flight, or a message has just arrived.
   */
  readonly held: number;
  /** Answers removed because their key, or all keys, have changed. */
  readonly invalidations: number;
  /** Answers removed for lack of room. */
  readonly evictions: number;
  /** Reads sent before a caller issued them (`prefetch`), and those of them whose answer a caller got. */
  readonly predicted: number;
  readonly predictionsUsed: number;
}

/** Current size of the caches of a client's connections. */
export interface CacheUse {
  /** Answers kept. */
  readonly entries: number;
  /** Approximate bytes of memory that they take. */
  readonly bytes: number;
}

/** Buckets of a histogram: their upper bounds are 2^0 to 2^31. */
const BUCKETS = 32;

/** The counters behind `coalescer.stats()`; one per client, fed by each of its connections in turn. */
export class Stats {
  commands = 0;
  fastCommands = 0;
  observedCommands = 0;
  batches = 0;
  bytesWritten = 0;
  sharedReads = 0;
  fusedReads = 0;
  refusedCalls = 0;
  polledTurns = 0;
  polledTurnsAnswered = 0;
  fastReplies = 0;
  fallbackReplies = 0;
  readonly cache = { hits: 0, misses: 0, held: 0, invalidations: 0, evictions: 0, predicted: 0, predictionsUsed: 0 };
  #flushWaitTotal = 0;
  readonly #sizes = new Array<number>(BUCKETS).fill(0);
  readonly #waits = new Array<number>(BUCKETS).fill(0);
  readonly #flushes = { ...NO_FLUSHES };
  readonly #fallbacks = { ...NO_FALLBACKS };

  /** Returns the number of fallbacks for this reason. */
  countFallback(reason: FallbackReason): number {
    return ++this.#fallbacks[reason];
  }

  /** @param waited - milliseconds from the batch's first command. */
  flushed(reason: FlushReason, commands: number, bytes: number, waited: number): void {
    this.batches += 1;
    this.bytesWritten += bytes;
    this.#flushes[reason] += 1;
    this.#flushWaitTotal += waited;
    count(this.#sizes, commands);
    count(this.#waits, Math.ceil(waited * 1000));
  }

  /** @param cache - the size of the caches; undefined without the option `cache`. */
  snapshot(mode: Mode, inFlight = 0, queued = 0, cache?: CacheUse): CoalescerStats {
    const { fastReplies, fallbackReplies, cache: counts, ...counters } = this;
    return {
      mode,
      ...counters,
      inFlight,
      queued,
      batchSizes: histogram(this.#sizes),
      flushWaits: histogram(this.#waits),
      flushWaitTotal: this.#flushWaitTotal,
      flushReasons: { ...this.#flushes },
      fallbacks: { ...this.#fallbacks },
      replies: { fast: fastReplies, fallback: fallbackReplies },
      ...(cache && { cache: { ...counts, ...cache } }),
    };
  }
}

/** Counts an integer under the exponent of the smallest power of two that is not below it. */
function count(buckets: number[], value: number): void {
  // `clz32` takes 32 bits: larger values go into the last bucket.
  const bucket = value > 1 ? Math.min(32 - Math.clz32(Math.min(value, 2 ** 31) - 1), BUCKETS - 1) : 0;
  buckets[bucket] = (buckets[bucket] ?? 0) + 1;
}

function histogram(buckets: readonly number[]): Record<string, number> {
  const counts: Record<string, number> = {};
  buckets.forEach((batches, bucket) => {
    if (batches > 0) counts[String(2 ** bucket)] = batches;
  });
  return counts;
}
