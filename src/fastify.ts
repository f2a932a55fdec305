/**
 * `ioredis-coalesce/fastify`: @fastify/redis with coalesced clients. This file creates the client; @fastify/redis does
 * the registration, decoration, startup errors and closing.
 */

import { createRequire } from 'node:module';
import hostPlugin, { type FastifyRedis, type FastifyRedisPluginOptions as HostPluginOptions } from '@fastify/redis';
import type { FastifyInstance, FastifyPluginCallback } from 'fastify';
import type { ClusterNode, ClusterOptions, Cluster as HostCluster, Redis as HostRedis, RedisOptions } from 'ioredis';
import { Cluster } from './cluster.js';
import { coalesce } from './coalesce.js';
import { wrongOption } from './errors.js';
import type { Coalesced, Coalescer } from './handle.js';
import { type CoalesceSetting, checked, resolveSetting } from './options.js';
import { Redis } from './redis.js';

/** The class in @fastify/redis's copy of ioredis, which is not ours if ours is ioredis 5. */
type PluginRedis = Exclude<Extract<HostPluginOptions, { client: unknown }>['client'], { nodes: unknown }>;

declare module '@fastify/redis' {
  /**
   * @fastify/redis declares `app.redis`, and TypeScript allows only one declaration, so ours extends its type.
   *   Its index signature makes every property a plain client, and other declarations may only narrow that: the one for
   *   all names, capitalized or not, and our members, which must therefore be typed as clients, too.
   */
  interface FastifyRedisNamespacedInstance {
    [namespace: Capitalize<string> | Uncapitalize<string>]: PluginRedis & Coalesced;
    readonly coalescer: Coalescer<Redis> & PluginRedis & Coalesced;
    readonly duplicate: Redis['duplicate'] & PluginRedis & Coalesced;
  }
}

export type { FastifyRedis, FastifyRedisNamespacedInstance } from '@fastify/redis';

/** A client of another copy of ioredis, or of iovalkey. */
export interface OtherClient {
  readonly status: string;
  readonly isCluster: boolean;
  ping(): Promise<string>;
  quit(): Promise<string>;
  duplicate(...args: never[]): unknown;
}

interface CommonOptions {
  /** The client's name on `fastify.redis`, if there is more than one. */
  namespace?: string;
  /** How to coalesce; the defaults suit a web service. `false` leaves the client plain. */
  coalesce?: CoalesceSetting | undefined;
}

/** ioredis's options; the client is closed with the application. */
export interface ServerOptions extends CommonOptions, RedisOptions {
  /** `redis://user:password@host:port/db`; the other options apply too. */
  url?: string;
  client?: never;
  nodes?: never;
}

/** ioredis's options of a Cluster; it is closed with the application. */
export interface ClusterNodesOptions extends CommonOptions, ClusterOptions {
  /** Startup nodes of the Cluster, as in the first argument of `new Cluster()`. */
  nodes: ClusterNode[];
  client?: never;
  url?: never;
}

/** Your own client, coalesced in place. */
export interface ClientOptions extends CommonOptions {
  client: HostRedis | HostCluster | OtherClient;
  /**
   * Whether the client is closed with the application.
   * @default false
   */
  closeClient?: boolean;
}

/** The options of @fastify/redis, `coalesce`, and `nodes` for a Cluster. */
export type FastifyRedisPluginOptions = ServerOptions | ClusterNodesOptions | ClientOptions;

/** The options of all kinds at once, because JavaScript users may have mixed them. */
interface GivenOptions extends CommonOptions, RedisOptions {
  client?: object;
  closeClient?: boolean;
  nodes?: ClusterNode[];
  redisOptions?: RedisOptions;
  url?: string;
}

/**
 * @fastify/redis with coalesced clients: the same options and behaviour, plus `coalesce`, plus `nodes` for a Cluster.
 *
 * The plugin's name is that of @fastify/redis, so that plugins which declare it as their dependency find it.
 */
export const fastifyCoalesce: FastifyPluginCallback<FastifyRedisPluginOptions> = (fastify, options, next) => {
  let delegated: object = options;
  try {
    if (!isTaken(fastify, options.namespace)) delegated = withCoalescedClient(options as GivenOptions);
  } catch (error) {
    next(error as Error);
    return;
  }
  (hostPlugin as unknown as FastifyPluginCallback<object>)(fastify, delegated, next);
};

/**
 * Properties that the package fastify-plugin would set, so that Fastify decorates the instance that registers the
 * plugin, not a child of it. That package is not used, because an ES module cannot include its `require('path')`.
 */
Object.assign(fastifyCoalesce, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: '@fastify/redis',
  [Symbol.for('plugin-meta')]: { fastify: '5.x', name: '@fastify/redis' },
});

/** `fastifyRedis` is the name that @fastify/redis gives its plugin. */
export { fastifyCoalesce as default, fastifyCoalesce as fastifyRedis };

/** Whether @fastify/redis will refuse the registration. If so, no client may be created or changed. */
function isTaken(fastify: FastifyInstance, namespace: string | undefined): boolean {
  const registered = fastify.redis as FastifyRedis | undefined;
  return Boolean(namespace ? registered?.[namespace] : registered);
}

function withCoalescedClient({ namespace, client, closeClient = false, ...options }: GivenOptions): object {
  // @fastify/redis closes every client that it has created, even without `closeClient`.
  if (!client) return { namespace, client: createClient(options), closeClient: true };
  resolveSetting(options.coalesce, 'option coalesce');
  return { namespace, client: coalesce(client, options.coalesce), closeClient };
}

/** Creates the client that @fastify/redis would create, or a Cluster if the options have `nodes`. */
function createClient({ url, nodes, ...options }: GivenOptions): object {
  if (nodes === undefined) return url ? new Redis(url, withTag(options)) : new Redis(withTag(options));
  if (url) {
    throw wrongOption('the options "url" and "nodes" exclude each other: a Cluster starts from its nodes');
  }
  checked(nodes, 'options.nodes', 'an array of Cluster nodes to start from', Array.isArray(nodes));
  return new Cluster(nodes, { ...options, redisOptions: withTag(options.redisOptions ?? {}) } as object);
}

/** Adds @fastify/redis's tag in CLIENT LIST, unless the options have one. */
function withTag(options: RedisOptions): RedisOptions {
  return options.clientInfoTag === undefined ? { ...options, clientInfoTag: defaultTag() } : options;
}

/** From a bundle, the version of @fastify/redis cannot be found. */
function defaultTag(): string {
  try {
    const { version } = createRequire(import.meta.url)('@fastify/redis/package.json') as { version: string };
    return `fastify-redis_v${version}`;
  } catch {
    return 'fastify-redis';
  }
}
