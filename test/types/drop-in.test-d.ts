/** Checked by `tsc`, never run: the drop-in classes as users write with them. */
import { type Cluster as IOCluster, Redis as IORedis, type RedisOptions as IORedisOptions } from 'ioredis';
import Redis, {
  Cluster,
  type ClusterOptions,
  type Coalesced,
  type Coalescer,
  coalesce,
  type RedisOptions,
  type ReplyMapping,
  type ScanStreamOptions,
} from 'ioredis-coalesce';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._equal: Equal<A, B> extends true ? [] : ['types differ', A, B]): void {}

declare const someOptions: RedisOptions;
declare const hostOptions: IORedisOptions;

// duplicate() of the class is of the class, with its option `coalesce`.
const redis: Redis = new Redis(6379, '127.0.0.1');
const copy: Redis = redis.duplicate();
const other: Redis = redis.duplicate({ db: 1, coalesce: { shareReads: true } });
const again: Redis = copy.duplicate({ coalesce: false }).duplicate(undefined);
same<typeof copy.coalescer, Coalescer<typeof copy>>();
const plain: IORedis = redis.duplicate();
// @ts-expect-error: not an option
redis.duplicate({ coalesce: { batchSize: 1 } });
// @ts-expect-error: not an option of the host
redis.duplicate({ portt: 1 });

// Options of a wider type, as an application's own function has them.
const made: Redis[] = [new Redis(someOptions), new Redis(hostOptions), new Redis('redis://127.0.0.1', someOptions)];
const connect = (options: RedisOptions = {}): Redis => new Redis({ ...options, lazyConnect: true });
new Redis({ coalesce: false });
new Redis({ coalesce: process.env.COALESCE !== 'off' });
new Redis({ coalesce: undefined });

// The reply mapping: as for ioredis 6's own class.
const legacy = new Redis();
same<typeof legacy, Redis>();
same<typeof legacy, Redis<'legacy'>>();
const mapped = new Redis({ replyMapping: 'resp3', coalesce: {} });
same<typeof mapped, Redis<'resp3'>>();
const hostMapped = new IORedis({ replyMapping: 'resp3' });
same<ReturnType<typeof mapped.zscore>, ReturnType<typeof hostMapped.zscore>>();
same<ReturnType<typeof legacy.zscore>, Promise<string | null>>();
same<typeof mapped extends IORedis<'resp3'> ? true : false, true>();
const mappedByUrl = new Redis('redis://127.0.0.1', { replyMapping: 'resp3' });
same<typeof mappedByUrl, Redis<'resp3'>>();
const mappedCopy = legacy.duplicate({ replyMapping: 'resp3' });
same<typeof mappedCopy, Redis<'resp3'>>();
const kept = mappedCopy.duplicate({ db: 1 });
same<typeof kept, Redis<'resp3'>>();
const modes: ReplyMapping[] = ['legacy', 'resp3'];
// @ts-expect-error: no such mapping
new Redis({ replyMapping: 'resp2' });

// A subclass, and statics.
class Mine extends Redis {
  mine = 1;
}
const mine: Redis & { mine: number } = new Mine({ lazyConnect: true });
class Mapped extends Redis<'resp3'> {}
new Mapped({ replyMapping: 'resp3' });
same<ReturnType<typeof Redis.createClient>, Redis>();
new Redis.Command('get', ['k']);

// The Cluster, by either name.
const nodes = [{ host: '127.0.0.1', port: 1 }];
const clusters: Cluster[] = [new Cluster(nodes), new Redis.Cluster(nodes, { coalesce: { maxBatchSize: 5 } })];
same<typeof Redis.Cluster, typeof Cluster>();
const clusterOptions: ClusterOptions = { scaleReads: 'slave', coalesce: false };
const clusterCopy: Cluster = new Cluster(nodes, clusterOptions).duplicate();
const moved: Cluster = clusterCopy.duplicate(nodes, { coalesce: { shareReads: true } });
same<typeof clusterCopy.coalescer, Coalescer<typeof clusterCopy>>();
same<ReturnType<typeof clusterCopy.coalescer.withOptions>, Cluster>();
same<ReturnType<Redis<'resp3'>['coalescer']['withOptions']>, Redis<'resp3'>>();
const plainCluster: IOCluster = moved;
const mappedCluster = new Cluster(nodes, { redisOptions: { replyMapping: 'resp3' } });
same<typeof mappedCluster, Cluster<'resp3'>>();
const mappedMoved = clusterCopy.duplicate([], { redisOptions: { replyMapping: 'resp3' } });
same<typeof mappedMoved, Cluster<'resp3'>>();
// @ts-expect-error: not an option
new Redis.Cluster(nodes, { coalesce: { batchSize: 1 } });

// What people import from ioredis beside the classes.
const scan: ScanStreamOptions = { match: 'a*', count: 10 };
redis.scanStream(scan).on('data', (keys: string[]) => keys.length);

// What coalesce() takes.
const off: IORedis & Coalesced = coalesce(new IORedis(), false);
const enabled: boolean = off.coalescer.enabled;
coalesce(new IORedis(), true);
// @ts-expect-error: neither options nor a boolean
coalesce(new IORedis(), 'off');

export { again, clusters, connect, enabled, kept, made, mine, modes, other, plain, plainCluster };
