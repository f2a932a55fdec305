/** The types of ioredis's classes: generic over the reply mapping since ioredis 6, not before. */
import type * as ioredis from 'ioredis';

/** How ioredis 6 maps the types of RESP3 that RESP2 does not have; see its option `replyMapping`. */
export type ReplyMapping = 'legacy' | 'resp3';

type HostIsGeneric = 'replyMapping' extends keyof ioredis.RedisOptions ? true : false;

// biome-ignore lint/suspicious/noTsIgnore: an error in the declarations that users of ioredis 5 compile, and in none here
/** @ts-ignore: with ioredis 5 the first branch names a type that is not generic, and the second is taken. */
export type HostRedis<M extends ReplyMapping> = HostIsGeneric extends true ? ioredis.Redis<M> : ioredis.Redis;

// biome-ignore lint/suspicious/noTsIgnore: as above
/** @ts-ignore: as above. */
export type HostCluster<M extends ReplyMapping> = HostIsGeneric extends true ? ioredis.Cluster<M> : ioredis.Cluster;

type Replaced = 'prototype' | 'Cluster' | 'createClient';

/** The class `Redis` in a form that a generic class can extend, without the members that the drop-in class defines. */
export interface HostRedisClass extends Omit<typeof ioredis.Redis, Replaced> {
  new <M extends ReplyMapping = 'legacy'>(...args: unknown[]): HostRedis<M>;
  readonly prototype: ioredis.Redis;
}

export interface HostClusterClass extends Omit<typeof ioredis.Cluster, Replaced> {
  new <M extends ReplyMapping = 'legacy'>(...args: unknown[]): HostCluster<M>;
  readonly prototype: ioredis.Cluster;
}

/** The mapping that the options name, or else the current one. */
export type MappingOf<Options, Current extends ReplyMapping> = Options extends { replyMapping: infer Mapping }
  ? [Extract<Mapping, ReplyMapping>] extends [never]
    ? Current
    : Extract<Mapping, ReplyMapping>
  : Current;

/** Like `MappingOf`, for the options of a Cluster. */
export type ClusterMappingOf<Options, Current extends ReplyMapping> = Options extends { redisOptions: infer OfNodes }
  ? MappingOf<OfNodes, Current>
  : Current;
