import calculateSlot from 'cluster-key-slot';
import type { HotCommand } from '../commands/hot-commands.js';
import type { Connection } from '../connection/connection.js';
import { type BatchSchedule, scheduleFunction } from '../connection/sending/schedule-function.js';
import { cacheNeedsResp3, warnAutoPipelining, warnCorkOnly } from '../errors.js';
import type { ClientCache } from '../handle.js';
import {
  ClusterDetour,
  ClusterRouting,
  type HostCluster,
  missingClusterInternal,
  type SendOnNode,
  SlotWatch,
  speaksResp3,
} from '../host/cluster.js';
import { probeCommandClass } from '../host/probe.js';
import { isAutoPipelining, isDebugging, keyPrefixOf, makeOptionsFast, showsCallers } from '../host/state.js';
import type { HostClient, HostCommandClass } from '../host/types.js';
import { type CallOptions, type ResolvedOptions, withoutCacheUnless } from '../options.js';
import { type CoalescerStats, type FallThroughReason, Stats } from '../stats.js';
import { ClientAttachment, Inspectable } from './client-attachment.js';
import { type Attachment, addOverlay, attachedTo, removeOverlay } from './overlay.js';
import { SplitKeys } from './split-keys.js';
import { viewOf } from './view.js';

/**
 * Everything that `coalesce()` attaches to a Cluster. Each of its nodes, present and future, is coalesced like a
 * client, with counters that all share. The Cluster's own methods compute the slot and put a hot command straight on
 * its node's batch. A command that fails on its node goes back to the Cluster, which redirects only this command:
 * `Entry#reject` calls the `redirect` of its context (`Connection#contextIn`), which calls `ClusterRouting#redirect`.
 */
export class ClusterAttachment extends Inspectable implements Attachment {
  enabled = true;
  readonly commandClass: HostCommandClass | undefined;
  readonly counters = new Stats();
  readonly routing: ClusterRouting;
  readonly splitter: SplitKeys | undefined;
  readonly blocking: ClusterDetour | undefined;
  readonly #nodes = new WeakMap<HostClient, ClientAttachment>();
  readonly #slots: SlotWatch;
  readonly #schedule: BatchSchedule;

  static attach(cluster: HostCluster, options: ResolvedOptions): void {
    if (options.cache && !speaksResp3(cluster)) throw cacheNeedsResp3();
    new ClusterAttachment(cluster, options);
    if (isAutoPipelining(cluster)) warnAutoPipelining();
  }

