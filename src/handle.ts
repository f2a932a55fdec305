import type { ResolvedOptions } from './options.js';
import type { CoalescerStats } from './stats.js';

/** The handle on a client's coalescing, at `client.coalescer`. */
export interface Coalescer {
  /** The options in force, defaults filled in; frozen. */
  readonly options: ResolvedOptions;
  /** Counters since `coalesce()`; a copy, cheap enough to take every second. */
  stats(): CoalescerStats;
  /** What is kept of the answers of reads; undefined without the option `cache`. */
  readonly cache: ClientCache | undefined;
  /** Sends the open batch now instead of at its scheduled flush. */
  flush(): void;
  /**
   * Makes the client plain again, at any time. What waits is sent, what is in flight settles. `coalesce()` may be
   * called on it again.
   */
  detach(): void;
}

/** The handle on the answers that a client keeps in memory; see the option `cache`. */
export interface ClientCache {
  /** Forgets everything, replies on their way included. */
  clear(): void;
}

/** What a coalesced client has beside its own. */
export interface Coalesced {
  readonly coalescer: Coalescer;
}
