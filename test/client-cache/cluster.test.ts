/** The client-side cache of a Cluster's nodes, and behind Sentinel. */
import calculateSlot from 'cluster-key-slot';
import { type CacheOptions, type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type ClusterNode, type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { Checker, describeFigures } from '../helpers/client-cache/checker.js';
import { type CoalescedCluster, ioredis6, warm } from '../helpers/cluster/clients.js';
import { SentinelGroup } from '../helpers/cluster/sentinel.js';
import { SEED } from '../helpers/hostile/random.js';
import { type CoalescedClient, endWithTest, ready, ioredis6 as single, sleep, until } from '../helpers/hosts.js';
import { assumeFar } from '../helpers/predicting.js';

assumeFar();

const READS = Number(process.env.CHECKED_READS ?? 1_000);
const PATIENT = { maxRedirections: 400, retryDelayOnFailover: 100, retryDelayOnClusterDown: 100 };

const hitsOf = (client: CoalescedCluster) => client.coalescer.stats().cache?.hits ?? 0;

async function cached(
  nodes: RedisCluster,
  options = {},
  cache: true | CacheOptions = true,
  coalesceOptions: CoalesceOptions = {},
) {
  const created = ioredis6.createCoalesced(nodes, { ...PATIENT, ...options }, { ...coalesceOptions, cache });
  const cluster = await warm(created);
  const keys = Array.from({ length: 64 }, (_, index) => `armed:${index}`);
  let before = 0;
  await until(() => {
    const hits = hitsOf(cluster);
    for (const key of keys) void cluster.get(key);
    const all = hits === before + keys.length;
    before = hits;
    return all;
  }, 'reads of all nodes are answered from memory');
  await Promise.all(keys.map((key) => cluster.get(key)));
  return cluster;
}

describe('the cache of a Cluster', { timeout: 120_000 }, () => {
  let nodes: RedisCluster;
  beforeAll(async () => {
    nodes = await startCluster({ masters: 2, replicas: 2 });
  });
  afterAll(() => nodes?.stop());

  it.each([
    ['every key', true],
    ['keys of a prefix', { prefixes: ['checked:', 'armed:'] }],
  ] as const)('answers from memory while slots move, %s', async (_, cache) => {
    const options = cache === true ? cache : { prefixes: [...cache.prefixes] };
    const subjects = [await cached(nodes, {}, options), await cached(nodes, {}, options)];
    const writer = await warm(ioredis6.create(nodes, PATIENT));
    const checker = new Checker({
      subjects: subjects as unknown as CoalescedClient[],
      writers: [writer as unknown as CoalescedClient],
      reads: READS,
      seed: SEED,
      // Slots that have moved are asked for every 5 seconds.
      bound: 6_000,
    });
    let moving = true;
    const moves = (async () => {
      const [a, b] = (await nodes.masters()) as [ClusterNode, ClusterNode];
      for (let [from, to] = [a, b]; moving; [from, to] = [to, from]) await nodes.moveSlots(from, to, 200);
    })();
    const figures = await checker.run();
    moving = false;
    await moves;
    await checker.compareAtRest(writer as unknown as CoalescedClient);
    console.log(describeFigures('slots that move', figures));
    expect(figures.violations, `HOSTILE_SEED=${SEED}`).toEqual([]);
    expect(figures.hits).toBeGreaterThan(0);
  });

  it.each([
    ['in slots of their own', (id: number, kind: string) => `${kind}:${id}`],
    ['in one slot', (id: number, kind: string) => `{user:${id}}:${kind}`],
  ])('asks the node of each key for what follows: keys %s', async (_, key) => {
    const cluster = await cached(nodes, {}, { prefetch: true });
    const writer = await warm(ioredis6.create(nodes, PATIENT));
    const kinds = ['user', 'cart', 'plan', 'flags'];
    const used = () => cluster.coalescer.stats().cache?.predictionsUsed ?? 0;
    const run = async (id: number) => {
      await Promise.all(kinds.map((kind) => writer.set(key(id, kind), `${kind} ${id}`)));
      const before = used();
      for (const kind of kinds) expect(await cluster.get(key(id, kind))).toBe(`${kind} ${id}`);
      return used() - before;
    };
    for (let id = 0; id < 60; id += 1) await run(id);
    let together = 0;
    for (let id = 100; id < 120; id += 1) together += await run(id);
    // All 60, unless the machine was too busy for one of a node's replies.
    expect(together).toBeGreaterThan(50);
  });

  it('forgets the answers of a node that has lost a slot, missing keys too', async () => {
    const cluster = await cached(nodes, { slotsRefreshInterval: 200 });
    const writer = await warm(ioredis6.create(nodes, PATIENT));
    const key = 'lost';
    const from = await nodes.masterOf(calculateSlot(key));
    const to = (await nodes.masters()).find(({ id }) => id !== from.id) as ClusterNode;
    expect(await cluster.get(key)).toBeNull();
    const hits = hitsOf(cluster);
    expect(await cluster.get(key)).toBeNull();
    expect(hitsOf(cluster)).toBe(hits + 1);
    while ((await nodes.masterOf(calculateSlot(key))).id === from.id) await nodes.moveSlots(from, to, 2_000);
    await writer.set(key, 'on its new node');
    // Every read is a hit, so that no redirection tells.
    const deadline = performance.now() + 5_000;
    while ((await cluster.get(key)) === null) {
      if (performance.now() > deadline) throw new Error('expected the new value within 5 s, it is still missing');
      await sleep(5);
    }
    expect(await cluster.get(key)).toBe('on its new node');
  });

  it('caches answers of replicas, and drops them when the replica learns of a change', async () => {
    const cluster = await cached(nodes, { scaleReads: 'slave' });
    const writer = await warm(ioredis6.create(nodes, PATIENT));
    await writer.set('replicated', 'old');
    await nodes.replicated();
    await cluster.get('replicated');
    const hits = hitsOf(cluster);
    expect(await cluster.get('replicated')).toBe('old');
    expect(hitsOf(cluster)).toBe(hits + 1);
    await writer.set('replicated', 'new');
    await until(
      () => (cluster.coalescer.stats().cache?.invalidations ?? 0) > 0,
      'the replica has announced the change',
    );
    expect(await cluster.get('replicated')).toBe('new');
  });
});

describe('the cache of a client behind Sentinel', { timeout: 120_000 }, () => {
  it('answers no read with an answer of an earlier master', async () => {
    const group = await new SentinelGroup().start();
    onTestFinished(() => group.stop());
    const options = { sentinels: group.sentinels, name: group.name, maxRetriesPerRequest: null };
    const Redis = single.Redis as unknown as new (options: object) => CoalescedClient;
    const client = coalesce(
      await ready(endWithTest(new Redis({ ...options, retryStrategy: () => 50, sentinelRetryStrategy: () => 50 }))),
      { cache: true },
    ) as CoalescedClient;
    const plain = await ready(
      endWithTest(new Redis({ ...options, retryStrategy: () => 50, sentinelRetryStrategy: () => 50 })),
    );
    const kept = async () => {
      const hits = client.coalescer.stats().cache?.hits ?? 0;
      await client.get('failover');
      return client.coalescer.stats().cache?.hits === hits + 1;
    };
    await plain.set('failover', 'old master');
    await until(() => {
      void client.get('failover');
      return (client.coalescer.stats().cache?.hits ?? 0) > 0;
    }, 'a read is answered from memory');
    await group.failOver();
    await until(() => client.status === 'ready' && plain.status === 'ready', 'both have found the new master', 60_000);
    await plain.set('failover', 'new master');
    expect(await client.get('failover')).toBe('new master');
    for (let attempt = 0; !(await kept()); attempt += 1) {
      if (attempt === 20) throw new Error('expected answers from memory with the new master, there is none');
      await sleep(50);
    }
    expect(await client.get('failover')).toBe('new master');
  });
});
