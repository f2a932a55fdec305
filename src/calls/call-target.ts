import type { CommandVariant, FastCommand } from '../commands/fast-commands.js';
import type { Connection, Watched } from '../connection/connection.js';
import type { PendingBound } from '../connection/sending/pending-bound.js';
import type { ClusterRouting } from '../host/cluster.js';
import type { AnyFunction, HasOptions, HostCommandClass } from '../host/types.js';
import type { CallOptions } from '../options.js';
import type { FallbackReason, Stats } from '../stats.js';

/** The name under which a coalesced client or Cluster has its attachment, whichever copy of this package made it. */
export const MARK = Symbol.for('ioredis-coalesce.coalescer');

/** The name of what a plain Cluster has instead, with the option `splitKeys`. */
export const SPLITS = Symbol.for('ioredis-coalesce.splits');

/**
 * What the methods of a client or Cluster call into: its attachment, `ClientAttachment` or `ClusterAttachment`, or the
 * `PlainSplitting` of a Cluster that is not coalesced.
 */
export interface CallTarget {
  readonly client: HasOptions & { sendCommand: AnyFunction };
  readonly commandClass?: HostCommandClass | undefined;
  /** The statistics; undefined for a Cluster that is not coalesced. */
  readonly counters?: Stats;
  /** False after `detach()`. */
  readonly enabled: boolean;
  /** Hands a Cluster a command that failed on its node; undefined for a client. */
  readonly routing?: ClusterRouting;
  /** Splits the calls of a Cluster with the option `splitKeys`. */
  readonly splitter?: KeySplitter | undefined;
  /** What the option `maxPending` bounds: the client's commands; for a Cluster, those in its offline queue. */
  readonly pendingBound?: PendingBound | undefined;
  /** The bound of `maxPending` that commands with this first key are under. */
  pendingBoundFor?(key: unknown): PendingBound | undefined;
  /** Why no command can take the fast path now. */
  fallbackReason(): FallbackReason | undefined;
  /** The connection that a command with this first key can be sent on now, or why it cannot take the fast path. */
  connectionFor(command: FastCommand, key: unknown): Connection | FallbackReason;
  /** How a command that has got this reason is sent nevertheless, watched; undefined if it cannot be. */
  watchedFor?(reason: FallbackReason, command: FastCommand, key: unknown): Watched | undefined;
  /** The name of a blocking command that other commands wait behind, if there is one; none after `detach()`. */
  readonly blockedBy?: string | undefined;
  /** Coalesces a copy that the host's `duplicate(...args)` made, unless it is coalesced already. */
  attachCopy(copy: object, args: readonly unknown[]): void;
}

export interface Marked {
  readonly [MARK]?: CallTarget;
  readonly [SPLITS]?: CallTarget;
}

/** The target of calls on the object that a method is called on, if it has one. */
export function callTargetOf(receiver: unknown): CallTarget | undefined {
  const marked = receiver as Marked | undefined;
  const target = marked?.[MARK] ?? marked?.[SPLITS];
  return target !== undefined && target.client === receiver ? target : undefined;
}

/** Sends a call with keys of several slots as several commands; undefined if it can be sent as it is. */
export interface KeySplitter {
  /** The host's `Command` class, with the fast path or without. */
  readonly commandClass: HostCommandClass;
  /** @param sender - the `Sender` of the whole call, which sends its parts, too. */
  send(
    sender: { readonly variant: CommandVariant },
    given: readonly unknown[],
    call: CallOptions | undefined,
  ): Promise<unknown> | undefined;
}
