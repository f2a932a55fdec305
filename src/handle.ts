import { type CallOptions, type ResolvedOptions, withoutCacheUnless } from './options.js';
import type { CoalescerStats } from './stats.js';

/**
 * The handle on a client's coalescing, at `client.coalescer`.
 *
 * @typeParam Client - the type of the client.
 */
export interface Coalescer<Client = unknown> {
  /**
   * Whether the client is coalesced. False after `detach()`, when `options` and the counters of `stats()` are the last
   * ones, and `flush()` and `detach()` do nothing. Also false with `coalesce: false` and for a test double for a
   * client: then all figures of `stats()` are zero.
   */
  readonly enabled: boolean;
  /** The options in force, defaults filled in; frozen. */
  readonly options: ResolvedOptions;
  /** A copy of the counters since `coalesce()`; cheap enough to take every second. */
  stats(): CoalescerStats;
  /** The replies to reads that are kept in memory; undefined without the option `cache`. */
  readonly cache: ClientCache | undefined;
  /**
   * A view of the client: it has all its commands, and sends them on its connection, with these options. Cheap enough
   * to make one per request with a `timeout`; a signal has its cost in Node. On a view, the options are added to those
   * of the view.
   *
   * @throws {TypeError} `COALESCE_ERR_OPTION` for an unknown option or a wrong type.
   * @throws {RangeError} `COALESCE_ERR_OPTION` for a `timeout` out of range.
   */
  withOptions(options: CallOptions): Client;
  /** Sends the open batch now instead of at its scheduled flush. */
  flush(): void;
  /**
   * Makes the client plain again, at any time. Pending bytes and the backlog are sent, and commands in flight settle.
   * `coalesce(client)` coalesces it again, with the same options.
   */
  detach(): void;
}

/** The handle on the answers that a client keeps in memory; see the option `cache`. */
export interface ClientCache {
  /** Forgets every answer, and keeps no reply to a read that was sent before. */
  clear(): void;
  /**
   * What `prefetch` has learned: forms of reads, without identities, and in which share of cases which others follow.
   */
  forms(): readonly LearnedForm[];
}

/** A form of reads, as `get user:*:profile`, and the forms that follow it, or read the elements of its replies. */
export interface LearnedForm {
  readonly form: string;
  readonly followers: readonly LearnedFollower[];
  readonly elements: readonly LearnedFollower[];
}

export interface LearnedFollower {
  readonly form: string;
  /** Of the cases. */
  readonly share: number;
  readonly isPredicted: boolean;
}

/** The setting of a client, for a copy of it that speaks RESP3 or does not. */
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

/** The type of `duplicate()`, in front of the client's own: the first of several signatures that fits is taken. */
type Duplicating<Client> = Client extends { duplicate(): infer Copy } ? DuplicatesInto<Copy> : unknown;

interface DuplicatesInto<Copy> {
  duplicate(): CoalescedClient<Copy>;
}