  private constructor(
    readonly client: HostCluster,
    readonly options: ResolvedOptions,
  ) {
    super();
    this.#schedule = scheduleFunction(options.schedule);
    this.routing = new ClusterRouting(client);
    this.#slots = new SlotWatch(client);
    this.commandClass = options.hotPath ? hotCommandClass(client) : undefined;
    this.splitter = options.splitKeys ? splitKeysOf(this) : undefined;
    this.blocking = options.blocking ? new ClusterDetour(client, this.#sendOnNode) : undefined;
    const needsMethods = options.splitKeys || options.blocking;
    addOverlay(client, this, showsCallers(client) && !needsMethods ? 'bare' : 'hot');
    for (const node of client.nodes()) this.#onNode(node);
    client.on('+node', this.#onNode);
    if (options.cache) client.on('refresh', this.#onRefresh);
  }

  stats(): CoalescerStats {
    const attachments = this.#attachments();
    return this.counters.snapshot(
      attachments.reduce((sum, { inFlight }) => sum + inFlight, 0),
      attachments.reduce((sum, { queued }) => sum + queued, 0),
      this.options.cache
        ? {
            entries: attachments.reduce((sum, { cacheUse }) => sum + (cacheUse?.entries ?? 0), 0),
            bytes: attachments.reduce((sum, { cacheUse }) => sum + (cacheUse?.bytes ?? 0), 0),
          }
        : undefined,
      this.options.blocking ? attachments.reduce((sum, { blocking }) => sum + (blocking?.size ?? 0), 0) : undefined,
    );
  }

  get cache(): ClientCache | undefined {
    if (!this.options.cache) return undefined;
    return {
      clear: () => {
        for (const attachment of this.#attachments()) attachment.cache?.clear();
      },
    };
  }

  withOptions(options: CallOptions): object {
    return viewOf(this.client, options);
  }

  flush(): void {
    for (const attachment of this.#attachments()) attachment.flush();
  }

  detach(): void {
    if (!removeOverlay(this.client, this)) return;
    this.enabled = false;
    this.client.removeListener('+node', this.#onNode);
    this.client.removeListener('refresh', this.#onRefresh);
    for (const attachment of this.#attachments()) attachment.detach();
  }

  attachCopy(copy: object): void {
    ClusterAttachment.attach(copy as HostCluster, withoutCacheUnless(speaksResp3(copy as HostCluster), this.options));
  }

  fallThroughReason(): FallThroughReason | undefined {
    return this.routing.fallThroughReason();
  }

  connectionFor(command: HotCommand, key: unknown): Connection | FallThroughReason {
    const reason = this.fallThroughReason();
    if (reason !== undefined) return reason;
    const slot = slotOf(command, key);
    if (slot === undefined) return 'routing';
    const node = this.routing.nodeFor(slot, command.readOnly);
    const attachment = node && this.#nodes.get(node);
    if (attachment === undefined) return 'routing';
    return attachment.connectionFor();
  }

  connectionForPipeline(key: unknown): Connection | FallThroughReason {
    if (!this.routing.readsFromMasters) return 'routing';
    return this.connectionFor(ANY_WRITE, key);
  }

  waitingBehind(name: string): number {
    if (!this.enabled) return 0;
    return this.#attachments().reduce((sum, attachment) => sum + attachment.waitingBehind(name), 0);
  }

  /**
   * Host: emitted when a node is added to the pool, before it connects. A node that was coalesced by itself is taken
   * over: it counts with the Cluster from now on, and its commands in flight settle.
   */
  readonly #onNode = (node: HostClient): void => {
    attachedTo(node)?.detach();
    const { counters } = this;
    const share = { counters, schedule: this.#schedule, keyPrefix: keyPrefixOf(this.client) };
    this.#nodes.set(node, new ClientAttachment(node, this.options, share));
  };

  /**
   * Host: emitted when the slots have been read again. A node announces no changes of keys in a slot that it has lost.
   */
  readonly #onRefresh = (): void => {
    for (const node of this.#slots.losers()) this.#nodes.get(node)?.cache?.clear();
  };

  readonly #sendOnNode: SendOnNode = (node, command, asking) => {
    const blocking = this.#nodes.get(node)?.blocking;
    if (blocking !== undefined) {
      blocking.send(command, asking);
      return;
    }
    if (asking) node.asking().catch(() => {});
    node.sendCommand(command);
  };

  #attachments(): ClientAttachment[] {
    return this.client.nodes().flatMap((node) => this.#nodes.get(node) ?? []);
  }
}

/** Stands for a pipeline in `connectionFor`: it goes to the master of its first key's slot. */
const ANY_WRITE: HotCommand = {
  name: '',
  keys: 'first',
  readOnly: false,
  shareable: false,
  cacheable: false,
  paired: false,
};

/** The slot of a hot command by its first argument; undefined if that is not its first key. */
function slotOf(command: HotCommand, key: unknown): number | undefined {
  if (command.keys === 'none' || command.keys === 'own') return undefined;
  if (typeof key === 'string' || key instanceof Buffer) return calculateSlot(key);
  return typeof key === 'number' ? calculateSlot(String(key)) : undefined;
}

function splitKeysOf(attachment: ClusterAttachment): SplitKeys | undefined {
  const probed = probeCommandClass(attachment.client);
  return 'commandClass' in probed ? new SplitKeys(attachment, probed.commandClass) : undefined;
}

function hotCommandClass(cluster: HostCluster): HostCommandClass | undefined {
  if (isDebugging()) return undefined;
  makeOptionsFast(cluster);
  const missing = missingClusterInternal(cluster);
  const probed = missing === undefined ? probeCommandClass(cluster) : { missing: `Cluster#${missing}` };
  if ('commandClass' in probed) return probed.commandClass;
  warnCorkOnly(`${probed.missing} is missing`);
  return undefined;
}
