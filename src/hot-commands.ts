/**
 * The hot path's allow-list, as data.
 *
 * A command may stand here when it takes plain arguments, gets exactly one reply, does not block and does not change
 * the state of its connection. Arity is not checked: a wrong one is refused by the server, in the same words as for a
 * plain client.
 */

/**
 * Which arguments `keyPrefix` applies to: the first, the first two, all, every second from the first (`MSET`), none,
 * or a rule of their own (`own`), which leaves prefixed clients to the host.
 */
export type KeyRule = 'first' | 'two' | 'all' | 'pairs' | 'none' | 'own';

export interface HotCommand {
  /** Lower case, as the host writes it on the wire. */
  readonly name: string;
  readonly keys: KeyRule;
  /** A read whose answer depends on the data alone: identical ones may share a reply. */
  readonly shareable: boolean;
}

/** Reads that may be shared, by key rule. */
const READS: Record<KeyRule, string> = {
  first: `
    get getrange strlen getbit bitcount bitpos type ttl pttl expiretime pexpiretime dump
    hget hmget hgetall hexists hlen hkeys hvals hstrlen
    llen lrange lindex lpos
    sismember smismember smembers scard
    zscore zmscore zcard zcount zrank zrevrank zrange zrangebyscore zrangebylex
    zrevrange zrevrangebyscore zrevrangebylex zlexcount
    xlen xrange xrevrange
    geopos geodist geohash geosearch`,
  two: 'lcs',
  all: 'mget exists sinter sunion sdiff pfcount',
  pairs: '',
  none: 'echo',
  own: 'zunion zinter zdiff sintercard zintercard',
};

/** Writes, and reads that are random, stateful or cursors. */
const OTHERS: Record<KeyRule, string> = {
  first: `
    set setex psetex setnx setrange append getset getdel getex incr incrby incrbyfloat decr decrby setbit bitfield
    expire pexpire expireat pexpireat persist restore
    hset hsetnx hmset hdel hincrby hincrbyfloat hrandfield hscan
    lpush rpush lpushx rpushx lpop rpop lset linsert lrem ltrim
    sadd srem spop srandmember sscan
    zadd zrem zincrby zpopmin zpopmax zrandmember zremrangebyrank zremrangebyscore zremrangebylex zscan
    xadd xdel xtrim xack xclaim xpending xautoclaim
    pfadd geoadd spublish`,
  two: 'rename renamenx copy smove rpoplpush lmove zrangestore',
  all: 'del unlink touch sinterstore sunionstore sdiffstore pfmerge',
  pairs: 'mset msetnx',
  none: 'ping publish randomkey dbsize time keys scan',
  own: 'eval evalsha object sort bitop zunionstore zinterstore zdiffstore geosearchstore lmpop zmpop',
};

export const HOT_COMMANDS: readonly HotCommand[] = [...commands(READS, true), ...commands(OTHERS, false)];

function commands(table: Record<KeyRule, string>, shareable: boolean): HotCommand[] {
  return Object.entries(table).flatMap(([keys, names]) =>
    names
      .split(/\s+/)
      .filter((name) => name !== '')
      .map((name) => ({ name, keys: keys as KeyRule, shareable })),
  );
}
