import calculateSlot from 'cluster-key-slot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ClusterNode, type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { CLUSTER_HOSTS, type ClusterHost, createCluster, type Kind, warm } from '../helpers/cluster/clients.js';
import { empty } from '../helpers/cluster/run-program.js';
import { outcomes, sleep } from '../helpers/hosts.js';

const BLOCKING = { blocking: { connections: 2 } };
const KEYS = Array.from({ length: 6 }, (_, index) => `list:${index}`);

let nodes: RedisCluster;

beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 0, args: ['--hz', '100'] });
});
afterAll(() => nodes?.stop());

async function blockedOn(some: readonly ClusterNode[] = nodes.nodes): Promise<number> {
  const infos = await Promise.all(some.map(({ client }) => client.info('clients')));
  return infos.reduce((sum, info) => sum + Number(/blocked_clients:(\d+)/.exec(info)?.[1]), 0);
}

async function untilBlocked(count: number, some?: readonly ClusterNode[]): Promise<void> {
  const deadline = performance.now() + 10_000;
  while ((await blockedOn(some)) !== count) {
    if (performance.now() > deadline)
      throw new Error(`expected ${count} blocked clients, got ${await blockedOn(some)}`);
    await sleep(5);
  }
}

describe.each(CLUSTER_HOSTS)('blocking in a Cluster of $name', (host: ClusterHost) => {
  const create = (kind: Kind, options = {}) =>
    kind === 'plain' ? createCluster(host, kind, nodes, options) : host.createCoalesced(nodes, options, BLOCKING);

  it.each([
    ['', {}],
    [' with keyPrefix', { keyPrefix: 'p:' }],
    [' with scaleReads', { scaleReads: 'all' }],
  ])('own writes of the same tick come first; values and errors as on a plain Cluster%s', async (_, options) => {
    const run = async (kind: Kind) => {
      await empty(nodes);
      const cluster = await warm(create(kind, options));
      return outcomes([
        ...KEYS.flatMap((key) => [cluster.rpush(key, `of ${key}`), cluster.blpop(key, 0)]),
        cluster.rpush('{t}1', 'a'),
        cluster.blmove('{t}1', '{t}2', 'LEFT', 'RIGHT', 0),
        cluster.brpopBuffer('{t}1', '{t}2', 0),
        cluster.xadd('stream', '1-1', 'f', 'v'),
        cluster.xread('BLOCK', 0, 'STREAMS', 'stream', 0),
        cluster.call('blpop', 'none', '0.001'),
        cluster.blpop('{x}', '{y}', 0),
        cluster.set('text', 'v'),
        cluster.blpop('text', 0),
      ] as Promise<unknown>[]);
    };
    expect(await run('coalesced')).toEqual(await run('plain'));
  });

  it('nobody waits behind a blocking command; each node has connections of its own', async () => {
    await empty(nodes);
    const cluster = await warm(host.createCoalesced(nodes, {}, BLOCKING));
    const pops = KEYS.map((key) => cluster.blpop(key, 0));
    const slots = await Promise.all(KEYS.map(async (key) => (await nodes.masterOf(calculateSlot(key))).id));
    const expected = [...new Set(slots)].reduce(
      (sum, id) => sum + Math.min(2, slots.filter((its) => its === id).length),
      0,
    );
    await untilBlocked(expected);
    expect(cluster.coalescer.stats().blockingConnections).toBe(expected);
    expect(await cluster.get('k')).toBeNull();
    for (const key of KEYS) await cluster.rpush(key, `of ${key}`);
    expect(await Promise.all(pops)).toEqual(KEYS.map((key) => [key, `of ${key}`]));
  });

  it('before the Cluster is ready', async () => {
    await empty(nodes);
    const cluster = host.createCoalesced(nodes, {}, BLOCKING);
    const issued = KEYS.flatMap((key) => [cluster.rpush(key, 'x'), cluster.blpop(key, 0)]);
    expect(await Promise.all(issued)).toEqual(KEYS.flatMap((key) => [1, [key, 'x']]));
    const lazy = host.createCoalesced(nodes, { lazyConnect: true }, BLOCKING);
    const popped = lazy.blpop('list:0', 0);
    await untilBlocked(1);
    await cluster.rpush('list:0', 'late');
    expect(await popped).toEqual(['list:0', 'late']);
  });

  it('follows ASK and MOVED to the connections of the other node', async () => {
    await empty(nodes);
    const cluster = await warm(host.createCoalesced(nodes, {}, BLOCKING));
    const slot = calculateSlot('{moving}');
    const from = await nodes.masterOf(slot);
    const to = (await nodes.masters()).find(({ id }) => id !== from.id) as ClusterNode;
    await nodes.beginMove(slot, from, to);
    await cluster.rpush('{moving}', 'asked');
    expect(await cluster.blpop('{moving}', 0)).toEqual(['{moving}', 'asked']);
    await nodes.moveKeys(slot, from, to);
    await nodes.finishMove(slot, to);
    const blocked = cluster.blpop('{moving}', 0);
    await untilBlocked(1, [to]);
    expect(await cluster.get('{moving}text')).toBeNull();
    await cluster.rpush('{moving}', 'moved');
    expect(await blocked).toEqual(['{moving}', 'moved']);
    await nodes.moveSlots(to, from, [slot]);
  });

  it('a lost connection while it waits: tried again, as on a plain Cluster', async () => {
    await empty(nodes);
    const cluster = await warm(host.createCoalesced(nodes, { retryDelayOnFailover: 5 }, BLOCKING));
    const blocked = cluster.blpop('list:0', 0);
    await untilBlocked(1);
    const { client } = await nodes.masterOf(calculateSlot('list:0'));
    const lines = ((await client.client('LIST')) as string).split('\n').filter((line) => line.includes('cmd=blpop'));
    await client.client('KILL', 'ID', /id=(\d+)/.exec(lines[0] as string)?.[1] as string);
    await untilBlocked(1);
    await cluster.rpush('list:0', 'x');
    expect(await blocked).toEqual(['list:0', 'x']);
  });

  it('disconnect() ends blocked and waiting commands, as on a plain Cluster', async () => {
    const run = async (kind: Kind) => {
      const cluster = await warm(create(kind));
      const blocked = outcomes(['a', 'b', 'c'].map((key) => cluster.blpop(`{end}${key}`, 0)));
      await untilBlocked(kind === 'plain' ? 1 : 2);
      cluster.disconnect();
      return blocked;
    };
    expect(await run('coalesced')).toEqual(await run('plain'));
    await untilBlocked(0);
  });

  it('detach() leaves a plain Cluster; a blocked one is answered', async () => {
    await empty(nodes);
    const cluster = await warm(host.createCoalesced(nodes, {}, BLOCKING));
    const blocked = cluster.blpop('list:0', 0);
    await untilBlocked(1);
    cluster.coalescer.detach();
    await cluster.rpush('list:0', 'x');
    expect(await blocked).toEqual(['list:0', 'x']);
    await untilBlocked(0);
  });
});
