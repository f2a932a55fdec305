import * as ioredis from 'ioredis';
import { ClientAttachment } from './client/client-attachment.js';
import { Cluster } from './cluster.js';
import type { Coalesced, Coalescer } from './handle.js';
import type { HostClient } from './host/types.js';
import { type CoalesceOptions, type ResolvedOptions, resolveOptions } from './options.js';

/** Host: before 5.1 the class is not among the named exports, it is the module itself. */
const IORedis = ioredis.Redis ?? (ioredis.default as unknown as typeof ioredis.Redis);

/** ioredis's options, and how to coalesce. */
export interface RedisOptions extends ioredis.RedisOptions {
  /** See {@link CoalesceOptions}; the defaults suit a web service. */
  coalesce?: CoalesceOptions;
}

type Arguments = [arg1?: unknown, arg2?: unknown, arg3?: unknown];

/**
 * ioredis's `Redis`, coalesced from the start: the same constructor, plus the option `coalesce`.
 *
 * @throws {TypeError} `COALESCE_ERR_OPTION` for an unknown option of `coalesce` or a wrong type.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export class Redis extends IORedis implements Coalesced {
  declare readonly coalescer: Coalescer;

  /** The same as `new Redis(…)`, for those who come from node-redis. */
  static override createClient(...args: ConstructorParameters<typeof Redis>): Redis {
    return new Redis(...args);
  }

  constructor(port: number, host: string, options: RedisOptions);
  constructor(path: string, options: RedisOptions);
  constructor(port: number, options: RedisOptions);
  constructor(port: number, host: string);
  constructor(options: RedisOptions);
  constructor(port: number);
  constructor(path: string);
  constructor();
  constructor(...args: Arguments) {
    const { hostArguments, options } = splitOptions(args);
    super(...(hostArguments as []));
    try {
      ClientAttachment.attach(this as unknown as HostClient, options);
    } catch (error) {
      this.disconnect();
      throw error;
    }
  }
}

/**
 * Host: its `duplicate()` makes a client of its own class. Whoever changed the import line expects one of this class.
 * Defined here, since the host's signature differs among the supported versions; the type stays the host's.
 */
Object.defineProperty(Redis.prototype, 'duplicate', {
  value(this: Redis, override?: Partial<RedisOptions>) {
    return new Redis({ ...this.options, coalesce: this.coalescer?.options, ...override });
  },
  writable: true,
  configurable: true,
});

/** As in `new Redis.Cluster(…)`. Its type stays the host's too: the class has fewer type parameters. */
Object.defineProperty(Redis, 'Cluster', { value: Cluster, writable: true, configurable: true });

/** Takes the key `coalesce` out of the options object, which the host would keep and copy. */
function splitOptions(args: Arguments): { hostArguments: unknown[]; options: ResolvedOptions } {
  let options: CoalesceOptions | undefined;
  const hostArguments = args.map((arg) => {
    if (typeof arg !== 'object' || arg === null || !('coalesce' in arg)) return arg;
    const { coalesce: own, ...rest } = arg as RedisOptions;
    options = own;
    return rest;
  });
  // Checked before the host's constructor runs, which connects.
  return { hostArguments, options: resolveOptions(options) };
}
