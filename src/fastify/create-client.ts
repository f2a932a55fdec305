import { createRequire } from 'node:module';
import * as ioredis from 'ioredis';
import { CODES, describe, withCode } from '../errors.js';

/** Its constructors check the options themselves. Host: before 5.1 the class is not a named export, it is the module itself. */
const Redis = (ioredis.Redis ?? ioredis.default) as unknown as new (...args: unknown[]) => ioredis.Redis;
const Cluster = ioredis.Cluster as unknown as new (nodes: unknown[], options: object) => ioredis.Cluster;

interface HostOptions {
  clientInfoTag?: unknown;
  redisOptions?: HostOptions;
  [option: string]: unknown;
}

/** Makes the client that @fastify/redis would make of these options, or a Cluster if they have `nodes`. */
export function createClient({ url, nodes, ...options }: HostOptions): object {
  if (nodes === undefined) return url ? new Redis(url, withTag(options)) : new Redis(withTag(options));
  if (url) {
    throw wrongOption('the options "url" and "nodes" exclude each other: a Cluster starts from its nodes');
  }
  if (!Array.isArray(nodes)) {
    throw wrongOption(`options.nodes must be an array of Cluster nodes to start from, got ${describe(nodes)}`);
  }
  return new Cluster(nodes, { ...options, redisOptions: withTag(options.redisOptions) });
}

function wrongOption(message: string): Error {
  return withCode(new TypeError(`ioredis-coalesce: ${message}`), CODES.OPTION);
}

/** @fastify/redis: the tag by which it shows in CLIENT LIST, unless the options have one. */
function withTag(options: HostOptions = {}): HostOptions {
  if (options.clientInfoTag !== undefined) return options;
  return { ...options, clientInfoTag: defaultTag() };
}

/** The version of @fastify/redis is not to be found from a bundle. */
function defaultTag(): string {
  try {
    const { version } = createRequire(import.meta.url)('@fastify/redis/package.json') as { version: string };
    return `fastify-redis_v${version}`;
  } catch {
    return 'fastify-redis';
  }
}
