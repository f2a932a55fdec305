import { coalesce } from 'ioredis-coalesce/coalesce';
import { type CollectOptions, collectMetrics } from 'ioredis-coalesce/prometheus';
import {
  Counter,
  register as globalRegister,
  type OpenMetricsContentType,
  Registry,
  type RegistryContentType,
} from 'prom-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Stats } from '../../src/stats.js';
import { learned } from '../helpers/client-cache/prefetching.js';
import { cold } from '../helpers/cold.js';
import { type CoalescedClient, HOSTS, ioredis6, ready, until } from '../helpers/hosts.js';
import { assumeFar } from '../helpers/predicting.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { type Exposition, parseExposition } from './helpers/exposition.js';

assumeFar();
afterEach(() => globalRegister.clear());

const scrape = async (register: Registry<RegistryContentType>): Promise<Exposition> =>
  parseExposition(await register.metrics());

const client = (): Promise<CoalescedClient> => ready(ioredis6.createCoalesced(redisUrl()));

/** A coalesced client as `collectMetrics()` sees it, with counters that the test feeds. */
function counting(stats = new Stats()): { stats: Stats; client: CoalescedClient } {
  const coalescer = { enabled: true, options: { maxInFlight: 7 }, stats: () => stats.snapshot('fast', 5, 2) };
  return { stats, client: { coalescer } as unknown as CoalescedClient };
}

