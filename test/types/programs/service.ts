/**
 * As people write a service. Checked by `tsc` here, and by `test/package/package.test.ts` in projects of every module
 * system.
 */
import { type Callback, type ClientContext, Redis as IORedis, type Result } from 'ioredis';
import DefaultRedis, { Cluster, type ClusterOptions, coalesce, Redis, type RedisOptions } from 'ioredis-coalesce';
import { coalesce as coalesceOnly } from 'ioredis-coalesce/coalesce';

// A script of one's own, made known to TypeScript as ioredis documents it.
declare module 'ioredis' {
  interface RedisCommander<Context extends ClientContext = { type: 'default' }> {
    addCapped(key: string, by: number, cap: number, callback?: Callback<number>): Result<number, Context>;
  }
}

const options: RedisOptions = {
  host: '127.0.0.1',
  lazyConnect: true,
  retryStrategy: (attempt) => Math.min(attempt * 50, 2000),
  scripts: { addCapped: { numberOfKeys: 1, lua: 'return 1' } },
  coalesce: { maxInFlight: 5000, schedule: 'immediate' },
};

/** Options of one's own, built on ours. */
interface ServiceOptions extends RedisOptions {
  tenant: string;
}

export class Counters {
  readonly #redis: Redis;

  constructor({ tenant, ...rest }: ServiceOptions) {
    this.#redis = new Redis({ ...rest, keyPrefix: `${tenant}:` });
  }

  async add(name: string): Promise<number> {
    const sum: number = await this.#redis.addCapped(name, 1, 100);
    const replies = await this.#redis.pipeline().addCapped(name, 1, 100).get(name).exec();
    const transaction: [Error | null, unknown][] | null = await this.#redis.multi().incr(name).exec();
    return sum + (replies?.length ?? 0) + (transaction?.length ?? 0);
  }
}

// The class is usable as a type, as a value and wherever ioredis's is asked for.
const readName = (client: IORedis): Promise<string | null> => client.hget('user:1', 'name');
const redis: DefaultRedis = new DefaultRedis(options);
export const names = [readName(redis), readName(coalesce(new IORedis({ host: '127.0.0.1', lazyConnect: true })))];
export const counters = new Counters({ tenant: 'a', ...options });

// coalesce() keeps the client's own type, its scripts and its subclass.
class Traced extends IORedis {
  readonly traceId: string = 'a';
}
const traced = coalesceOnly(new Traced('redis://127.0.0.1', { lazyConnect: true }), { shareReads: true });
export const all: [string, number, Promise<number>] = [
  traced.traceId,
  traced.coalescer.stats().batches,
  traced.addCapped('key', 1, 2),
];

// A Cluster, by the class or in place.
const clusterOptions: ClusterOptions = { scaleReads: 'slave', redisOptions: { password: 'secret' }, coalesce: {} };
const cluster: Cluster = new Cluster([{ host: '10.0.0.1', port: 6379 }], clusterOptions);
export const fromCluster: Promise<number> = cluster.addCapped('key', 1, 2);
cluster.coalescer.detach();

// @ts-expect-error: an option that does not exist
new Redis({ coalesce: { maxInflight: 5 } });
// @ts-expect-error: a Cluster's, too
new Cluster([], { coalesce: { maxInflight: 5 } });
// @ts-expect-error: the script takes numbers
redis.addCapped('key', 'one', 2);
// @ts-expect-error: a plain client has no coalescer
new IORedis({ host: '127.0.0.1', lazyConnect: true }).coalescer;
