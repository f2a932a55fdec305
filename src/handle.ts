import type { ResolvedOptions } from './options.js';
import type { CoalescerStats } from './stats.js';

/** The handle on a client's coalescing, at `client.coalescer`. */
export interface Coalescer {
  /** The options in force, defaults filled in; frozen. */
  readonly options: ResolvedOptions;
  /** Counters since `coalesce()`; a copy, cheap enough to take every second. */
  stats(): CoalescerStats;
  /** Sends the open batch now instead of at its scheduled flush. */
  flush(): void;
  /**
   * Makes the client plain again, at any time. What waits is sent, what is in flight settles. `coalesce()` may be
   * called on it again.
   */
  detach(): void;
}

/** What a coalesced client has beside its own. */
export interface Coalesced {
  readonly coalescer: Coalescer;
}
