import { isBlocking } from '../calls/blocking-warning.js';
import type { CallTarget } from '../calls/call-target.js';
import { Connection, type Observed } from '../connection/connection.js';
import type { ConnectionSetup } from '../connection/outgoing.js';
import { PendingBound } from '../connection/sending/pending-bound.js';
import { corkStream } from '../cork/cork.js';
import { speaksResp3 } from '../host/cluster.js';
import { findDataListener } from '../host/probe.js';
import type { HostCopy } from '../host/recognize.js';
import type { HostClient } from '../host/types.js';
import {
  type CoalesceSetting,
  DEFAULT_OPTIONS,
  type ResolvedOptions,
  resolveSetting,
  withoutCacheUnless,
} from '../options.js';
import type { FallbackReason } from '../stats.js';
import { Attachment, addIdleHandle, type NodesShare } from './attachment.js';
import { CorkAttachment, corkObserver, groundOf } from './cork-attachment.js';

/** Why one connection of a known client gets the cork. */
const UNKNOWN_LISTENER = { why: "the stream's data listener cannot be told from others" };

/** Everything that `coalesce()` attaches to a client: its options, counters, current connection, and `detach`. */
export class ClientAttachment extends Attachment<HostClient> implements ConnectionSetup, CallTarget {
  connection: Connection | undefined;
  readonly pendingBound: PendingBound | undefined;
  readonly cachePrefixes: readonly string[] | undefined;

  /** Attaches to a client that is not coalesced yet. */
  constructor(client: HostClient, options: ResolvedOptions, copy: HostCopy, cluster?: NodesShare) {
    super(client, options, copy, 1, cluster);
    const { keyPrefix = '' } = (cluster ?? this).client.options;
    if (options.cache) this.cachePrefixes = options.cache.prefixes?.map((prefix) => `${keyPrefix}${prefix}`);
    const { maxPending } = options;
    if (maxPending !== undefined) {
      this.pendingBound = new PendingBound(client, maxPending, this.counters, () => this.connection, cluster?.accepted);
    }
    this.enter();
    client.on('connect', this.#onConnect);
    if (client.status !== 'connecting') this.#connected(false);
  }

  protected get members(): readonly [this] {
    return [this];
  }

  protected leave(): void {
    this.client.removeListener('connect', this.#onConnect);
    this.connection?.detach();
    this.connection = undefined;
  }

  protected coalesceCopy(copy: object, args: readonly unknown[]): void {
    // A Cluster duplicates its nodes to ask for its slots. `monitor()` makes its client through `duplicate()`.
    const { monitor, coalesce } = (args[0] ?? {}) as {
      readonly monitor?: unknown;
      readonly coalesce?: CoalesceSetting;
    };
    if (this.cluster !== undefined || monitor) return;
    const options = coalesce === undefined ? this.options : resolveSetting(coalesce, 'option coalesce');
    if (options === false) addIdleHandle(copy, DEFAULT_OPTIONS);
    else {
      const client = copy as HostClient;
      const ground = groundOf(client, options);
      if ('why' in ground) new CorkAttachment(client, options, ground);
      else new ClientAttachment(client, withoutCacheUnless(speaksResp3(client), options), ground);
    }
  }

  pendingBoundFor(): PendingBound | undefined {
    return this.pendingBound;
  }

  fallbackReason(): FallbackReason | undefined {
    const found = this.connectionFor();
    return typeof found === 'string' ? found : undefined;
  }

  connectionFor(): Connection | FallbackReason {
    const { connection } = this;
    if (connection === undefined) return 'connection';
    return connection.connectionFallbackReason() ?? this.replacedReason(connection.outgoing.batch) ?? connection;
  }

  observedFor(reason: FallbackReason): Observed | undefined {
    const { connection, client } = this;
    // Replaced functions have the same reason as layers.
    if (!connection?.canBeObserved(reason) || this.replacedReason(connection.outgoing.batch)) return undefined;
    return { connection, isLayered: reason === 'patched', through: client };
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
    this.connection?.detach();
    // Host: `emit` goes on to us when a listener of `connect` before ours has detached the client.
    if (!this.enabled) return;
    const listener = findDataListener(stream);
    if (listener === undefined) {
      this.connection = undefined;
      corkStream(stream, this.options, corkObserver(this.client, this.counters, UNKNOWN_LISTENER));
      return;
    }
    this.connection = new Connection(this, stream, listener, fresh);
    this.connection.start();
  }
}
