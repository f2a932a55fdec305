import type { FastCommand } from '../commands/fast-commands.js';
import type { ClusterRouting } from '../host/cluster.js';
import type { AnyFunction, HasOptions, HostCommandClass } from '../host/types.js';
import type { FallbackReason, Stats } from '../stats.js';
import type { Admission } from './features.js';
import type { Dispatcher, Outgoing } from './outgoing.js';

/** The property that holds the attachment of a coalesced client, whichever copy of this package made it. */
export const MARK = Symbol.for('ioredis-coalesce.coalescer');

/** What the methods of a client or Cluster call into: its attachment, `ClientAttachment` or `ClusterAttachment`. */
export interface CallTarget {
  readonly client: HasOptions & { sendCommand: AnyFunction };
  readonly commandClass: HostCommandClass | undefined;
  readonly counters: Stats;
  /** False after `detach()`. */
  readonly enabled: boolean;
  /** Hands a Cluster a command that failed on its node; undefined for a client. */
  readonly routing?: ClusterRouting;
  /** `maxPending` of a client, or of a Cluster's calls that have no node yet; undefined without it. */
  readonly admission: Admission | undefined;
  /** `maxPending` of the node that a call with this first key goes to: maybe a replica, if the call only reads. */
  admissionFor(key: unknown, readOnly: boolean): Admission | undefined;
  /** Why no command can take the fast path now. */
  fallbackReason(): FallbackReason | undefined;
  /** The connection that a command with this first key can be sent on now, or why it cannot take the fast path. */
  outgoingFor(command: FastCommand, key: unknown): Outgoing | FallbackReason;
  /**
   * Like `outgoingFor`, for a single call. If others observe the call, returns a dispatcher that lets them see it; or,
   * without `mayBeSeen`, the reason to fall back.
   */
  dispatcherFor(command: FastCommand, key: unknown, mayBeSeen: boolean): Dispatcher | FallbackReason;
  /** The name of a blocking command that other commands wait behind, if there is one; none after `detach()`. */
  readonly blockedBy: string | undefined;
  /** Coalesces a copy that the host's `duplicate(...args)` made, unless it is coalesced already. */
  attachCopy(copy: object, args: readonly unknown[]): void;
}

export interface Marked {
  readonly [MARK]?: CallTarget;
}

/** The target of calls on the object that a method is called on, if it has one. */
export function callTargetOf(receiver: unknown): CallTarget | undefined {
  const target = (receiver as Marked | undefined)?.[MARK];
  return target !== undefined && target.client === receiver ? target : undefined;
}
