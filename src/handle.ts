import { type CallOptions, type ResolvedOptions, withoutCacheUnless } from './options.js';
import type { CoalescerStats } from './stats.js';

/**
 * Controls and shows the coalescing of one client: `client.coalescer`.
 *
 * @typeParam Client - the type of the client.
 */
export interface Coalescer<Client = unknown> {
  /**
   * Whether the client is coalesced. False after `detach()`: `options` and the counters then keep their last values,
   * and `flush()` and `detach()` do nothing. Also false with `coalesce: false`, and for a test double of a client:
   * `stats()` is then all zeros.
   */
  readonly enabled: boolean;
  /** The options as given, including defaults; frozen. */
  readonly options: ResolvedOptions;
  /** A copy of the counters since `coalesce()`; cheap enough to call every second. */
  stats(): CoalescerStats;
  /** The replies to reads that are kept in memory; undefined without the option `cache`. */
  readonly cache: ClientCache | undefined;
  /**
   * Returns a view of the client: it has all the client's commands, and sends them on the same connection with these
   * options. A view with a `timeout` is cheap enough to create per request; a signal costs more, in Node itself. Called
   * on a view, it adds the options to the view's.
   *
   * @throws {TypeError} `COALESCE_ERR_OPTION` for an unknown option or a wrong type.
   * @throws {RangeError} `COALESCE_ERR_OPTION` for a `timeout` out of range.
   */
  withOptions(options: CallOptions): Client;
  /** Sends the pending commands now, instead of at the end of the turn. */
  flush(): void;
  /**
   * Makes the client plain again, at any time. Waiting commands are sent, and commands in flight settle.
   * `coalesce(client)` coalesces it again, with the same options.
   */
  detach(): void;
}

/** The answers that a client keeps in memory; see the option `cache`. */
export interface ClientCache {
  /** Drops all answers, and does not keep the replies to reads that are in flight. */
  clear(): void;
  /**
   * Patterns of reads that `prefetch` has learned, without identities, and how often others follow them.
   */
  patterns(): readonly LearnedPattern[];
}

/** A pattern of reads, such as `get user:*:profile`, and those that follow it, or read the elements of its replies. */
export interface LearnedPattern {
  readonly pattern: string;
  readonly followers: readonly LearnedFollower[];
  readonly elements: readonly LearnedFollower[];
}

export interface LearnedFollower {
  readonly pattern: string;
  /** The share of cases in which it follows, from 0 to 1. */
  readonly share: number;
  readonly isPredicted: boolean;
}

/** The setting of a client, for a copy that may or may not speak RESP3. */
export function settingOf({ coalescer }: Partial<Coalesced>, resp3: boolean): ResolvedOptions | false | undefined {
  if (coalescer?.enabled === false) return false;
  return coalescer && withoutCacheUnless(resp3, coalescer.options);
}

/** The property that `coalesce()` adds to a client. */
export interface Coalesced {
  readonly coalescer: Coalescer<this>;
}

/** A client that `coalesce()` has returned, with `coalescer` on it and on its duplicates. */
export type CoalescedClient<Client> = Duplicating<Client> & Client & Coalesced;

/** The type of `duplicate()`, before the client's own, because TypeScript takes the first signature that fits. */
type Duplicating<Client> = Client extends { duplicate(): infer Copy } ? DuplicatesInto<Copy> : unknown;

interface DuplicatesInto<Copy> {
  duplicate(): CoalescedClient<Copy>;
}
