/**
 * `ioredis-coalesce`: the drop-in client, `coalesce()` for a client you have, and what people import from ioredis
 * beside them.
 */

export {
  AbstractConnector,
  type Callback,
  type ChainableCommander,
  type ClientContext,
  Command,
  type CommonRedisOptions,
  type NatMap,
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
export * from './coalesce.js';
export { Redis, Redis as default, type RedisOptions } from './redis.js';
