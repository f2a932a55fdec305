/** Checked by `tsc`, never run: what compiles and, by `@ts-expect-error`, what must not. */
import { Redis as IORedis } from 'ioredis';
import Redis, {
  type CallOptions,
  type Coalesced,
  type CoalescedClient,
  type CoalesceOptions,
  type Coalescer,
  type CoalescerStats,
  coalesce,
  type FlushReason,
  type Redis as NamedRedis,
  type RedisOptions,
  ReplyError,
  type ResolvedCacheOptions,
  type ResolvedOptions,
} from 'ioredis-coalesce';
import { coalesce as coalesceOnly } from 'ioredis-coalesce/coalesce';
import { Redis as IORedis5 } from 'ioredis5';
import { Redis as Valkey } from 'iovalkey';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._equal: Equal<A, B> extends true ? [] : ['types differ', A, B]): void {}

const plain = new IORedis({ lazyConnect: true });

// The client keeps its type and gains one property.
const coalesced = coalesce(plain);
same<typeof coalesced, CoalescedClient<typeof plain>>();
same<typeof coalesced.coalescer, Coalescer<typeof coalesced>>();
same<Awaited<ReturnType<typeof coalesced.get>>, string | null>();
same<Awaited<ReturnType<typeof coalesced.getBuffer>>, Buffer | null>();

// It can be given to code that takes the client, the client with `coalescer`, or the drop-in class.
const accepted: [typeof plain, typeof plain & Coalesced, Redis] = [coalesced, coalesced, coalesced];
// Its duplicates have the handle, and theirs.
coalesced.duplicate().duplicate().coalescer.stats();
coalesce(new IORedis5()).duplicate().coalescer.stats();
coalesce(new Valkey()).duplicate().coalescer.stats();
same<Awaited<ReturnType<ReturnType<typeof coalesced.duplicate>['get']>>, string | null>();

// A view of a client has the client's type.
const view = coalesced.coalescer.withOptions({ signal: new AbortController().signal, timeout: 5, cache: false });
same<typeof view, typeof coalesced>();
same<Awaited<ReturnType<typeof view.get>>, string | null>();
coalesced.coalescer.withOptions({ signal: undefined, timeout: undefined, cache: undefined } satisfies CallOptions);
const again: typeof coalesced = view.coalescer.withOptions({}).coalescer.withOptions({});
// Code that takes the handle of any client need not say which.
const handle: Coalescer = coalesced.coalescer;
// @ts-expect-error: options are needed
coalesced.coalescer.withOptions();
// @ts-expect-error: a number
coalesced.coalescer.withOptions({ timeout: '5' });
// @ts-expect-error: a signal, not its controller
coalesced.coalescer.withOptions({ signal: new AbortController() });
// @ts-expect-error: not an option
coalesced.coalescer.withOptions({ timout: 5 });

// A subclass stays one; so do clients of other versions and of Valkey.
class Mine extends IORedis {
  mine(): number {
    return 1;
  }
}
same<ReturnType<typeof mine.mine>, number>();
const mine = coalesce(new Mine());
same<ReturnType<ReturnType<typeof mine.coalescer.withOptions>['mine']>, number>();
coalesce(new IORedis5()).coalescer.flush();
coalesceOnly(new Valkey()).coalescer.detach();
coalesceOnly(plain, { schedule: 'tick' });

// Options, each by its type.
const everything: CoalesceOptions = {
  schedule: (flush) => flush(),
  maxBatchSize: 1,
  maxBatchBytes: 1,
  maxInFlight: 1,
  fastPath: false,
  shareReads: true,
  cache: { prefixes: ['user:'], ttl: 1000, maxEntries: 10, maxBytes: 1000 },
  splitKeys: true,
};
coalesce(plain, { cache: true });
// @ts-expect-error: a boolean or an object
coalesce(plain, { cache: 1 });
// @ts-expect-error: not an option of the cache
coalesce(plain, { cache: { max: 10 } });
coalesce(plain, everything);
coalesce(plain, {});
coalesce(plain, undefined);
// @ts-expect-error: not a schedule
coalesce(plain, { schedule: 'later' });
// @ts-expect-error: a number
coalesce(plain, { maxBatchSize: '10' });
// @ts-expect-error: a boolean
coalesce(plain, { shareReads: 1 });
// @ts-expect-error: a boolean
coalesce(plain, { splitKeys: 'mget' });
// @ts-expect-error: not an option
coalesce(plain, { maxBatch: 10 });
// @ts-expect-error: not a client
coalesce('redis://127.0.0.1');
// @ts-expect-error: needs a client
coalesce();

// Resolved options are complete and read-only.
same<Omit<ResolvedOptions, 'cache'>, Readonly<Required<Omit<CoalesceOptions, 'cache'>>>>();
same<ResolvedOptions['cache'], ResolvedCacheOptions | false>();
same<typeof coalesced.coalescer.options, ResolvedOptions>();
// @ts-expect-error: read-only
coalesced.coalescer.options.maxBatchSize = 2;
// @ts-expect-error: read-only
coalesced.coalescer = mine.coalescer;

// Stats are plain, read-only data.
const stats: CoalescerStats = coalesced.coalescer.stats();
same<typeof stats.flushReasons, Readonly<Record<FlushReason, number>>>();
same<typeof stats.batchSizes, Readonly<Record<string, number>>>();
same<typeof stats.replies.fast, number>();
// @ts-expect-error: read-only
stats.commands = 0;
// @ts-expect-error: no such counter
stats.misses;

// The drop-in class has ioredis's constructors and is one of its clients.
same<typeof NamedRedis, typeof Redis>();
const dropIn: IORedis & Coalesced = new Redis(6379, '127.0.0.1', { db: 1, coalesce: everything });
new Redis();
new Redis(6379);
new Redis('redis://127.0.0.1');
new Redis('redis://127.0.0.1', { coalesce: { maxInFlight: 5 } });
new Redis({ coalesce: {} } satisfies RedisOptions);
same<Awaited<ReturnType<Redis['get']>>, string | null>();
same<ReturnType<typeof Redis.createClient>, Redis>();
// @ts-expect-error: not an option
new Redis({ coalesce: { batchSize: 1 } });
// @ts-expect-error: not an option of the host
new Redis({ portt: 1 });

same<ReturnType<Redis['coalescer']['withOptions']>, Redis>();

export { accepted, again, dropIn, handle, ReplyError };
