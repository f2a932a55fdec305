import { type ClusterNode, type ClusterOptions as HostOptions, Cluster as IORedisCluster } from 'ioredis';
import { attach } from './client/attach.js';
import { type Coalesced, type Coalescer, settingOf } from './handle.js';
import { type HostCluster, startupNodesOf } from './host/cluster.js';
import { type CoalesceSetting, resolveSetting } from './options.js';

/** ioredis's options of a Cluster, and how to coalesce. */
export interface ClusterOptions extends HostOptions {
  /** For every node's connection; see {@link CoalesceOptions}. `false` leaves the Cluster plain. */
  coalesce?: CoalesceSetting | undefined;
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
    const resolved = resolveSetting(own, 'option coalesce');
    super(startupNodes, hostOptions as object);
    attach(this, resolved);
  }
}

/** Host: its `duplicate()` makes a Cluster of its own class; see `redis.ts`. */
Object.defineProperty(Cluster.prototype, 'duplicate', {
  value(this: Cluster, startupNodes: ClusterNode[] = [], override: ClusterOptions = {}) {
    const options: ClusterOptions = { ...this.options, coalesce: settingOf(this), ...override };
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
