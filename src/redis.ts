import type * as ioredis from 'ioredis';
import { attach } from './attach/attach.js';
import { Cluster } from './cluster.js';
import { describe, wrongOption } from './errors.js';
import { type Coalesced, type Coalescer, settingOf } from './handle.js';
import { hostClass, keepMockedDuplicate } from './host/classes.js';
import type { HostRedis, HostRedisClass, MappingOf, ReplyMapping } from './host/types.js';
import {
  type CoalesceSetting,
  DEFAULT_OPTIONS,
  type ResolvedOptions,
  resolveSetting,
  withoutCoalesce,
} from './options.js';

const IORedis = hostClass('Redis') as HostRedisClass;

/** ioredis's options, plus `coalesce`. */
export interface RedisOptions extends ioredis.RedisOptions {
  /** See {@link CoalesceOptions}; the defaults suit a web service. `false` leaves the client plain. */
  coalesce?: CoalesceSetting | undefined;
}

/** Options of `scanStream()`, `hscanStream()` and the like. Host: ioredis 5 does not export the type. */
export type ScanStreamOptions = NonNullable<Parameters<ioredis.Redis['scanStream']>[0]>;

/** Options whose mapping is known at compile time. Options of a wider type get the default mapping's type. */
type WithMapping<M extends ReplyMapping> = RedisOptions & { replyMapping: M };

/** Creates a client of the same class, whose options override those of this one. */
type Duplicate<M extends ReplyMapping> = <Override extends Partial<RedisOptions> | undefined = undefined>(
  override?: Override,
) => Redis<MappingOf<Override, M>>;

const ORDINARY = { writable: true, configurable: true };

type Arguments = [arg1?: unknown, arg2?: unknown, arg3?: unknown];

/**
 * ioredis's `Redis`, coalesced from the start: the same constructor, plus the option `coalesce`. The type parameter
 * follows `replyMapping`, as in ioredis.
 *
 * @throws {TypeError} `COALESCE_ERR_OPTION` for an unknown option of `coalesce`, a wrong type, or `cache` without
 * RESP3.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export class Redis<M extends ReplyMapping = 'legacy'> extends IORedis<M> implements Coalesced {
  /** The class of `new Redis.Cluster(…)`. */
  declare static Cluster: typeof Cluster;

  declare readonly coalescer: Coalescer<this>;

  /**
   * Host: its `duplicate()` creates a client of its own class. Users who changed only the import line expect this
   * class. Defined below, because the host's signature differs among the supported versions.
   */
  declare duplicate: Duplicate<M> & HostRedis<M>['duplicate'];

  /** The same as `new Redis(…)`, for users coming from node-redis. */
  declare static createClient: (...args: ConstructorParameters<typeof Redis>) => Redis;

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
      attach(this, takeFromHost(this, options), true);
    } catch (error) {
      // A mock may lack it.
      (this as Partial<HostRedis<M>>).disconnect?.();
      throw error;
    }
    keepMockedDuplicate(this, super.duplicate, (copy) => attach(copy, false, true));
  }
}

Object.defineProperty(Redis.prototype, 'duplicate', {
  ...ORDINARY,
  value(this: Redis, override?: Partial<RedisOptions>) {
    const { protocol, monitor } = { ...this.options, ...override };
    // Host: `monitor()` creates its client here.
    const coalesce = override?.coalesce ?? (monitor ? false : settingOf(this, (protocol ?? 3) === 3));
    return new Redis({ ...this.options, ...override, coalesce });
  },
});

Object.defineProperty(Redis, 'Cluster', { value: Cluster, ...ORDINARY });

// Outside the class: bundlers rename a class that names itself.
Object.defineProperty(Redis, 'createClient', {
  value: function createClient(...args: Arguments) {
    return new (Redis as new (...all: Arguments) => Redis)(...args);
  },
  ...ORDINARY,
});

/** Host: `parseOptions` reads the defaults of its own class, so assignments to this one's are passed on. */
Object.defineProperty(Redis, 'defaultOptions', {
  get: () => Reflect.get(IORedis, 'defaultOptions') as unknown,
  set(this: unknown, value: unknown) {
    if (this === Redis) Reflect.set(IORedis, 'defaultOptions', value);
    // A subclass gets its own property, which the host does not read.
    else Reflect.defineProperty(this as object, 'defaultOptions', { value, ...ORDINARY, enumerable: true });
  },
  configurable: true,
});

/** Removes `coalesce` from the options object, because the host would keep and copy it. */
function splitOptions(args: Arguments): { hostArguments: unknown[]; options: ResolvedOptions | false | undefined } {
  let options: CoalesceSetting | undefined;
  const hostArguments = args.map((arg) => {
    if (typeof arg !== 'object' || arg === null || !('coalesce' in arg)) return arg;
    options = (arg as RedisOptions).coalesce;
    return withoutCoalesce(arg);
  });
  // Checked before the host's constructor runs, which connects.
  return { hostArguments, options: options === undefined ? undefined : resolveSetting(options, 'option coalesce') };
}

/**
 * Removes the setting from the client's own options. Host: these get `coalesce` from a URL's query, as text, and from
 * `defaultOptions`.
 *
 * @param given - the setting in the constructor's options; undefined if there is none.
 */
function takeFromHost(client: object, given: ResolvedOptions | false | undefined): ResolvedOptions | false {
  const { options } = client as { options?: { coalesce?: unknown } };
  const found = options?.coalesce;
  if (options === undefined || found === undefined) return given ?? DEFAULT_OPTIONS;
  Reflect.deleteProperty(options, 'coalesce');
  if (found === 'false') return false;
  if (found === 'true') return given || DEFAULT_OPTIONS;
  if (typeof found === 'string' || Array.isArray(found)) {
    throw wrongOption(`coalesce in the URL must be true or false, got ${describe(found)}`);
  }
  return given ?? resolveSetting(found as CoalesceSetting, 'defaultOptions.coalesce');
}
