import { Cluster as IOCluster, Redis as IORedis } from 'ioredis';
import { Cluster, type Coalesced, type CoalesceSetting, coalesce, Redis } from 'ioredis-coalesce';
import { collectMetrics } from 'ioredis-coalesce/prometheus';
import { Registry } from 'prom-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { endWithTest, HOSTS, ready } from '../helpers/hosts.js';
import { redisUrl } from '../helpers/redis.js';
import { spyOnSocket } from '../helpers/sockets.js';

const url = redisUrl();
const nowhere = [{ host: '127.0.0.1', port: 1 }];

/** A client that is plain, and whose users can ask it as if it were coalesced. */
function expectIdle({ coalescer }: Coalesced): void {
  expect(coalescer.enabled).toBe(false);
  expect(coalescer.options.maxBatchSize).toBe(1_000);
  expect(coalescer.stats()).toMatchObject({ commands: 0, fastCommands: 0, batches: 0, inFlight: 0, queued: 0 });
  coalescer.flush();
  coalescer.detach();
  expect(coalescer.stats().commands).toBe(0);
}

describe('coalesce: false', () => {
  it.each(HOSTS)('leaves a client of $name unchanged, except for an idle coalescer', async (host) => {
    const client = await ready(host.create(url));
    const before = Object.getPrototypeOf(client) as object;
    const same = coalesce(client, false);
    expect(same).toBe(client);
    expect(Object.getPrototypeOf(client)).toBe(before);
    expect(Object.keys(client)).not.toContain('coalescer');
    const spy = spyOnSocket(client);
    expect(await Promise.all([same.echo('a'), same.echo('b')])).toEqual(['a', 'b']);
    expect(spy.writes).toHaveLength(2);
    expectIdle(same);
  });

  it('makes a plain Redis, whose duplicate() is plain too unless it is told otherwise', async () => {
    const redis = await ready(endWithTest(new Redis(url, { coalesce: false })));
    expect(Object.getPrototypeOf(redis)).toBe(Redis.prototype);
    expect(redis.options).not.toHaveProperty('coalesce');
    expect(await redis.echo('a')).toBe('a');
    expectIdle(redis);
    expectIdle(endWithTest(redis.duplicate() as Redis));
    const copy = endWithTest(redis.duplicate({ coalesce: true }));
    expect(copy.coalescer.enabled).toBe(true);
    expectIdle(endWithTest(copy.duplicate({ coalesce: false }) as Redis));
    expectIdle(endWithTest(redis.duplicate({ coalesce: undefined }) as Redis));
  });

  it('makes a plain Cluster, whose duplicate() is plain too', () => {
    const cluster = new Cluster(nowhere, { lazyConnect: true, coalesce: false });
    const copy = cluster.duplicate();
    const wrapped = coalesce(new IOCluster(nowhere, { lazyConnect: true }), false);
    onTestFinished(() => {
      for (const each of [cluster, copy, wrapped]) each.disconnect();
    });
    for (const each of [cluster, copy, wrapped]) expectIdle(each);
    expect(Object.getPrototypeOf(cluster)).toBe(Cluster.prototype);
    expect(Object.getPrototypeOf(wrapped)).toBe(IOCluster.prototype);
  });

  it.each([true, false])('given to duplicate() of a coalesced Cluster makes a plain one, fastPath: %s', (fastPath) => {
    const cluster = coalesce(new IOCluster(nowhere, { lazyConnect: true }), { fastPath, splitKeys: true });
    const copyWith = (setting: CoalesceSetting | undefined) => {
      const copy = cluster.duplicate([], { coalesce: setting } as object) as typeof cluster;
      onTestFinished(() => copy.disconnect());
      return copy;
    };
    onTestFinished(() => cluster.disconnect());
    expectIdle(copyWith(false));
    expect(Object.hasOwn(copyWith(false), 'mget')).toBe(false);
    expect(copyWith({ maxBatchSize: 7, fastPath: true }).coalescer.options.maxBatchSize).toBe(7);
    expect(copyWith(undefined).coalescer.options).toEqual(cluster.coalescer.options);
  });

  it('does not prevent coalesce() later', async () => {
    const client = await ready(endWithTest(new IORedis(url)));
    const idle = coalesce(client, false).coalescer;
    expect(coalesce(client, false).coalescer).toBe(idle);
    const { coalescer } = coalesce(client, { maxBatchSize: 7 });
    expect(coalescer).not.toBe(idle);
    expect([coalescer.enabled, coalescer.options.maxBatchSize]).toEqual([true, 7]);
    expect(await Promise.all([client.echo('a'), client.echo('b')])).toEqual(['a', 'b']);
    expect(coalescer.stats().commands).toBe(2);
    coalescer.detach();
    expect(coalescer.enabled).toBe(false);
    expect((client as unknown as Coalesced).coalescer).toBe(coalescer);
  });

  it('gives metrics of a client that is not attached', async () => {
    const register = new Registry();
    collectMetrics(coalesce(endWithTest(new IORedis(url)), false), { register });
    const { values } = (await register.getSingleMetric('redis_coalesce_attached')?.get()) ?? { values: [] };
    expect(values.map(({ value }) => value)).toEqual([0]);
  });

  it('has the counterpart true, which takes the defaults', () => {
    const settings: [CoalesceSetting | undefined, boolean][] = [
      [true, true],
      [undefined, true],
      [{}, true],
      [false, false],
    ];
    for (const [setting, enabled] of settings) {
      expect(endWithTest(new Redis({ lazyConnect: true, coalesce: setting })).coalescer.enabled).toBe(enabled);
      expect(coalesce(endWithTest(new IORedis({ lazyConnect: true })), setting).coalescer.enabled).toBe(enabled);
    }
  });
});
