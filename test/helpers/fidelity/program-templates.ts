/**
 * Commands as words. `k` is a key, `v` a value, `f` a field, `i` an integer, `s` a score, `t` a time, `m` pairs in any
 * form; every other word stands for itself. None asks for the time or for chance, nor leaves the time in the data as
 * `xreadgroup` does, nor (`dump`) shows the order of a set.
 */
const HOT = `
get k|get k|get k|get k|set k v|set k v|set k v|set k v EX 5000000|set k v NX|set k v XX GET|getset k v|getdel k
getex k|getex k EX 5000000|getex k PERSIST|setex k t v|setnx k v|setrange k i v|getrange k i i|append k v|strlen k
mget k k k|mget k|mset k v k v|mset m|msetnx k v k v|msetnx m|incr k|decr k|incrby k i|decrby k i|incrbyfloat k s
del k|del k k|unlink k|exists k k|expire k t|expire k t NX|expireat k t|persist k|type k|setrange str 100000 v|touch k k
rename k k|renamenx k k|copy k k|copy k k REPLACE
hget hash f|hget k f|hset hash f v|hset k f v f v|hset k m|hsetnx k f v|hmset k m|hmset k f v|hmget k f f f|hgetall k
hgetall hash|hdel k f f|hexists k f|hlen k|hkeys k|hvals k|hincrby k f i|hincrbyfloat k f s|hstrlen k f
lpush k v v|rpush list v|rpush k v|lpushx k v|rpushx k v|lpop k|lpop k i|rpop k|rpop list i|llen k|lrange k 0 -1
lrange list i i|lindex k i|lset k i v|linsert k BEFORE v v|lrem k i v|ltrim k i i|lmove k k LEFT RIGHT|rpoplpush k k
lpos k v|lpos k v COUNT 0
sadd k v v|sadd intset i i|srem k v|sismember k v|smismember k v v|smembers k|scard k|smove k k v|sinter k k|sunion k k
sdiff k k|sinterstore k k k|sunionstore k k k|sdiffstore k k k|sintercard 2 k k
zadd k s v|zadd zset s v s v|zadd k INCR s v|zadd k NX CH s v|zrem k v|zscore k v|zscore zset b|zmscore k v v|zcard k
zcount k s s|zincrby k s v|zrank k v|zrevrank k v|zrank k v WITHSCORE|zrange k 0 -1|zrange k 0 -1 WITHSCORES
zrange k s s BYSCORE|zrange zset i i REV WITHSCORES|zrangebyscore k s s|zrangebyscore k -inf +inf WITHSCORES LIMIT 0 i
zrevrange k 0 -1 WITHSCORES|zrevrangebyscore k +inf -inf|zremrangebyrank k i i|zremrangebyscore k s s|zpopmin k|zpopmin k i
zpopmax k|zlexcount k - +|zrangebylex k - +|zunion 2 k k WITHSCORES|zinter 2 k k|zdiff 2 k k WITHSCORES|zunionstore k 2 k k
publish v v|ping|ping v|echo v|setbit k i 1|getbit k i|bitcount k|bitpos k 1|bitop NOT k k|bitfield k GET u4 0
pfadd k v v|pfcount k k|pfmerge k k k|geoadd geo 1 2 v|geodist geo Palermo Catania|geopos geo v Palermo|geohash geo v
xadd k 9-9 f v|xadd stream 4-1 f v f v|xlen k|xrange k - +|xrange stream - + COUNT i|xrevrange k + -|xdel stream 1-1
xtrim k MAXLEN i|xack stream g 1-1|eval return\tARGV 0 v v|eval return{KEYS[1],1,false} 1 k
eval return\tredis.call('GET',KEYS[1]) 1 k|eval return{err='MINE'} 0|evalsha v 0|hscan hash 0|sort list ALPHA`;

const COLD = `
object ENCODING k|object REFCOUNT k|config GET maxmemory|client GETNAME|client SETNAME v|wait 0 0
watch k|unwatch|exec|discard|xread COUNT 2 STREAMS stream 0|xread STREAMS k 0
xgroup CREATE k g 0|script EXISTS v|acl WHOAMI|blpop k k 0.001|brpop k 0.001|bzpopmin k 0.001|blmove k k LEFT LEFT 0.001
zrangestore k k 0 -1|lcs k k|substr k 0 1|dbsize|flushdb|config SET nope v|select x|xinfo STREAM k|memory HELP|lmpop 1 k LEFT
hset k f v EX`;

const words = (text: string): string[] =>
  text
    .split(/[|\n]/)
    .map((line) => line.trim())
    .filter((line) => line !== '');

export const TEMPLATES: readonly string[] = [...words(HOT), ...words(COLD)];
