/**
 * The host's Cluster: recognition, routing, and redirection by MOVED and ASK.
 *
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.3–0.4, `built/cluster/index.js`,
 * `built/cluster/ConnectionPool.js`.
 */
import type { EventEmitter } from 'node:events';
import calculateSlot from 'cluster-key-slot';
import type { FallbackReason } from '../stats.js';
import { commandClassOf, isUnpatchedSendCommand, unwrapped } from './probe.js';
import { isLayeredInClass } from './state.js';
import type { AnyFunction, HostClient, HostCommand, HostOptions } from './types.js';

interface ClusterOptions extends HostOptions {
  readonly scaleReads?: unknown;
  readonly redisOptions?: HostOptions;
}

interface ConnectionPool {
  getInstanceByKey(key: string): HostClient | undefined;
}

/** The members of a Cluster that this package uses. */
export interface HostCluster extends EventEmitter {
  readonly status: string;
  readonly options: ClusterOptions;
  /** The keys of the nodes that serve each slot, the master first. */
  readonly slots: ReadonlyArray<readonly string[] | undefined>;
  readonly connectionPool: ConnectionPool;
  sendCommand: AnyFunction;
  nodes(role?: 'all' | 'master' | 'slave'): HostClient[];
}

/** A Cluster has nodes, but no stream itself. */
export function isHostCluster(value: object): value is HostCluster {
  return 'isCluster' in value && value.isCluster === true;
}

/**
 * What keys that one command may name have in common: their slot. Redis hashes the whole of a key whose first hash tag
 * is empty, but the host goes on to the next tag and sends it there, so such a key is on its own.
 */
export function slotGroupOf(key: string | Buffer): number | string {
  const text = typeof key === 'string' ? key : key.toString('latin1');
  const tag = text.indexOf('{');
  return tag >= 0 && text[tag + 1] === '}' && text.includes('}', tag + 2) ? text : calculateSlot(key);
}

/** A copy of the startup nodes of the Cluster. Host: `Cluster#duplicate`. */
export function startupNodesOf<T>(cluster: HostCluster): T[] {
  const { startupNodes } = cluster as unknown as { startupNodes: unknown };
  return Array.isArray(startupNodes) ? [...(startupNodes as T[])] : [];
}

/**
 * Whether a client, or the nodes of a Cluster, request RESP3. Host: they do by default in ioredis 6; others take an
 * option `protocol`, and ignore it.
 */
export function speaksResp3(client: HostClient | HostCluster): boolean {
  if (!('setReplyContext' in (commandClassOf(client)?.prototype ?? {}))) return false;
  const options: HostOptions | undefined = isHostCluster(client) ? client.options.redisOptions : client.options;
  return (options?.protocol ?? 3) === 3;
}

/** The nodes of each slot, as text that changes when they do. */
export function slotOwners({ slots }: HostCluster): string {
  return Array.from(slots, (keys) => keys?.join(' ')).join();
}

/** Routing as the host's Cluster does it: the node of a command, and the redirection of one that failed. */
export class ClusterRouting {
  /** The Cluster's own `sendCommand`, as last seen. */
  #sendCommand: AnyFunction | undefined;

  constructor(readonly cluster: HostCluster) {}

  /** Why no command of this Cluster can take the fast path now; `watchable`: none that others may see. */
  clusterFallbackReason(watchable = false): FallbackReason | undefined {
    const { status, options } = this.cluster;
    if (status !== 'ready') return 'connection';
    const sendCommand = unwrapped(this.cluster.sendCommand);
    if (options.showFriendlyErrorStack || options.enableAutoPipelining) return 'options';
    if (sendCommand !== this.#sendCommand && !isUnpatchedSendCommand(sendCommand)) {
      return watchable && isLayeredInClass(this.cluster) ? undefined : 'patched';
    }
    this.#sendCommand = sendCommand;
    return undefined;
  }

  get readsFromMasters(): boolean {
    return this.cluster.options.scaleReads === 'master';
  }

  /**
   * The node that the host would choose for a command with a key in this slot; undefined if only the host can choose.
   * Host: `tryConnection` in `Cluster#sendCommand`.
   */
  nodeFor(slot: number, readOnly: boolean): HostClient | undefined {
    const keys = this.cluster.slots[slot];
    if (keys === undefined) return undefined;
    const { scaleReads } = this.cluster.options;
    let index = 0;
    if (readOnly && scaleReads !== 'master') {
      if (scaleReads === 'all') index = randomBetween(0, keys.length);
      else if (scaleReads !== 'slave') return undefined;
      else if (keys.length > 1) index = randomBetween(1, keys.length);
    }
    const key = keys[index];
    return key === undefined ? undefined : this.cluster.connectionPool.getInstanceByKey(key);
  }

  /**
   * Hands a command that failed on `node` to the Cluster, as if the Cluster had sent it. Its `reject` is then the
   * Cluster's, which follows MOVED and ASK, tries again after TRYAGAIN, CLUSTERDOWN or a lost connection, or fails.
   *
   * Host: `sendCommand` puts a wrapper around `command.reject`, then picks a node and sends. The wrapper does the
   * redirection, and is not accessible otherwise. So during one synchronous call, the Cluster looks as when the command
   * was sent: ready, with this node. The node sends nothing.
   */
  redirect(node: HostClient, command: HostCommand): void {
    const { cluster } = this;
    const atSendTime: Partial<Record<PropertyKey, unknown>> = {
      status: 'ready',
      connectionPool: { getInstanceByKey: () => node, getSampleInstance: () => node },
      options: Object.create(cluster.options, { enableOfflineQueue: { value: true } }),
    };
    let sending = true;
    const receiver = new Proxy(cluster, {
      get: (target, property) =>
        sending && Object.hasOwn(atSendTime, property) ? atSendTime[property] : Reflect.get(target, property),
    });
    const own = Object.getOwnPropertyDescriptor(node, 'sendCommand');
    Object.defineProperty(node, 'sendCommand', { value: () => command.promise, writable: true, configurable: true });
    try {
      (this.#sendCommand ?? cluster.sendCommand).call(receiver, command);
    } finally {
      sending = false;
      if (own === undefined) Reflect.deleteProperty(node, 'sendCommand');
      else Object.defineProperty(node, 'sendCommand', own);
    }
  }
}

function randomBetween(from: number, end: number): number {
  return from + Math.floor(Math.random() * (end - from));
}
