import { roundTrips } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { ioredis6, warm } from '../helpers/cluster/clients.js';
import { cold } from '../helpers/cold.js';

let nodes: RedisCluster;
beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 0 });
});
afterAll(() => nodes?.stop());

it('a command of a Cluster counts once, although a node sends it; a call that splitKeys divides, once per part', async () => {
  const cluster = await warm(ioredis6.createCoalesced(nodes, {}, { splitKeys: true }));
  const counted = await roundTrips(async () => {
    await cluster.get('{a}');
    await cold(cluster, 'get', '{b}');
    await cluster.mget('{a}', '{b}');
    await cluster.pipeline().get('{a}').get('{a}').exec();
  });
  expect(counted).toMatchObject({ commands: 5, sequential: 4 });
});

it('a command after a write of a Cluster is not independent of it: nodes answer in any order', async () => {
  const cluster = await warm(ioredis6.createCoalesced(nodes));
  const { sites } = await roundTrips(async () => {
    for (let index = 0; index < 30; index += 1) {
      await cluster.set('{a}written', `value ${index}`);
      await cluster.get('{b}read');
    }
  });
  expect(sites.length).toBeGreaterThan(0);
  expect(sites.map(({ advice }) => advice)).not.toContain('together');
});

it('a command after a write of a Cluster has to wait: another node may answer it first', async () => {
  const cluster = await warm(ioredis6.createCoalesced(nodes));
  const { sites } = await roundTrips(async () => {
    for (const run of [1, 2, 3, 4]) {
      await cluster.set('{a}', 'x');
      await cluster.llen(`{b}${run}`);
    }
  });
  const advice = sites.find(({ first, second }) => first.command === 'set' && second.command === 'llen')?.advice;
  expect(advice).toBe('leave');
});
