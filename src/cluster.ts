import { type ClusterNode, type ClusterOptions as HostOptions, Cluster as IORedisCluster } from 'ioredis';
import { ClusterAttachment } from './client/cluster-attachment.js';
import type { Coalesced, Coalescer } from './handle.js';
import { type HostCluster, startupNodesOf } from './host/cluster.js';
import { type CoalesceOptions, resolveOptions } from './options.js';

/** ioredis's options of a Cluster, and how to coalesce. */
export interface ClusterOptions extends HostOptions {
  /** For every node's connection; see {@link CoalesceOptions}. */
  coalesce?: CoalesceOptions;
}

/**
 * ioredis's `Cluster`, coalesced from the start: the same constructor, plus the option `coalesce`.
 *
 * @throws {TypeError} `COALESCE_ERR_OPTION` for an unknown option of `coalesce` or a wrong type.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export class Cluster extends IORedisCluster implements Coalesced {
  declare readonly coalescer: Coalescer;

  constructor(startupNodes: ClusterNode[], options: ClusterOptions = {}) {
    const { coalesce: own, ...hostOptions } = options;
    // Checked before the host's constructor runs, which connects.
    const resolved = resolveOptions(own);
    super(startupNodes, hostOptions as object);
    try {
      ClusterAttachment.attach(this as unknown as HostCluster, resolved);
    } catch (error) {
      this.disconnect();
      throw error;
    }
  }
}

/** Host: its `duplicate()` makes a Cluster of its own class; see `redis.ts`. */
Object.defineProperty(Cluster.prototype, 'duplicate', {
  value(this: Cluster, startupNodes: ClusterNode[] = [], override: ClusterOptions = {}) {
    const options: ClusterOptions = { ...this.options, coalesce: this.coalescer?.options, ...override };
    if (this.options.redisOptions && override.redisOptions) {
      options.redisOptions = { ...this.options.redisOptions, ...override.redisOptions };
    }
    return new Cluster(
      startupNodes.length > 0 ? startupNodes : startupNodesOf<ClusterNode>(this as unknown as HostCluster),
      options,
    );
  },
  writable: true,
  configurable: true,
});
