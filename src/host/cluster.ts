/**
 * The host's Cluster.
 *
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.3–0.4, `built/cluster/index.js`,
 * `built/cluster/ConnectionPool.js`.
 */
import type { EventEmitter } from 'node:events';
import { probeCommandClass } from './probe.js';
import type { AnyFunction, HostClient, HostCommand, HostOptions } from './types.js';

interface ClusterOptions extends HostOptions {
  readonly scaleReads?: unknown;
  readonly redisOptions?: HostOptions;
}

interface ConnectionPool {
  getInstanceByKey(key: string): HostClient | undefined;
  getSampleInstance(role: string): HostClient | undefined;
}

/** A Cluster, as far as this package knows it. */
export interface HostCluster extends EventEmitter {
  readonly status: string;
  readonly options: ClusterOptions;
  /** The keys of the nodes that serve each slot, the master first. */
  readonly slots: ReadonlyArray<readonly string[] | undefined>;
  readonly connectionPool: ConnectionPool;
  readonly offlineQueue: { push(item: object): unknown };
  sendCommand: AnyFunction;
  connect(): Promise<unknown>;
  nodes(role?: 'all' | 'master' | 'slave'): HostClient[];
}

/** A Cluster has nodes and no stream of its own. */
export function isHostCluster(value: object): value is HostCluster {
  return 'isCluster' in value && value.isCluster === true;
}

/** A copy of the startup nodes of the Cluster. Host: `Cluster#duplicate`. */
export function startupNodesOf<T>(cluster: HostCluster): T[] {
  const { startupNodes } = cluster as unknown as { startupNodes: unknown };
  return Array.isArray(startupNodes) ? [...(startupNodes as T[])] : [];
}

/** Whether RESP3 is asked for: by a client, or by the nodes of a Cluster. Host: there ioredis 6 does so by default. */
export function speaksResp3(client: HostClient | HostCluster): boolean {
  if (!isHostCluster(client)) return client.options.protocol === 3;
  const probed = probeCommandClass(client);
  if (!('commandClass' in probed) || !('setReplyContext' in probed.commandClass.prototype)) return false;
  return (client.options.redisOptions?.protocol ?? 3) === 3;
}

/** Remembers which nodes serve which slots, to find out who has lost some. */
export class SlotWatch {
  #before: readonly string[] = [];

  constructor(readonly cluster: HostCluster) {}

  /** The nodes that have lost a slot since the last call. */
  losers(): HostClient[] {
    const { slots, connectionPool } = this.cluster;
    const now = Array.from(slots, (keys) => keys?.join(' ') ?? '');
    const keys = new Set<string>();
    this.#before.forEach((before, slot) => {
      if (before !== now[slot]) for (const key of before.split(' ')) keys.add(key);
    });
    this.#before = now;
    return [...keys].flatMap((key) => connectionPool.getInstanceByKey(key) ?? []);
  }
}

/** The internals of a Cluster that the hot path needs, or the first one that is missing. */
export function probeClusterInternals(cluster: HostCluster): ReturnType<typeof probeCommandClass> {
  if (!Array.isArray(cluster.slots)) return { missing: 'Cluster#slots' };
  const pool = cluster.connectionPool as Partial<ConnectionPool> | undefined;
  if (typeof pool?.getInstanceByKey !== 'function') return { missing: 'Cluster#connectionPool.getInstanceByKey()' };
  return probeCommandClass(cluster);
}

/** Takes a command that the Cluster would send on a node, after ASKING if its slot is not the node's yet. */
export type SendOnNode = (node: HostClient, command: HostCommand, asking: boolean) => void;

/**
 * Sends commands as the Cluster does, but not on its nodes' own connections. Redirections lead here again.
 *
 * Host: `sendCommand` picks a node from `connectionPool` each time that it sends a command. So it is run on an object
 * that is the Cluster but for this: its pool has stand-ins of the nodes. While the Cluster is not ready it keeps the
 * command in its offline queue, with the node that is to get it, which a pipeline chooses (`node.redis`); that is one
 * that sends the command here again.
 */
export class ClusterDetour {
  readonly #standIns = new WeakMap<HostClient, HostClient>();
  readonly #receiver: HostCluster;

  constructor(
    readonly cluster: HostCluster,
    readonly sendOnNode: SendOnNode,
  ) {
    const pool = boundTo(cluster.connectionPool, {
      getInstanceByKey: (key: string) => this.#standInFor(cluster.connectionPool.getInstanceByKey(key)),
      getSampleInstance: (role: string) => this.#standInFor(cluster.connectionPool.getSampleInstance(role)),
    });
    const redis = { status: 'ready', sendCommand: (command: HostCommand) => this.send(command) };
    const offlineQueue = {
      push: (item: object) => cluster.offlineQueue.push({ ...item, node: { redis } }),
    };
    this.#receiver = boundTo(cluster, { connectionPool: pool, offlineQueue }) as HostCluster;
  }

  send(command: HostCommand): unknown {
    const { cluster } = this;
    if (cluster.status === 'wait') cluster.connect().catch(() => {});
    // A test's stub.
    const receiver = Object.hasOwn(cluster, 'sendCommand') ? cluster : this.#receiver;
    return cluster.sendCommand.call(receiver, command);
  }

  #standInFor(node: HostClient | undefined): HostClient | undefined {
    if (node === undefined || node === null) return node;
    const known = this.#standIns.get(node);
    if (known !== undefined) return known;
    let asked = false;
    const asking = () => {
      asked = true;
    };
    const sendCommand = (command: HostCommand) => {
      const isAsked = asked;
      asked = false;
      this.sendOnNode(node, command, isAsked);
    };
    const members = { asking: { value: asking }, sendCommand: { value: sendCommand } };
    const standIn = Object.create(node, members) as HostClient;
    this.#standIns.set(node, standIn);
    return standIn;
  }
}

/** An object that is another one but for some members. That one's methods run on itself. */
export function boundTo(original: object, members: Readonly<Record<string, unknown>>): object {
  return new Proxy(original, {
    get: (target, property) => {
      if (typeof property === 'string' && Object.hasOwn(members, property)) return members[property];
      const value = Reflect.get(target, property) as unknown;
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
