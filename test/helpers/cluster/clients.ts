import type { ClusterOptions, ClusterNode as StartupNode } from 'ioredis';
import { Cluster as Cluster6 } from 'ioredis';
import { Cluster as DropInCluster } from 'ioredis-coalesce';
import { type Coalesced, type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { Cluster as Cluster5 } from 'ioredis5';
import { Cluster as ValkeyCluster } from 'iovalkey';
import { onTestFinished } from 'vitest';
import type { RedisCluster } from '../../../tools/redis-cluster.js';
import type { Host } from '../hosts.js';

/** Every host's Cluster, under the type of the newest; tests keep to what all have. */
export type ClusterClient = Cluster6;
export type CoalescedCluster = ClusterClient & Coalesced;
type ClusterClass = { new (nodes: StartupNode[], options: ClusterOptions): ClusterClient };

/** Where to, and how: what a test needs to make clients of one kind. */
export interface ClusterHost {
  readonly name: Host['name'] | 'drop-in class';
  /** Whether it has the option `shardedSubscribers`. */
  readonly shardedSubscribers: boolean;
  /** A plain Cluster that is disconnected when the running test ends. */
  create(nodes: RedisCluster, options?: ClusterOptions): ClusterClient;
  /** The same, coalesced. */
  createCoalesced(nodes: RedisCluster, options?: ClusterOptions, coalesceOptions?: CoalesceOptions): CoalescedCluster;
}

export const ioredis6 = host('ioredis 6', Cluster6 as unknown as ClusterClass);
export const ioredis5 = host('ioredis 5', Cluster5 as unknown as ClusterClass);
export const iovalkey = host('iovalkey', ValkeyCluster as unknown as ClusterClass);
/** Its plain client is that of ioredis 6. */
export const dropIn: ClusterHost = {
  ...ioredis6,
  name: 'drop-in class',
  createCoalesced: (nodes, options, coalesceOptions = {}) =>
    endWithTest(new DropInCluster(nodes.startupNodes, { ...options, coalesce: coalesceOptions })),
};

export const CLUSTER_HOSTS: readonly ClusterHost[] = [ioredis6, ioredis5, iovalkey, dropIn];

export const KINDS = ['plain', 'coalesced'] as const;
export type Kind = (typeof KINDS)[number];

export const createCluster = (host: ClusterHost, kind: Kind, nodes: RedisCluster, options?: ClusterOptions) =>
  kind === 'plain' ? host.create(nodes, options) : host.createCoalesced(nodes, options);

function host(name: ClusterHost['name'], Cluster: ClusterClass): ClusterHost {
  const create: ClusterHost['create'] = (nodes, options = {}) => endWithTest(new Cluster(nodes.startupNodes, options));
  return {
    name,
    shardedSubscribers: String(Cluster).includes('shardedSubscribers'),
    create,
    createCoalesced: (nodes, options, coalesceOptions) => coalesce(create(nodes, options), coalesceOptions),
  };
}

/** Disconnects a Cluster when the running test ends; its errors are the test's to look at, if it wants to. */
export function endWithTest<T extends ClusterClient>(cluster: T): T {
  cluster.on('error', () => {});
  onTestFinished(() => cluster.disconnect());
  return cluster;
}

/** Waits until the Cluster knows its nodes, and is connected to each of them: they connect when first used. */
export async function warm<T extends ClusterClient>(cluster: T): Promise<T> {
  // Not `once()` of Node, which an error rejects: on a busy machine it may ask for the slots again.
  if (cluster.status !== 'ready') await new Promise<void>((resolve) => cluster.once('ready', resolve));
  // With a small `maxPending` it may be refused: the READONLY of a replica awaits its reply.
  await Promise.all(cluster.nodes('all').map((node) => node.ping().catch(() => node.info())));
  return cluster;
}
