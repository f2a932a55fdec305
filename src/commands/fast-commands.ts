/**
 * The fast path's allow-list, as data.
 *
 * A command may be listed if it takes plain arguments, gets exactly one reply, does not block and does not change the
 * state of its connection. The number of arguments is not checked: the server refuses a wrong one with the same error
 * as for a plain client. CONTRIBUTING.md lists the steps to add one.
 */

/**
 * The arguments to which `keyPrefix` applies: the first, the first two, all, every second from the first (`MSET`), or
 * none. `own` is another rule, under which commands of clients with a prefix are left to the host.
 */
export type KeyRule = 'first' | 'two' | 'all' | 'pairs' | 'none' | 'own';

export interface FastCommand {
  /** Lower case, as the host writes it on the wire. */
  readonly name: string;
  readonly keys: KeyRule;
  /** Flagged `readonly` by Redis, so that a Cluster with `scaleReads` may send it to a replica. */
  readonly readOnly: boolean;
  /** A read whose answer depends only on the data, so that identical reads may share a reply. */
  readonly shareable: boolean;
  /** A shareable read of one key, its first argument, whose answer may be kept because it does not change with time. */
  readonly cacheable: boolean;
  /** The reply of a cacheable read, or each element of it, for a missing key; undefined if arguments decide. */
  readonly missing: null | 0 | '' | 'none' | undefined;
  /** Field names and values alternate in its reply. */
  readonly paired: boolean;
  /** The command that can replace several of it (`fuseReads`). */
  readonly fused: FusedName | undefined;
}

/** MGET replaces GETs, HMGET replaces HGETs. */
export type FusedName = 'mget' | 'hmget';

/** The properties of a command that is not listed below. */
export const UNLISTED = {
  keys: 'first',
  readOnly: false,
  shareable: false,
  cacheable: false,
  missing: undefined,
  paired: false,
  fused: undefined,
} as const satisfies Omit<FastCommand, 'name'>;

/** A fast command in one of its two variants: `get` or `getBuffer`. */
export interface CommandVariant {
  readonly command: FastCommand;
  readonly encoding: 'utf8' | null;
  /** The bytes before a call's own arguments, by their number; undefined if they have to be encoded each time. */
  readonly heads: { for(argumentCount: number): string } | undefined;
  /** The script, if it is a defined command. */
  readonly script?: ScriptForm | undefined;
}

/** A script as EVAL or EVALSHA. */
export interface ScriptForm {
  /** The arguments before a call's own: the script or its hash, and the number of keys if it is fixed. */
  readonly leading: readonly unknown[];
  /** The variant for its next command on this stream. */
  formOn(stream: object): CommandVariant;
  /** A command on this stream was rejected. */
  rejected(stream: object, error: Error): void;
}

/** The positions of keys from the first argument on, by rule: their largest number, and the distance between them. */
export const KEY_POSITIONS = {
  first: { count: 1, step: 1 },
  two: { count: 2, step: 1 },
  all: { count: Number.POSITIVE_INFINITY, step: 1 },
  pairs: { count: Number.POSITIVE_INFINITY, step: 2 },
  none: { count: 0, step: 1 },
  own: undefined,
} as const satisfies Record<KeyRule, { readonly count: number; readonly step: number } | undefined>;

type Table = Partial<Record<KeyRule, string>>;

/** Reads that may be shared and cached, by their answer for a missing key; an empty array or map counts as null. */
const CACHEABLE_READS: readonly [missing: FastCommand['missing'], names: string][] = [
  [
    null,
    `get hget hmget hgetall hkeys hvals lrange lindex lpos smembers
    zscore zmscore zrank zrevrank zrange zrangebyscore zrangebylex zrevrange zrevrangebyscore zrevrangebylex
    xrange xrevrange geopos geodist geohash geosearch`,
  ],
  [
    0,
    `strlen getbit bitcount hexists hlen hstrlen llen sismember smismember scard
    zcard zcount zlexcount xlen`,
  ],
  ['', 'getrange'],
  ['none', 'type'],
  [undefined, 'bitpos'],
];

/** Reads that may be shared, by key rule. */
const READS: Table = {
  first: 'ttl pttl expiretime pexpiretime dump',
  two: 'lcs',
  all: 'mget exists sinter sunion sdiff',
  own: 'zunion zinter zdiff sintercard zintercard',
};

/** Reads that are random, depend on more than the data, have a cursor, or change what they read. */
const IMPURE_READS: Table = {
  first: 'hrandfield hscan srandmember sscan zrandmember zscan xpending',
  all: 'touch pfcount',
  none: 'randomkey dbsize keys scan',
};

/** Commands that Redis does not flag `readonly`: writes, and commands about the server or the connection. */
const OTHERS: Table = {
  first: `
    set setex psetex setnx setrange append getset getdel getex incr incrby incrbyfloat decr decrby setbit bitfield
    expire pexpire expireat pexpireat persist restore
    hset hsetnx hmset hdel hincrby hincrbyfloat
    lpush rpush lpushx rpushx lpop rpop lset linsert lrem ltrim
    sadd srem spop
    zadd zrem zincrby zpopmin zpopmax zremrangebyrank zremrangebyscore zremrangebylex
    xadd xdel xtrim xack xclaim xautoclaim
    pfadd geoadd spublish`,
  two: 'rename renamenx copy smove rpoplpush lmove zrangestore',
  all: 'del unlink sinterstore sunionstore sdiffstore pfmerge',
  pairs: 'mset msetnx',
  none: 'echo ping publish time',
  own: 'eval evalsha object sort bitop zunionstore zinterstore zdiffstore geosearchstore lmpop zmpop',
};

const FUSED: Readonly<Record<string, FusedName>> = { get: 'mget', hget: 'hmget' };

export const FAST_COMMANDS: readonly FastCommand[] = [
  ...CACHEABLE_READS.flatMap(([missing, names]) =>
    commands({ first: names }, { readOnly: true, shareable: true, cacheable: true }, missing),
  ),
  ...commands(READS, { readOnly: true, shareable: true, cacheable: false }),
  ...commands(IMPURE_READS, { readOnly: true, shareable: false, cacheable: false }),
  ...commands(OTHERS, { readOnly: false, shareable: false, cacheable: false }),
];

function commands(
  table: Table,
  flags: Pick<FastCommand, 'readOnly' | 'shareable' | 'cacheable'>,
  missing?: FastCommand['missing'],
): FastCommand[] {
  return Object.entries(table).flatMap(([keys, names]) =>
    words(names).map((name) => {
      return { name, keys: keys as KeyRule, ...flags, missing, paired: name === 'hgetall', fused: FUSED[name] };
    }),
  );
}

export function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** Whether a missing key would have the same answer. */
export function isOfMissingKey({ missing }: Pick<FastCommand, 'missing'>, answer: unknown): boolean {
  if (Array.isArray(answer)) return missing !== undefined && answer.every((each) => isOfMissingKey({ missing }, each));
  if (missing !== null) return missing !== undefined && String(answer) === String(missing);
  return answer === null || (typeof answer === 'object' && Object.keys(answer).length === 0);
}

/** The two methods of a command, which return text and Buffers. */
export function methodsNamed(name: string): readonly (readonly [methodName: string, encoding: 'utf8' | null])[] {
  return [
    [name, 'utf8'],
    [`${name}Buffer`, null],
  ];
}
