import type * as IORedis from 'ioredis';
import { describe } from '../errors.js';
import { loadIoredis, versionOfFastifyRedis } from './packages.js';

/** Its constructors check the options themselves. */
interface Host {
  readonly Redis: new (...args: unknown[]) => IORedis.Redis;
  readonly Cluster: new (nodes: unknown[], options: object) => IORedis.Cluster;
}

interface HostOptions {
  clientInfoTag?: unknown;
  redisOptions?: HostOptions;
  [option: string]: unknown;
}

/** Makes the client that @fastify/redis would make of these options, or a Cluster if they have `nodes`. */
export async function createClient({ url, nodes, ...options }: HostOptions): Promise<object> {
  if (nodes !== undefined) {
    if (url)
      throw new TypeError(
        'ioredis-coalesce: the options "url" and "nodes" exclude each other: a Cluster starts from its nodes',
      );
    if (!Array.isArray(nodes)) {
      throw new TypeError(
        `ioredis-coalesce: options.nodes must be an array of Cluster nodes to start from, got ${describe(nodes)}`,
      );
    }
    const { Cluster } = await loadHost();
    return new Cluster(nodes, { ...options, redisOptions: withTag(options.redisOptions) });
  }
  const { Redis } = await loadHost();
  return url ? new Redis(url, withTag(options)) : new Redis(withTag(options));
}

/** @fastify/redis: the tag by which it shows in CLIENT LIST, unless the options have one. */
function withTag(options: HostOptions = {}): HostOptions {
  if (options.clientInfoTag !== undefined) return options;
  return { ...options, clientInfoTag: defaultTag() };
}

function defaultTag(): string {
  const version = versionOfFastifyRedis();
  return version === undefined ? 'fastify-redis' : `fastify-redis_v${version}`;
}

async function loadHost(): Promise<Host> {
  const ioredis = (await loadIoredis()) as Host & { readonly default: Host['Redis'] };
  // Host: before 5.1 the class is not among the named exports, it is the module itself.
  return { Redis: ioredis.Redis ?? ioredis.default, Cluster: ioredis.Cluster };
}
