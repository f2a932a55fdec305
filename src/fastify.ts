/**
 * `ioredis-coalesce/fastify`: @fastify/redis with coalesced clients. Registering, decorating, startup errors and
 * closing are left to @fastify/redis; this file makes the client for it.
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

/** Of the copy of ioredis that @fastify/redis was compiled with: not ours, where ours is ioredis 5. */
type PluginRedis = Exclude<Extract<HostPluginOptions, { client: unknown }>['client'], { nodes: unknown }>;

declare module '@fastify/redis' {
  /**
   * @fastify/redis declares `app.redis`, and TypeScript allows one declaration, so ours adds to the type of that one.
   * It has an index signature by which every property is a plain client. Others may only narrow it: one for all names,
   * which begin with a capital or do not, and members of ours, which so have to be clients too as far as types know.
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
  /** The name of the client on `fastify.redis`, for more than one of them. */
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
  /** Nodes of the Cluster to start from, as the first argument of `new Cluster()`. */
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

/** The options of all forms at once: JavaScript users may have mixed them. */
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
 * The marks that the package fastify-plugin sets, under the symbols that Fastify reads: decorate the instance that the
 * plugin is registered on, not a child of it. That package is not used: its `require('path')` cannot be part of an ES
 * module.
 */
Object.assign(fastifyCoalesce, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: '@fastify/redis',
  [Symbol.for('plugin-meta')]: { fastify: '5.x', name: '@fastify/redis' },
});

/** `fastifyRedis` is the name that @fastify/redis gives its plugin. */
export { fastifyCoalesce as default, fastifyCoalesce as fastifyRedis };

/** Whether @fastify/redis is about to refuse the registration: then a client must be neither made nor changed. */
function isTaken(fastify: FastifyInstance, namespace: string | undefined): boolean {
  const registered = fastify.redis as FastifyRedis | undefined;
  return Boolean(namespace ? registered?.[namespace] : registered);
}

function withCoalescedClient({ namespace, client, closeClient = false, ...options }: GivenOptions): object {
  // @fastify/redis closes every client that it made, whatever `closeClient` says.
  if (!client) return { namespace, client: createClient(options), closeClient: true };
  resolveSetting(options.coalesce, 'option coalesce');
  return { namespace, client: coalesce(client, options.coalesce), closeClient };
}

/** Makes the client that @fastify/redis would make of these options, or a Cluster if they have `nodes`. */
function createClient({ url, nodes, ...options }: GivenOptions): object {
  if (nodes === undefined) return url ? new Redis(url, withTag(options)) : new Redis(withTag(options));
  if (url) {
    throw wrongOption('the options "url" and "nodes" exclude each other: a Cluster starts from its nodes');
  }
  checked(nodes, 'options.nodes', 'an array of Cluster nodes to start from', Array.isArray(nodes));
  return new Cluster(nodes, { ...options, redisOptions: withTag(options.redisOptions ?? {}) } as object);
}

/** @fastify/redis: the tag by which it shows in CLIENT LIST, unless the options have one. */
function withTag(options: RedisOptions): RedisOptions {
  return options.clientInfoTag === undefined ? { ...options, clientInfoTag: defaultTag() } : options;
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
