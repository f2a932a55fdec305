import calculateSlot from 'cluster-key-slot';
import type { PendingBound } from '../calls/pending-bound.js';
import type { FastCommand } from '../commands/fast-commands.js';
import type { CallTarget } from '../core/call-target.js';
import type { Dispatcher, Outgoing } from '../core/outgoing.js';
import { cork, corkOf } from '../cork/cork.js';
import { ClusterRouting, type HostCluster, slotOwners } from '../host/cluster.js';
import type { HostCopy } from '../host/recognize.js';
import { makeOptionsFast, unanswered } from '../host/state.js';
import type { HostClient } from '../host/types.js';
import { LayeredDispatcher } from '../observed/observed-dispatcher.js';
import { corkOptionsOf, type ResolvedOptions } from '../options.js';
import type { FallbackReason } from '../stats.js';
import { baseMethod } from '../util/values.js';
import { Attachment, type CoalesceCopy, coalescerOf, type SharedByNodes } from './attachment.js';
import { ClientAttachment } from './client-attachment.js';
import { corkObserver, selectMode } from './cork-attachment.js';

/**
 * Attached to a Cluster by `coalesce()`. Each of its nodes, present and future, is coalesced like a client; they share
 * the counters. The Cluster's own methods compute the slot and add a fast command directly to its node's batch. If the
 * command fails there, the Cluster redirects it: `Entry#reject` calls the `redirect` of its context
 * (`Outgoing#contextIn`), which calls `ClusterRouting#redirect`.
 */
export class ClusterAttachment extends Attachment<HostCluster> implements CallTarget, SharedByNodes {
  readonly accepted: WeakSet<object>;
  readonly routing: ClusterRouting;
  readonly #nodes = new WeakMap<HostClient, ClientAttachment>();
  /** Which nodes served which slots at the last refresh; only with the option `cache`. */
  #slotOwners: string | undefined;

  constructor(client: HostCluster, options: ResolvedOptions, copy: HostCopy, coalesceCopy: CoalesceCopy) {
    super(client, options, copy, 0, coalesceCopy);
    this.accepted = new WeakSet(unanswered(client));
    this.routing = new ClusterRouting(client);
    makeOptionsFast(client);
    this.install();
    const on = baseMethod(client, 'on');
    on.call(client, '+node', this.#onNode);
    if (options.cache) on.call(client, 'refresh', this.#onRefresh);
    for (const node of baseMethod(client, 'nodes').call(client)) this.#onNode(node);
  }

  protected get members(): readonly ClientAttachment[] {
    return this.client.nodes().flatMap((node) => this.#nodes.get(node) ?? []);
  }

  protected get clients(): readonly HostClient[] {
    return this.client.nodes();
  }

  protected uninstall(): void {
    const { client } = this;
    const removeListener = baseMethod(client, 'removeListener');
    removeListener.call(client, '+node', this.#onNode);
    removeListener.call(client, 'refresh', this.#onRefresh);
    for (const node of this.members) node.detach();
    for (const node of client.nodes()) corkOf(node)?.undo();
  }

  fallbackReason(): FallbackReason | undefined {
    return this.routing.clusterFallbackReason() ?? this.replacedReason();
  }

  admissionFor(key: unknown, readOnly: boolean): PendingBound | undefined {
    if (this.client.status !== 'ready') return this.admission;
    return this.#nodeFor({ keys: 'first', readOnly }, key)?.admission;
  }

  outgoingFor(command: FastCommand, key: unknown, mayBeSeen = false): Outgoing | FallbackReason {
    // The node's attachment checks for replaced functions.
    const reason = this.routing.clusterFallbackReason();
    return reason ?? this.#nodeFor(command, key)?.outgoingFor(command, key, mayBeSeen) ?? 'routing';
  }

  dispatcherFor(command: FastCommand, key: unknown, mayBeSeen: boolean): Dispatcher | FallbackReason {
    const node = this.#nodeFor(command, key);
    const reason = this.routing.clusterFallbackReason();
    if (reason === undefined) return node?.dispatcherFor(command, key, mayBeSeen) ?? 'routing';
    if (node === undefined || !mayBeSeen || this.routing.clusterFallbackReason(true) !== undefined) return reason;
    const outgoing = node.outgoingFor(command, key, true);
    // Host: the Cluster's own `sendCommand` redirects the commands that pass through it.
    const isPossible = typeof outgoing !== 'string' && outgoing.reads?.incoming === undefined;
    return isPossible ? new LayeredDispatcher(outgoing, this.client) : reason;
  }

  #nodeFor(command: Pick<FastCommand, 'keys' | 'readOnly'>, key: unknown): ClientAttachment | undefined {
    const slot = slotOf(command, key);
    const node = slot === undefined ? undefined : this.routing.nodeFor(slot, command.readOnly);
    return node && this.#nodes.get(node);
  }

  get blockedBy(): string | undefined {
    return this.members.find((node) => node.blockedBy !== undefined)?.blockedBy;
  }

  /**
   * Host: emitted when a node is added to the pool, before it connects. A node that was coalesced separately is taken
   * over: the Cluster's counters include it from now on, and its commands in flight settle.
   *
   * Earlier listeners of `+node`, and subscribers of our channels, may detach the Cluster and coalesce it again, or
   * coalesce the node separately.
   */
  readonly #onNode = (node: HostClient): void => {
    if (this.enabled) coalescerOf(node)?.detach();
    if (!this.enabled || coalescerOf(node) !== undefined) return;
    const selected = selectMode(node, this.options);
    if ('why' in selected) {
      cork(node, corkOptionsOf(this.options), corkObserver(node, this.counters, selected));
      return;
    }
    corkOf(node)?.undo();
    const attachment = new ClientAttachment(node, this.options, selected, undefined, this);
    this.#nodes.set(node, attachment);
    if (!this.enabled) attachment.detach();
  };

  /** Host: emitted after the slots were refreshed. A node announces no changes of keys in a slot that it has lost. */
  readonly #onRefresh = (): void => {
    const before = this.#slotOwners;
    this.#slotOwners = slotOwners(this.client);
    if (before !== this.#slotOwners) this.cache?.clear();
  };
}

/** The slot of a fast command's first argument; undefined if that is not a key. */
function slotOf(command: Pick<FastCommand, 'keys'>, key: unknown): number | undefined {
  if (command.keys === 'none' || command.keys === 'own') return undefined;
  if (typeof key === 'string' || key instanceof Buffer) return calculateSlot(key);
  return typeof key === 'number' ? calculateSlot(String(key)) : undefined;
}
