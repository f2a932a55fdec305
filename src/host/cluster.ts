/**
 * The host's Cluster.
 *
 * Host: read in ioredis 5.0–5.11 and 6.0 and iovalkey 0.3–0.4, `built/cluster/index.js`,
 * `built/cluster/ConnectionPool.js`.
 */
import type { EventEmitter } from 'node:events';
import { commandClassOf } from './probe.js';
import type { AnyFunction, HostClient, HostOptions } from './types.js';

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
  sendCommand: AnyFunction;
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
  if (!('setReplyContext' in (commandClassOf(client)?.prototype ?? {}))) return false;
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