describe('the metrics', () => {
  it.each(HOSTS)('$name: are the counters of a busy client', async (host) => {
    const register = new Registry();
    const worker = await ready(host.createCoalesced(redisUrl(), {}, { maxInFlight: 5_000 }));
    await worker.ping();
    collectMetrics(worker, { register });
    await Promise.all(Array.from({ length: 100 }, () => worker.echo('fast')));
    await Promise.all([cold(worker, 'ECHO', 'host'), worker.echo(1n as unknown as string)]);

    const stats = worker.coalescer.stats();
    const { values } = await scrape(register);
    expect(values('redis_coalesce_commands_total', { path: 'fast' })).toEqual([stats.fastCommands]);
    expect(values('redis_coalesce_commands_total', { path: 'fallback' })).toEqual([
      stats.commands - stats.fastCommands,
    ]);
    expect(values('redis_coalesce_fallbacks_total', { reason: 'arguments' })).toEqual([1]);
    expect(values('redis_coalesce_replies_total', { path: 'fast' })).toEqual([stats.replies.fast]);
    expect(values('redis_coalesce_replies_total', { path: 'fallback' })).toEqual([stats.replies.fallback]);
    expect(values('redis_coalesce_batches_total', { reason: 'schedule' })).toEqual([stats.flushReasons.schedule]);
    expect(values('redis_coalesce_polled_turns_total')).toEqual([stats.polledTurns]);
    expect(values('redis_coalesce_polled_turns_answered_total')).toEqual([stats.polledTurnsAnswered]);
    expect(values('redis_coalesce_written_bytes_total')).toEqual([stats.bytesWritten]);
    expect(values('redis_coalesce_shared_reads_total')).toEqual([0]);
    expect(values('redis_coalesce_refused_calls_total')).toEqual([0]);
    expect(values('redis_coalesce_cache_hits_total')).toEqual([0]);
    expect(values('redis_coalesce_in_flight_commands')).toEqual([0]);
    expect(values('redis_coalesce_queued_commands')).toEqual([0]);
    expect(values('redis_coalesce_max_in_flight_commands')).toEqual([5_000]);
    expect(values('redis_coalesce_attached')).toEqual([1]);
    expect(values('redis_coalesce_batch_size_commands_count')).toEqual([stats.batches]);
    expect(values('redis_coalesce_batch_size_commands_sum')).toEqual([stats.commands]);
    expect(values('redis_coalesce_flush_wait_seconds_sum')).toEqual([stats.flushWaitTotal / 1000]);
    expect(stats.fastCommands).toBeGreaterThanOrEqual(100);
  });

  it('say which mode the client runs in', async () => {
    const register = new Registry();
    const worker = await ready(ioredis6.createCoalesced(redisUrl(), {}, { fastPath: false }));
    collectMetrics(worker, { register });
    const modes = async () => {
      const { values } = await scrape(register);
      return ['fast', 'cork', 'plain'].flatMap((mode) => values('redis_coalesce_mode', { mode }));
    };
    expect(await modes()).toEqual([0, 1, 0]);
    worker.coalescer.detach();
    expect(await modes()).toEqual([0, 0, 1]);
    coalesce(worker, { fastPath: true });
    expect(await modes()).toEqual([1, 0, 0]);
    worker.coalescer.detach();
    expect(await modes()).toEqual([0, 0, 1]);
  });

  it('are the hits and the size of the cache', async () => {
    const register = new Registry();
    const cached = await ready(ioredis6.createCoalesced(redisUrl(), {}, { cache: true }));
    collectMetrics(cached, { register });
    await until(() => {
      void cached.get('prometheus:cached');
      return (cached.coalescer.stats().cache?.hits ?? 0) > 0;
    }, 'a read is answered from memory');
    await cached.get('prometheus:cached');
    const { hits, misses, held, invalidations, evictions, entries, bytes } = cached.coalescer.stats().cache ?? {};
    const { values } = await scrape(register);
    expect(values('redis_coalesce_cache_hits_total')).toEqual([hits]);
    expect(values('redis_coalesce_cache_misses_total')).toEqual([misses]);
    expect(values('redis_coalesce_cache_held_total')).toEqual([held]);
    expect(values('redis_coalesce_cache_invalidations_total')).toEqual([invalidations]);
    expect(values('redis_coalesce_cache_evictions_total')).toEqual([evictions]);
    expect(values('redis_coalesce_cache_entries')).toEqual([entries]);
    expect(values('redis_coalesce_cache_bytes')).toEqual([bytes]);
  });

  it('are the reads that were predicted, and those that were used', async () => {
    const register = new Registry();
    const { client } = await learned(redisUrl(), ioredis6.create(redisUrl()), uniquePrefix('prometheus'));
    collectMetrics(client, { register });
    const { predicted, predictionsUsed } = client.coalescer.stats().cache ?? {};
    const { values } = await scrape(register);
    expect(predictionsUsed).toBeGreaterThanOrEqual(4);
    expect(values('redis_coalesce_cache_predicted_total')).toEqual([predicted]);
    expect(values('redis_coalesce_cache_predictions_used_total')).toEqual([predictionsUsed]);
  });

  it('have a value for every reason from the start, so that rates can be drawn', async () => {
    const register = new Registry();
    const { stats, client: idle } = counting();
    collectMetrics(idle, { register });
    const { samples } = await scrape(register);
    const reasons = (name: string) =>
      samples.filter((sample) => sample.name === name).map(({ labels }) => labels.reason ?? '');
    const { fallbacks, flushReasons } = stats.snapshot('fast');
    expect(reasons('redis_coalesce_fallbacks_total')).toEqual(Object.keys(fallbacks));
    expect(reasons('redis_coalesce_batches_total')).toEqual(Object.keys(flushReasons));
  });

  it('keep to the conventions for names, units, types and help', async () => {
    const register = new Registry();
    collectMetrics(counting().client, { register });
    const { types, helps } = await scrape(register);
    expect(types.size).toBeGreaterThan(10);
    for (const [name, type] of types) {
      expect(name).toMatch(/^redis_coalesce_[a-z_]+$/);
      expect(name.endsWith('_total')).toBe(type === 'counter');
      expect(name).not.toMatch(/milliseconds|_ms\b|kilo/);
      expect(helps.get(name)).toMatch(/^[A-Z].+\.$/);
    }
  });

  it('have cumulative histograms that end in +Inf and agree with count and sum', async () => {
    const register = new Registry();
    const { stats, client: busy } = counting();
    stats.commands = 20_243;
    for (const [commands, waited] of [
      [1, 0.001],
      [3, 0.02],
      [4, 0.9],
      [33, 40],
      [200, 2_000],
      [20_000, 3],
    ] as const) {
      stats.flushed('schedule', commands, 10, waited);
    }
    collectMetrics(busy, { register });
    const { samples, values } = await scrape(register);
    const buckets = (name: string) =>
      samples
        .filter((sample) => sample.name === `${name}_bucket`)
        .map(({ labels, value }) => [Number(labels.le?.replace('+Inf', 'Infinity')), value] as const);

    const sizes = new Map(buckets('redis_coalesce_batch_size_commands'));
    expect([1, 2, 4, 32, 64, 128, 256, 16_384].map((le) => sizes.get(le))).toEqual([1, 1, 3, 3, 4, 4, 5, 5]);
    expect(sizes.get(Number.POSITIVE_INFINITY)).toBe(6);
    // 20,243 commands, 2 of which are queued still.
    expect(values('redis_coalesce_batch_size_commands_sum')).toEqual([20_241]);

    const waits = new Map(buckets('redis_coalesce_flush_wait_seconds'));
    expect([0.000016, 0.000032, 0.001024, 0.004096, 0.065536, 1.048576].map((le) => waits.get(le))).toEqual([
      1, 2, 3, 4, 5, 5,
    ]);
    expect(waits.get(Number.POSITIVE_INFINITY)).toBe(6);
    expect(values('redis_coalesce_flush_wait_seconds_sum')[0]).toBeCloseTo(2.043921, 9);

    for (const name of ['redis_coalesce_batch_size_commands', 'redis_coalesce_flush_wait_seconds']) {
      const found = buckets(name);
      expect(found.map(([le]) => le)).toEqual(found.map(([le]) => le).toSorted((a, b) => a - b));
      expect(found.map(([, count]) => count)).toEqual(found.map(([, count]) => count).toSorted((a, b) => a - b));
      expect(values(`${name}_count`)).toEqual([found.at(-1)?.[1]]);
    }
  });

  it('read the counters once per scrape, whatever the number of metrics, and never in between', async () => {
    const register = new Registry();
    const one = await client();
    const stats = vi.spyOn(one.coalescer, 'stats');
    collectMetrics(one, { register });
    await Promise.all([one.echo('a'), one.echo('b')]);
    expect(stats).not.toHaveBeenCalled();
    await register.metrics();
    expect(stats).toHaveBeenCalledTimes(1);
    await register.metrics();
    expect(stats).toHaveBeenCalledTimes(2);
    await register.getMetricsAsJSON();
    expect(stats).toHaveBeenCalledTimes(3);
  });

  it('are valid OpenMetrics as well', async () => {
    const register = new Registry<OpenMetricsContentType>();
    register.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    const remove = collectMetrics(counting().client, { register });
    for (const _ of ['first', 'second']) {
      const text = await register.metrics();
      expect(text).toContain('# TYPE redis_coalesce_commands counter');
      expect(text).toContain('redis_coalesce_commands_total{path="fast"} 0');
      expect(text.endsWith('# EOF\n')).toBe(true);
    }
    remove();
    expect(await register.metrics()).not.toContain('redis_coalesce');
  });
});

