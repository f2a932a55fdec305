import type { ClusterNode, ClusterOptions as HostOptions } from 'ioredis';
import { attach } from './attach/attach.js';
import { wrongOption } from './errors.js';
import { type Coalesced, type Coalescer, settingOf } from './handle.js';
import { hostClass, keepMockedDuplicate } from './host/classes.js';
import { type HostCluster, startupNodesOf } from './host/cluster.js';
import type { ClusterMappingOf, HostClusterClass, HostCluster as HostClusterOf, ReplyMapping } from './host/types.js';
import { type CoalesceSetting, resolveSetting, withoutCoalesce } from './options.js';

type WithSetting<T> = T extends object ? T & { coalesce?: CoalesceSetting | undefined } : T;

/** ioredis's options of a Cluster, plus `coalesce`. */
export interface ClusterOptions extends HostOptions {
  /** For every node's connection; see {@link CoalesceOptions}. `false` leaves the Cluster plain. */
  coalesce?: CoalesceSetting | undefined;
  /** `coalesce` may be given here instead, with the other connection options. */
  redisOptions?: WithSetting<HostOptions['redisOptions']>;
}

/** Options whose mapping is known at compile time. Options of a wider type get the default mapping's type. */
type WithMapping<M extends ReplyMapping> = ClusterOptions & {
  redisOptions: HostOptions['redisOptions'] & { replyMapping: M };
};

/** Creates a Cluster of the same class, whose nodes and options override those of this one. */
type Duplicate<M extends ReplyMapping> = <Override extends ClusterOptions | undefined = undefined>(
  startupNodes?: ClusterNode[],
  override?: Override,
) => Cluster<ClusterMappingOf<Override, M>>;

const IORedisCluster = hostClass('Cluster') as HostClusterClass;

/**
 * ioredis's `Cluster`, coalesced from the start: the same constructor, plus the option `coalesce`. The type parameter
 * follows the nodes' `replyMapping`, as in ioredis.
 *
 * @throws {TypeError} `COALESCE_ERR_OPTION` for an unknown option of `coalesce`, a wrong type, or `cache` without
 * RESP3.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export class Cluster<M extends ReplyMapping = 'legacy'> extends IORedisCluster<M> implements Coalesced {
  declare readonly coalescer: Coalescer<this>;

  /** Host: its `duplicate()` creates a Cluster of its own class; see `redis.ts`. */
  declare duplicate: Duplicate<M> & HostClusterOf<M>['duplicate'];

  constructor(startupNodes: ClusterNode[], options: WithMapping<M>);
  constructor(startupNodes: ClusterNode[], options?: ClusterOptions);
  constructor(startupNodes: ClusterNode[], options: ClusterOptions = {}) {
    // Checked before the host's constructor runs, which connects.
    const resolved = resolveSetting(settingIn(options), 'option coalesce');
    super(startupNodes, hostOptions(options));
    try {
      attach(this, resolved, true);
    } catch (error) {
      // A mock may lack it.
      (this as Partial<HostClusterOf<M>>).disconnect?.();
      throw error;
    }
    keepMockedDuplicate(this, super.duplicate, (copy) => attach(copy, false, true));
  }
}

Object.defineProperty(Cluster.prototype, 'duplicate', {
  value(this: Cluster, startupNodes: ClusterNode[] = [], given: ClusterOptions | null = null) {
    const override = given ?? {};
    const redisOptions = { ...this.options.redisOptions, ...override.redisOptions };
    const coalesce = settingIn(override) ?? settingOf(this, (redisOptions.protocol ?? 3) === 3);
    const options: ClusterOptions = { ...this.options, ...override, coalesce };
    if (this.options.redisOptions && override.redisOptions) options.redisOptions = redisOptions;
    const own = () => startupNodesOf<ClusterNode>(this as unknown as HostCluster);
    return new Cluster(startupNodes.length > 0 ? startupNodes : own(), options);
  },
  writable: true,
  configurable: true,
});

/** The setting `coalesce`, from the options of the Cluster or from those of its connections. */
function settingIn({ coalesce, redisOptions }: ClusterOptions): CoalesceSetting | undefined {
  const ofConnections = redisOptions?.coalesce;
  if (coalesce === undefined || ofConnections === undefined || coalesce === ofConnections)
    return coalesce ?? ofConnections;
  throw wrongOption('option coalesce and option redisOptions.coalesce are both given; give one of them');
}

/** The options without `coalesce`, which the host would keep and copy. */
function hostOptions(options: ClusterOptions): HostOptions {
  const own = withoutCoalesce(options);
  const { redisOptions } = own;
  return redisOptions && 'coalesce' in redisOptions ? { ...own, redisOptions: withoutCoalesce(redisOptions) } : own;
}
