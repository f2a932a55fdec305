import { createRequire } from 'node:module';
import type * as IORedis from 'ioredis';
import { describe } from '../errors.js';
import { FASTIFY_REDIS } from './host-plugin.js';

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

const requireHere = createRequire(import.meta.url);

/** Makes the client that @fastify/redis would make of these options, or a Cluster if they have `nodes`. */
export function createClient({ url, nodes, ...options }: HostOptions): object {
  const { Redis, Cluster } = loadHost();
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
    return new Cluster(nodes, { ...options, redisOptions: withTag(options.redisOptions) });
  }
  return url ? new Redis(url, withTag(options)) : new Redis(withTag(options));
}

/** @fastify/redis: the tag by which it shows in CLIENT LIST, unless the options have one. */
function withTag(options: HostOptions = {}): HostOptions {
  if (options.clientInfoTag !== undefined) return options;
  return { ...options, clientInfoTag: defaultTag() };
}

function defaultTag(): string {
  try {
    const { version } = requireHere(`${FASTIFY_REDIS}/package.json`) as { version: string };
    return `fastify-redis_v${version}`;
  } catch {
    return 'fastify-redis';
  }
}

/** The ioredis that the project has chosen; where it has none of its own, the one that came with @fastify/redis. */
function loadHost(): Host {
  try {
    return requireHere('ioredis') as Host;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw error;
    return createRequire(requireHere.resolve(FASTIFY_REDIS))('ioredis') as Host;
  }
}
