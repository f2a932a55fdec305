import { isBlocking } from '../calls/blocking-warning.js';
import type { PendingBound } from '../calls/pending-bound.js';
import type { FastCommand } from '../commands/fast-commands.js';
import type { CallTarget } from '../core/call-target.js';
import { Connection } from '../core/connection.js';
import type { Reads } from '../core/features.js';
import type { ConnectionSetup, Dispatcher, Outgoing } from '../core/outgoing.js';
import { type Corked, cork } from '../cork/cork.js';
import { findDataListener } from '../host/probe.js';
import type { HostCopy } from '../host/recognize.js';
import type { HostClient } from '../host/types.js';
import { canBeObserved, LayeredDispatcher, PublishedDispatcher } from '../observed/observed-dispatcher.js';
import { corkOptionsOf, type ResolvedOptions } from '../options.js';
import type { FallbackReason } from '../stats.js';
import { baseMethod } from '../util/values.js';
import { Attachment, type CoalesceCopy, type SharedByNodes } from './attachment.js';
import { corkObserver } from './cork-attachment.js';
import { ReadFeatures } from './read-features.js';

/** Why one connection of a known client gets the cork. */
const UNKNOWN_LISTENER = { why: "the stream's data listener cannot be told from others" };

/** Attached to a client by `coalesce()`: its options, counters, current connection, and `detach`. */
export class ClientAttachment extends Attachment<HostClient> implements ConnectionSetup, CallTarget {
  /** The cork, while the stream's `data` listener cannot be identified. */
  #corked: Corked | undefined;
  readonly cachePrefixes: readonly string[] | undefined;

  /** Attaches to a client that is not coalesced yet. */
  constructor(
    client: HostClient,
    options: ResolvedOptions,
    copy: HostCopy,
    coalesceCopy: CoalesceCopy | undefined,
    cluster?: SharedByNodes,
  ) {
    super(client, options, copy, 1, coalesceCopy, cluster);
    const { keyPrefix = '' } = (cluster ?? this).client.options;
    if (options.cache) this.cachePrefixes = options.cache.prefixes?.map((prefix) => `${keyPrefix}${prefix}`);
    this.install();
    baseMethod(client, 'on').call(client, 'connect', this.#onConnect);
    if (client.status !== 'connecting') this.#connected(false);
  }

  protected get members(): readonly [this] {
    return [this];
  }

  protected get clients(): readonly HostClient[] {
    return [this.client];
  }

  protected uninstall(): void {
    const { client } = this;
    baseMethod(client, 'removeListener').call(client, 'connect', this.#onConnect);
    this.#detachStream();
  }

  #detachStream(): void {
    this.connection?.detach();
    this.connection = undefined;
    this.#corked?.undo();
    this.#corked = undefined;
  }

  admissionFor(): PendingBound | undefined {
    return this.admission;
  }

  readsOn(outgoing: Outgoing): Reads | undefined {
    const { options, cachePrefixes, predictor } = this;
    const isNeeded = options.cache || options.shareReads || options.fuseReads;
    return isNeeded ? new ReadFeatures(outgoing, options, cachePrefixes, predictor) : undefined;
  }

  fallbackReason(): FallbackReason | undefined {
    const found = this.outgoingFor();
    return typeof found === 'string' ? found : undefined;
  }

  outgoingFor(_command?: FastCommand, _key?: unknown, mayBeSeen = false): Outgoing | FallbackReason {
    const { connection } = this;
    if (!connection?.open) this.#listenAgain();
    if (connection === undefined) return 'connection';
    const reason = connection.fallbackReason() ?? this.replacedReason(connection.outgoing);
    return reason === undefined || (mayBeSeen && this.#isObserved(reason)) ? connection.outgoing : reason;
  }

  dispatcherFor(_command: FastCommand, _key: unknown, mayBeSeen: boolean): Dispatcher | FallbackReason {
    const found = this.outgoingFor();
    const { connection, client } = this;
    if (typeof found !== 'string' || connection === undefined || !mayBeSeen || !this.#isObserved(found)) return found;
    return new (found === 'patched' ? LayeredDispatcher : PublishedDispatcher)(connection.outgoing, client);
  }

  /** Whether commands fall back only because others observe them. Replaced functions have the same reason as layers. */
  #isObserved(reason: FallbackReason): boolean {
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

  /** Takes over the stream that was missed if user code has removed our listener (`removeAllListeners()`). */
  #listenAgain(): void {
    const { client } = this;
    if (client.status !== 'ready' || client.listeners('connect').includes(this.#onConnect)) return;
    baseMethod(client, 'on').call(client, 'connect', this.#onConnect);
    this.#connected(false);
  }

  /**
   * Host: when `connect` is emitted, the stream has its `data` listener and has received nothing. A stream that has a
   * connection already, or has ended, is left alone. So is a monitor's: it receives no replies, only lines with the
   * arguments of other clients, of any length.
   *
   * @param fresh - whether the stream has received nothing yet.
   */
  #connected(fresh: boolean): void {
    const { stream } = this.client;
    if (stream === undefined || stream.destroyed || stream === this.connection?.stream) return;
    if (stream.listenerCount('data') === 0 || this.client.options.monitor) return;
    this.#detachStream();
    // A Connector's stream may have no more than the host calls.
    if (typeof stream.cork !== 'function') return;
    // Host: `emit` calls our listener even if an earlier listener of `connect` has detached the client.
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
