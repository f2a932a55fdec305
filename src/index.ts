/**
 * `ioredis-coalesce`: the drop-in client, `coalesce()` for an existing client, and the other exports of ioredis that
 * users import.
 */

export {
  AbstractConnector,
  type Callback,
  type ChainableCommander,
  type ClientContext,
  type ClusterNode,
  Command,
  type CommonRedisOptions,
  type DNSLookupFunction,
  type DNSResolveSrvFunction,
  type NatMap,
  type NodeRole,
  Pipeline,
  print,
  type RedisCommander,
  type RedisKey,
  type RedisValue,
  ReplyError,
  type Result,
  ScanStream,
  type SentinelAddress,
  type SentinelConnectionOptions,
  SentinelConnector,
  SentinelIterator,
  type StandaloneConnectionOptions,
} from 'ioredis';
export { Cluster, type ClusterOptions } from './cluster.js';
export * from './coalesce.js';
export type { ReplyMapping } from './host/types.js';
export { Redis, Redis as default, type RedisOptions, type ScanStreamOptions } from './redis.js';