describe('several clients on one registry', () => {
  it('are told apart by label, whatever the order of the labels', async () => {
    const register = new Registry();
    const [sessions, cache] = await Promise.all([client(), client()]);
    collectMetrics(sessions, { register, labels: { client: 'sessions', shard: 1 } });
    collectMetrics(cache, { register, labels: { shard: 1, client: 'cache "b"' } });
    const before = await scrape(register);
    await Promise.all([cache.echo('1'), cache.echo('2')]);
    const after = await scrape(register);
    const counts = ({ values }: Exposition) =>
      ['sessions', 'cache \\"b\\"'].map((name) =>
        values('redis_coalesce_commands_total', { client: name, shard: '1' }).reduce((sum, value) => sum + value, 0),
      );
    const [sessionsBefore = 0, cacheBefore = 0] = counts(before);
    expect(counts(after)).toEqual([sessionsBefore, cacheBefore + 2]);
    expect(after.values('redis_coalesce_batch_size_commands_count')).toHaveLength(2);
  });

  it('keep their labels, whatever a reader does with those of a sample', async () => {
    const register = new Registry();
    const labels = { client: 'a' };
    collectMetrics(await client(), { register, labels });
    for (const { values } of await register.getMetricsAsJSON()) {
      for (const value of values as { labels: Record<string, unknown> }[]) value.labels.pod = 'x';
    }
    expect(await register.metrics()).not.toContain('pod=');
    expect(labels).toEqual({ client: 'a' });
  });

  it('are added and removed one by one; the metrics are removed with the last', async () => {
    const register = new Registry();
    const other = new Counter({ name: 'other_total', help: 'Of the application.', registers: [register] });
    const removeA = collectMetrics(counting().client, { register, labels: { client: 'a' } });
    const removeB = collectMetrics(counting().client, { register, labels: { client: 'b' } });
    const clients = async () => {
      const { samples } = await scrape(register);
      return [...new Set(samples.flatMap(({ labels }) => labels.client ?? []))];
    };
    expect(await clients()).toEqual(['a', 'b']);
    removeA();
    removeA();
    expect(await clients()).toEqual(['b']);
    removeB();
    expect(register.getMetricsAsArray()).toEqual([other]);
    // With other names of labels, now that nobody is left who had them.
    collectMetrics(counting().client, { register, labels: { role: 'a' } });
    expect((await scrape(register)).values('redis_coalesce_attached', { role: 'a' })).toEqual([1]);
  });

  it('may have their own registries; prom-client’s global one is the default', async () => {
    const register = new Registry();
    const both = counting().client;
    collectMetrics(both, { register });
    collectMetrics(both);
    expect((await scrape(globalRegister)).values('redis_coalesce_attached')).toEqual([1]);
    globalRegister.clear();
    collectMetrics(both);
    expect((await scrape(globalRegister)).values('redis_coalesce_attached')).toEqual([1]);
    expect((await scrape(register)).values('redis_coalesce_attached')).toEqual([1]);
  });

  it('that was removed by removeSingleMetric() may be of another library then, and the others go with the last client', () => {
    const register = new Registry();
    const remove = collectMetrics(counting().client, { register });
    register.removeSingleMetric('redis_coalesce_attached');
    const theirs = new Counter({ name: 'redis_coalesce_attached', help: 'Of theirs.', registers: [register] });
    remove();
    expect(register.getMetricsAsArray()).toEqual([theirs]);
  });
});

