import { isBlocking } from '../calls/blocking-warning.js';
import { PendingBound } from '../calls/pending-bound.js';
import type { FastCommand } from '../commands/fast-commands.js';
import type { CallTarget } from '../core/call-target.js';
import { Connection } from '../core/connection.js';
import type { Reads } from '../core/features.js';
import type { ConnectionSetup, Dispatcher, Outgoing } from '../core/outgoing.js';
import { type Corked, cork } from '../cork/cork.js';
import { speaksResp3 } from '../host/cluster.js';
import { findDataListener } from '../host/probe.js';
import type { HostCopy } from '../host/recognize.js';
import type { HostClient } from '../host/types.js';
import { canBeObserved, LayeredDispatcher, PublishedDispatcher } from '../observed/observed-dispatcher.js';
import {
  type CoalesceSetting,
  corkOptionsOf,
  DEFAULT_OPTIONS,
  type ResolvedOptions,
  resolveSetting,
  withoutCacheUnless,
} from '../options.js';
import type { FallbackReason } from '../stats.js';
import { Attachment, addIdleHandle, type NodesShare } from './attachment.js';
import { CorkAttachment, corkObserver, selectMode } from './cork-attachment.js';
import { ReadFeatures } from './read-features.js';

/** Why one connection of a known client gets the cork. */
const UNKNOWN_LISTENER = { why: "the stream's data listener cannot be told from others" };

/** Coalesces the copy that the host's `duplicate(...args)` made of a client with these options, fast or corked. */
export function coalesceCopy(copy: object, args: readonly unknown[], options: ResolvedOptions): void {
  // `monitor()` makes its client through `duplicate()`.
  const { monitor, coalesce } = (args[0] ?? {}) as {
    readonly monitor?: unknown;
    readonly coalesce?: CoalesceSetting;
  };
  if (monitor) return;
  const chosen = coalesce === undefined ? options : resolveSetting(coalesce, 'option coalesce');
  if (chosen === false) {
    addIdleHandle(copy, DEFAULT_OPTIONS);
    return;
  }
  const client = copy as HostClient;
  const selected = selectMode(client, chosen);
  if ('why' in selected) new CorkAttachment(client, chosen, selected, coalesceCopy);
  else new ClientAttachment(client, withoutCacheUnless(speaksResp3(client), chosen), selected);
}

/** Everything that `coalesce()` attaches to a client: its options, counters, current connection, and `detach`. */
export class ClientAttachment extends Attachment<HostClient> implements ConnectionSetup, CallTarget {
  connection: Connection | undefined;
  /** The cork, while the `data` listener of the stream cannot be told from others. */
  #corked: Corked | undefined;
  readonly admission: PendingBound | undefined;
  readonly cachePrefixes: readonly string[] | undefined;

  /** Attaches to a client that is not coalesced yet. */
  constructor(client: HostClient, options: ResolvedOptions, copy: HostCopy, cluster?: NodesShare) {
    super(client, options, copy, 1, cluster);
    const { keyPrefix = '' } = (cluster ?? this).client.options;
    if (options.cache) this.cachePrefixes = options.cache.prefixes?.map((prefix) => `${keyPrefix}${prefix}`);
    const { maxPending } = options;
    if (maxPending !== undefined) {
      this.admission = new PendingBound(client, maxPending, this.counters, () => this.connection, cluster?.accepted);
    }
    this.enter();
    client.on('connect', this.#onConnect);
    if (client.status !== 'connecting') this.#connected(false);
  }

  protected get members(): readonly [this] {
    return [this];
  }

  protected get clients(): readonly HostClient[] {
    return [this.client];
  }

  protected leave(): void {
    this.client.removeListener('connect', this.#onConnect);
    this.#leaveStream();
  }

  #leaveStream(): void {
    this.connection?.detach();
    this.connection = undefined;
    this.#corked?.undo();
    this.#corked = undefined;
  }

  protected coalesceCopy(copy: object, args: readonly unknown[]): void {
    // A Cluster duplicates its nodes to ask for its slots.
    if (this.cluster === undefined) coalesceCopy(copy, args, this.options);
  }

  admissionFor(): PendingBound | undefined {
    return this.admission;
  }

  readsOn(outgoing: Outgoing): Reads | undefined {
    return ReadFeatures.of(outgoing, this.options, this.cachePrefixes, this.predictor);
  }

  fallbackReason(): FallbackReason | undefined {
    const found = this.outgoingFor();
    return typeof found === 'string' ? found : undefined;
  }

  outgoingFor(_command?: FastCommand, _key?: unknown, mayBeSeen = false): Outgoing | FallbackReason {
    const { connection } = this;
    if (connection === undefined) return 'connection';
    const reason = connection.fallbackReason() ?? this.replacedReason(connection.outgoing);
    return reason === undefined || (mayBeSeen && this.#isSeenOnly(reason)) ? connection.outgoing : reason;
  }

  dispatcherFor(_command: FastCommand, _key: unknown, mayBeSeen: boolean): Dispatcher | FallbackReason {
    const found = this.outgoingFor();
    const { connection, client } = this;
    if (typeof found !== 'string' || connection === undefined || !mayBeSeen || !this.#isSeenOnly(found)) return found;
    return new (found === 'patched' ? LayeredDispatcher : PublishedDispatcher)(connection.outgoing, client);
  }

  /** Whether commands fall back only because others see them. Replaced functions have the same reason as layers. */
  #isSeenOnly(reason: FallbackReason): boolean {
    const { connection } = this;
    if (connection === undefined || !canBeObserved(connection, reason)) return false;
    return this.replacedReason(connection.outgoing) === undefined;
  }

  get blockedBy(): string | undefined {
    const { commandQueue } = this.client;
    const first = commandQueue.peekFront()?.command;
    if (!this.enabled || first === undefined || commandQueue.length === 1) return undefined;
    return isBlocking(first) ? first.name : undefined;
  }

  readonly #onConnect = (): void => this.#connected(true);

  /**
   * Host: when `connect` is emitted, the stream has its `data` listener and nothing was received yet. A stream that
   * already has a connection is left alone, and so is one that has ended, and a monitor's: it gets no replies, only
   * lines that hold the arguments of other clients, of any length.
   *
   * @param fresh - whether nothing was received on the stream yet.
   */
  #connected(fresh: boolean): void {
    const { stream } = this.client;
    if (stream === undefined || stream.destroyed || stream === this.connection?.stream) return;
    if (stream.listenerCount('data') === 0 || this.client.options.monitor) return;
    this.#leaveStream();
    // Host: `emit` goes on to us when a listener of `connect` before ours has detached the client.
    if (!this.enabled) return;
    const listener = findDataListener(stream);
    if (listener === undefined) {
      const observer = corkObserver(this.client, this.counters, UNKNOWN_LISTENER);
      this.#corked = cork(this.client, corkOptionsOf(this.options), observer);
      return;
    }
    this.connection = new Connection(this, stream, listener, fresh);
    this.connection.start();
  }
}
