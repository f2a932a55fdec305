import { CODES, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { createCluster, ioredis6, warm } from '../helpers/cluster/clients.js';
import { keysOverAllSlots } from '../helpers/cluster/program.js';
import { cold } from '../helpers/cold.js';
import { refused } from '../helpers/refused.js';
import { expectWarnings } from '../helpers/warnings.js';

let nodes: RedisCluster;

beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 0 });
});
afterAll(() => nodes?.stop());

it('maxPending of a Cluster counts per node, fast or not, and its offline queue', async () => {
  const offline = createCluster(ioredis6, 'plain', nodes, { lazyConnect: true });
  const before = coalesce(offline, { maxPending: 3 });
  expect(await refused(keysOverAllSlots(5).map((key) => before.get(key)))).toEqual({ answered: 3, refused: 2 });

  const cluster = await warm(ioredis6.createCoalesced(nodes, {}, { maxPending: 3 }));
  const one = Array.from({ length: 5 }, () => cluster.get('{a}'));
  const another = cluster.get('{b}');
  expect(await refused(one)).toEqual({ answered: 3, refused: 2 });
  await another;
  const cluster5 = Array.from({ length: 5 }, (_, index) => cold(cluster, 'get', index % 2 === 0 ? '{a}1' : '{a}2'));
  expect(await refused(cluster5)).toEqual({ answered: 3, refused: 2 });
  expect(
    await refused([cluster.get('{a}'), cluster.get('{a}'), cluster.pipeline().get('{a}').get('{a}').exec()]),
  ).toEqual({ answered: 2, refused: 1 });
  expect(await refused([cluster.get('{b}'), cluster.multi().get('{a}').exec()])).toEqual({ answered: 2, refused: 0 });
  expect(cluster.coalescer.stats().refusedCalls).toBe(5);
});

it('with enableAutoPipelining, calls to a node that do not fit are refused', async () => {
  expectWarnings(CODES.AUTO_PIPELINING);
  const cluster = await warm(ioredis6.createCoalesced(nodes, { enableAutoPipelining: true }, { maxPending: 3 }));
  const one = Array.from({ length: 5 }, () => cluster.get('{a}'));
  const another = cluster.get('{b}');
  expect(await refused(one)).toEqual({ answered: 3, refused: 2 });
  expect(await another).toBe(null);
});

it('splitKeys: parts of a call are refused where their node has too many; the call fails', async () => {
  const cluster = await warm(ioredis6.createCoalesced(nodes, {}, { maxPending: 3, splitKeys: true }));
  await cluster.mset('{a}split', 0, '{b}split', 0);
  const full = Array.from({ length: 3 }, () => cluster.get('{a}'));
  const split = cluster.mset('{b}split', 1, '{a}split', 1);
  expect(await refused([...full, split])).toEqual({ answered: 3, refused: 1 });
  expect(await cluster.mget('{b}split', '{a}split')).toEqual(['1', '0']);
  expect(cluster.coalescer.stats().refusedCalls).toBe(1);
});

it('a replica is under the bound with its pipelines and scripts, too', async () => {
  const withReplica = await startCluster({ masters: 1, replicas: 1 });
  onTestFinished(() => withReplica.stop());
  const cluster = await warm(ioredis6.createCoalesced(withReplica, { scaleReads: 'slave' }, { maxPending: 3 }));
  const options = { numberOfKeys: 1, lua: "return redis.call('get', KEYS[1])", readOnly: true };
  cluster.defineCommand('readOf', options);
  const { readOf } = cluster as unknown as { readOf(key: string, date: Date): Promise<unknown> };
  const full = () => Array.from({ length: 3 }, () => cluster.get('{a}'));
  // The host sends it: a date is no plain argument.
  expect(await refused([...full(), readOf.call(cluster, '{a}', new Date())])).toEqual({ answered: 3, refused: 1 });
  expect(await refused([...full(), cluster.pipeline().get('{a}').exec()])).toEqual({ answered: 3, refused: 1 });
  const withCallback = cluster.pipeline();
  withCallback.get('{a}', () => {});
  expect(await refused([...full(), withCallback.exec()])).toEqual({ answered: 3, refused: 1 });
  // These go to the master.
  const writes = [cluster.pipeline().set('{a}', '1').get('{a}').exec(), cluster.set('{a}', '1')];
  expect(await refused([...full(), ...writes])).toEqual({ answered: 5, refused: 0 });
});
