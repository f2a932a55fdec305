import * as ioredis from 'ioredis';
import { attach } from './client/attach.js';
import { Cluster } from './cluster.js';
import { type Coalesced, type Coalescer, settingOf } from './handle.js';
import type { HostRedis, HostRedisClass, MappingOf, ReplyMapping } from './host/classes.js';
import { type CoalesceSetting, type ResolvedOptions, resolveSetting, withoutCoalesce } from './options.js';

/** Host: before 5.1 the class is not a named export, it is the module itself. */
const IORedis = (ioredis.Redis ?? ioredis.default) as unknown as HostRedisClass;

/** ioredis's options, and how to coalesce. */
export interface RedisOptions extends ioredis.RedisOptions {
  /** See {@link CoalesceOptions}; the defaults suit a web service. `false` leaves the client plain. */
  coalesce?: CoalesceSetting | undefined;
}

/** Options of `scanStream()`, `hscanStream()` and the like. Host: ioredis 5 does not export the type. */
export type ScanStreamOptions = NonNullable<Parameters<ioredis.Redis['scanStream']>[0]>;

/** Options whose mapping is known at compile time. Options of a wider type give the type of the default mapping. */
type WithMapping<M extends ReplyMapping> = RedisOptions & { replyMapping: M };

/** Makes a client of the same class, with these options over those of this one. */
type Duplicate<M extends ReplyMapping> = <Override extends Partial<RedisOptions> | undefined = undefined>(
  override?: Override,
) => Redis<MappingOf<Override, M>>;

type Arguments = [arg1?: unknown, arg2?: unknown, arg3?: unknown];

/**
 * ioredis's `Redis`, coalesced from the start: the same constructor, plus the option `coalesce`. As there, the type
 * parameter follows the option `replyMapping`.
 *
 * @throws {TypeError} `COALESCE_ERR_OPTION` for an unknown option of `coalesce`, a wrong type, or `cache` without RESP3.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export class Redis<M extends ReplyMapping = 'legacy'> extends IORedis<M> implements Coalesced {
  /** As in `new Redis.Cluster(…)`. */
  declare static Cluster: typeof Cluster;

  declare readonly coalescer: Coalescer;

  /**
   * Host: its `duplicate()` makes a client of its own class. Users who changed the import line expect this class.
   * Defined below, since the host's signature differs among the supported versions.
   */
  declare duplicate: Duplicate<M> & HostRedis<M>['duplicate'];

  /** The same as `new Redis(…)`, for users who come from node-redis. */
  static createClient(...args: ConstructorParameters<typeof Redis>): Redis {
    return new Redis(...args);
  }

  constructor(port: number, host: string, options: WithMapping<M>);
  constructor(port: number, host: string, options: RedisOptions);
  constructor(path: string, options: WithMapping<M>);
  constructor(path: string, options: RedisOptions);
  constructor(port: number, options: WithMapping<M>);
  constructor(port: number, options: RedisOptions);
  constructor(port: number, host: string);
  constructor(options: WithMapping<M>);
  constructor(options: RedisOptions);
  constructor(port: number);
  constructor(path: string);
  constructor();
  constructor(...args: Arguments) {
    const { hostArguments, options } = splitOptions(args);
    super(...hostArguments);
    try {
      attach(this, options);
    } catch (error) {
      this.disconnect();
      throw error;
    }
  }
}

Object.defineProperty(Redis.prototype, 'duplicate', {
  value(this: Redis, override?: Partial<RedisOptions>) {
    const { protocol } = { ...this.options, ...override };
    return new Redis({ ...this.options, coalesce: settingOf(this, protocol === 3), ...override });
  },
  writable: true,
  configurable: true,
});

Object.defineProperty(Redis, 'Cluster', { value: Cluster, writable: true, configurable: true });

/** Takes the key `coalesce` out of the options object, which the host would keep and copy. */
function splitOptions(args: Arguments): { hostArguments: unknown[]; options: ResolvedOptions | false } {
  let options: CoalesceSetting | undefined;
  const hostArguments = args.map((arg) => {
    if (typeof arg !== 'object' || arg === null || !('coalesce' in arg)) return arg;
    options = (arg as RedisOptions).coalesce;
    return withoutCoalesce(arg);
  });
  // Checked before the host's constructor runs, which connects.
  return { hostArguments, options: resolveSetting(options, 'option coalesce') };
}
