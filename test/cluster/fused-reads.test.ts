import calculateSlot from 'cluster-key-slot';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { CLUSTER_HOSTS, type ClusterHost, warm } from '../helpers/cluster/clients.js';
import { keysOverAllSlots } from '../helpers/cluster/program.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

let nodes: RedisCluster;

beforeAll(async () => {
  nodes = await startCluster({ masters: 3 });
});
afterAll(() => nodes?.stop());

const TAG = '{fused}';
const SLOT = calculateSlot(TAG);
const KEYS = Array.from({ length: 10 }, (_, index) => `${TAG}${index}`);

describe.each(CLUSTER_HOSTS)('fused reads in a Cluster of $name', (host: ClusterHost) => {
  const create = (options = {}) => warm(host.createCoalesced(nodes, options, { fuseReads: true, busyPoll: false }));

  it('neighbours in one slot leave as one command, others do not', async () => {
    const cluster = await create();
    await Promise.all(KEYS.map((key) => cluster.set(key, `of ${key}`)));
    // Reads are fused once the server has answered an MGET.
    await cluster.get(TAG);
    const spies = cluster.nodes('master').map((node) => spyOnSocket(node));
    expect(await Promise.all(KEYS.map((key) => cluster.get(key)))).toEqual(KEYS.map((key) => `of ${key}`));
    expect(spies.flatMap((spy) => commandNames(spy.text()))).toEqual(['mget']);
    const spread = keysOverAllSlots(300);
    expect(await Promise.all(spread.map((key) => cluster.get(key)))).toEqual(spread.map(() => null));
    expect(spies.flatMap((spy) => commandNames(spy.text())).filter((name) => name === 'get').length).toBeGreaterThan(
      250,
    );
  });

  it('keys with an empty hash tag before another do not: Redis hashes the whole key', async () => {
    const cluster = await create();
    const keys = ['{}:{a}1', '{}:{a}2', '{}:{a}3'];
    for (let round = 0; round < 3; round += 1) {
      await Promise.all([...keys, '{a}'].map((key) => cluster.set(key, 'v')));
      // Proves that the node takes MGET.
      await cluster.get('{a}');
      const replies = [...keys.map((key) => cluster.get(key)), ...keys.map((key) => cluster.set(key, 'later'))];
      expect(await Promise.all(replies)).toEqual(['v', 'v', 'v', 'OK', 'OK', 'OK']);
    }
    await Promise.all(keys.map((key) => cluster.del(key)));
  });

  it('of a node’s own client: keys of one slot leave as one command, once Redis has refused those of several', async () => {
    const cluster = await create();
    const { address } = await nodes.masterOf(SLOT);
    const node = cluster.nodes('master').find(({ options }) => address === `${options.host}:${options.port}`);
    if (node === undefined) throw new Error('expected the Cluster to know the master of the slot');
    const owners = (cluster as unknown as { slots: string[][] }).slots;
    const others = keysOverAllSlots(300).filter((key) => owners[calculateSlot(key)]?.[0] === address);
    const keys = [...KEYS.slice(0, 3), ...others.slice(0, 3)];
    await Promise.all(keys.map((key) => cluster.set(key, 'v')));
    // Until the server has answered an MGET, and refused one.
    await node.get(TAG);
    const read = () => keys.map((key) => node.get(key));
    expect(await Promise.all(read())).toEqual(keys.map(() => 'v'));
    const spy = spyOnSocket(node);
    const replies = [...read(), ...keys.map((key) => node.set(key, 'later'))];
    expect((await Promise.all(replies)).slice(0, keys.length)).toEqual(keys.map(() => 'v'));
    expect(commandNames(spy.text()).slice(0, 4)).toEqual(['mget', 'get', 'get', 'get']);
    await Promise.all(keys.map((key) => cluster.del(key)));
  });

  it('each member gets its value while their slot moves, before, amid and after, and none waits to try again', async () => {
    const cluster = await create({ retryDelayOnTryAgain: 2 ** 30 });
    const values = KEYS.map((key) => `of ${key}`);
    await Promise.all(KEYS.map((key) => cluster.set(key, `of ${key}`)));
    const read = () => Promise.all(KEYS.map((key) => cluster.get(key)));
    expect(await read()).toEqual(values);
    const from = await nodes.masterOf(SLOT);
    const to = (await nodes.masters()).find((master) => master !== from);
    if (to === undefined) throw new Error('expected three masters');
    await nodes.beginMove(SLOT, from, to);
    // Some here, some there: Redis answers MGET with TRYAGAIN, and GET of one that has moved with ASK.
    await nodes.moveKeys(SLOT, from, to, KEYS.slice(0, 5));
    expect(await read()).toEqual(values);
    await nodes.moveKeys(SLOT, from, to);
    expect(await read()).toEqual(values);
    await nodes.finishMove(SLOT, to);
    expect(await read()).toEqual(values);
    expect(await read()).toEqual(values);
    expect(cluster.coalescer.stats()).toMatchObject({ inFlight: 0 });
    await cluster.del(...KEYS);
  });
});