describe('a client that is no longer coalesced, or has ended', () => {
  it('keeps its last counters after detach(), and starts at zero with another coalesce()', async () => {
    const register = new Registry();
    const one = await client();
    collectMetrics(one, { register });
    await Promise.all([one.echo('1'), one.echo('2'), one.echo('3')]);
    const sum = async () =>
      (await scrape(register)).values('redis_coalesce_commands_total').reduce((total, value) => total + value, 0);
    const counted = await sum();
    one.coalescer.detach();
    await one.echo('by the plain client');
    expect(await sum()).toBe(counted);
    expect((await scrape(register)).values('redis_coalesce_attached')).toEqual([0]);
    coalesce(one);
    await one.echo('4');
    expect(await sum()).toBe(1);
    expect((await scrape(register)).values('redis_coalesce_attached')).toEqual([1]);
  });

  it('can be scraped after quit()', async () => {
    const register = new Registry();
    const one = await client();
    collectMetrics(one, { register });
    await one.echo('1');
    const { commands } = one.coalescer.stats();
    await one.quit();
    const { values } = await scrape(register);
    const sent = values('redis_coalesce_commands_total').reduce((total, value) => total + value, 0);
    expect(sent).toBe(commands + 1);
    expect(values('redis_coalesce_in_flight_commands')).toEqual([0]);
  });
});

describe('collectMetrics() refuses', () => {
  const collect = (given: unknown, options?: unknown) => () =>
    collectMetrics(given as CoalescedClient, options as CollectOptions);

  it.each([
    [null, 'null'],
    ['redis://:password@localhost', 'a string'],
    [{}, 'an object (Object)'],
  ])('a client that is %j', (given, shown) => {
    expect(collect(given)).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'COALESCE_ERR_CLIENT',
        message: `ioredis-coalesce: collectMetrics() expects a coalesced client, such as coalesce(new Redis()), got ${shown}`,
      }),
    );
  });

  it('a plain client', () => {
    const plain = ioredis6.create(redisUrl(), { lazyConnect: true });
    expect(collect(plain)).toThrow(/expects a coalesced client.*got a plain client: call coalesce\(\) on it first$/);
  });

  it.each([
    [{ register: {} }, 'options.register must be a Registry of prom-client, got an object (Object)'],
    [{ register: null }, 'options.register must be a Registry of prom-client, got null'],
    [{ labels: 'cache' }, 'options.labels must be an object, got "cache" (string)'],
    [null, 'options must be an object, got null'],
    [5, 'options must be an object, got 5 (number)'],
    [['client'], 'options must be an object, got an array'],
    [{ label: { client: 'a' } }, 'options.label is not an option; the options are register, labels'],
    [{ labels: { client: undefined } }, 'options.labels.client must be a string or a finite number, got undefined'],
    [{ labels: { client: Number.NaN } }, 'options.labels.client must be a string or a finite number, got NaN (number)'],
    [
      { labels: { 'client-name': 'a' } },
      'options.labels: a name must be letters, digits and _, and not begin with a digit, got "client-name" (string)',
    ],
    [
      { labels: { reason: 'a' } },
      'options.labels.reason is a label that these metrics already have; choose another name',
    ],
  ])('options %j', (options, message) => {
    expect(collect(counting().client, options)).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'COALESCE_ERR_OPTION',
        message: `ioredis-coalesce: ${message}`,
      }),
    );
    expect(globalRegister.getMetricsAsArray()).toEqual([]);
  });

  it('labels that do not fit the ones of other clients, and leaves those alone', async () => {
    const register = new Registry();
    const first = counting().client;
    collectMetrics(first, { register, labels: { client: 'a' } });
    const second = counting().client;
    for (const [given, labels, message] of [
      [second, {}, /must have the same names as for the other clients on this registry, client, got none$/],
      [second, { role: 'b', client: 'b' }, /client, got client, role$/],
      [
        second,
        { client: 'a' },
        /must be different for each client on a registry, got \{client="a"\} for a second one$/,
      ],
      [first, { client: 'b' }, /a client only once per registry, got one that is registered as \{client="a"\}$/],
    ] as const) {
      expect(collect(given, { register, labels })).toThrow(message);
    }
    expect((await scrape(register)).values('redis_coalesce_attached')).toEqual([1]);
  });

  it('names that another library has taken on the registry', () => {
    const register = new Registry();
    const theirs = new Counter({ name: 'redis_coalesce_attached', help: 'Taken.', registers: [register] });
    expect(collect(counting().client, { register })).toThrow(
      /options\.register already has a metric named redis_coalesce_attached,/,
    );
    expect(register.getMetricsAsArray()).toEqual([theirs]);
  });
});
