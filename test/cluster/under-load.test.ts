import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ClusterNode, type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { CLUSTER_HOSTS, type CoalescedCluster, ioredis6, warm } from '../helpers/cluster/clients.js';
import { Load, printFigures } from '../helpers/cluster/load.js';
import { commandCounts, resetCommandCounts } from '../helpers/cluster/run-program.js';

/** The long form: this many minutes of resharding with each host, and every master killed once. */
const SOAK_MINUTES = Number(process.env.SOAK_MINUTES ?? 0);
const HOSTS = SOAK_MINUTES > 0 ? CLUSTER_HOSTS : [ioredis6];
const TIMEOUT = 180_000 + SOAK_MINUTES * 60_000;

/** Enough patience for a failover on a busy machine: no command has to fail. */
const PATIENT = { maxRedirections: 400, retryDelayOnFailover: 100, retryDelayOnClusterDown: 100 };
/** Moved from node to node at a time. */
const SLOTS = SOAK_MINUTES > 0 ? 2_000 : 500;
const NOTHING_WRONG = { errors: {}, misdelivered: [], lost: 0, open: 0 };

/** That it had the cork, and that the cork joined writes. */
function expectCorked(cluster: CoalescedCluster): void {
  const { mode, commands, batches } = cluster.coalescer.stats();
  expect(mode).toBe('cork');
  expect(batches).toBeGreaterThan(0);
  expect(commands).toBeGreaterThan(batches);
}

describe.each(HOSTS)('A coalesced Cluster of $name under load', { timeout: TIMEOUT }, (host) => {
  let nodes: RedisCluster;

  beforeAll(async () => {
    nodes = await startCluster({ masters: 3, replicas: 3 });
  });
  afterAll(() => nodes?.stop());

  it('loses no reply and gives none to a wrong caller while slots move', async () => {
    const [a, b] = (await nodes.masters()) as [ClusterNode, ClusterNode];
    const cluster = await warm(host.createCoalesced(nodes, PATIENT));
    await resetCommandCounts(nodes);
    const load = new Load(cluster);
    // At the same time, which costs the run hardly more.
    const corked = await warm(host.createCoalesced(nodes, PATIENT, { fastPath: false }));
    const corkedLoad = new Load(corked, { name: 'corked' });
    const deadline = Date.now() + SOAK_MINUTES * 60_000;
    let moved = 0;
    await load.more(1_000);
    await corkedLoad.more(1_000);
    for (let [from, to] = [a, b]; moved === 0 || Date.now() < deadline; [from, to] = [to, from]) {
      await nodes.moveSlots(from, to, SLOTS);
      moved += SLOTS;
    }
    await load.more(1_000);
    await corkedLoad.more(1_000);
    const [figures, corkedFigures] = await Promise.all([load.stop(), corkedLoad.stop()]);
    printFigures(`${host.name}, ${moved} slots moved under load`, figures);
    printFigures(`${host.name}, corked, ${moved} slots moved under load`, corkedFigures);
    expect(figures).toMatchObject(NOTHING_WRONG);
    expect(corkedFigures).toMatchObject(NOTHING_WRONG);
    expectCorked(corked);
    const { fastCommands, inFlight } = cluster.coalescer.stats();
    expect(fastCommands).toBeGreaterThan(figures.commands / 2);
    expect(inFlight).toBe(0);
    // The servers did redirect, and carried out each increment once.
    const { calls, rejected_calls } = await commandCounts(nodes, 'incr');
    expect(rejected_calls).toBeGreaterThan(0);
    expect(calls).toBeGreaterThan(0);
  });

  it('uses a node that is added, and the slots that move to it', async () => {
    const [from] = (await nodes.masters()) as [ClusterNode];
    const cluster = await warm(host.createCoalesced(nodes, PATIENT));
    const load = new Load(cluster);
    await load.more(1_000);
    const added = await nodes.addNode();
    await nodes.moveSlots(from, added, SLOTS);
    await load.more(2_000);
    const figures = await load.stop();
    printFigures(`${host.name}, a node added and ${SLOTS} slots moved to it under load`, figures);
    expect(figures).toMatchObject(NOTHING_WRONG);
    const node = cluster.nodes('master').find(({ options }) => options.port === added.port);
    expect((node as unknown as { coalescer?: unknown } | undefined)?.coalescer).toBeDefined();
    // Nobody else writes there.
    expect(await added.client.dbsize()).toBeGreaterThan(0);
  });

  /**
   * Redis replicates asynchronously: what a master has acknowledged and not yet passed on dies with it, whatever the
   * client. So here a read may find an older value of its key. What had reached the replicas must be there.
   */
  it('continues with the replica when a master is killed', async () => {
    const cluster = await warm(host.createCoalesced(nodes, PATIENT));
    const durable = Array.from({ length: 500 }, (_, index) => `durable:${index}`);
    await Promise.all(durable.map((key) => cluster.set(key, `of ${key}`)));
    await nodes.replicated();
    const load = new Load(cluster);
    const corked = await warm(host.createCoalesced(nodes, PATIENT, { fastPath: false }));
    const corkedLoad = new Load(corked, { name: 'corked' });
    const masters = await nodes.masters();
    const withReplica: ClusterNode[] = [];
    for (const master of masters) if ((await nodes.replicasOf(master)).length > 0) withReplica.push(master);
    for (const victim of SOAK_MINUTES > 0 ? withReplica : withReplica.slice(0, 1)) {
      const [replica] = (await nodes.replicasOf(victim)) as [ClusterNode];
      const [slot] = (await nodes.slotsOf(victim)) as [number];
      await Promise.all([load.more(1_000), corkedLoad.more(1_000)]);
      await nodes.kill(victim);
      await nodes.settled();
      expect((await nodes.masterOf(slot)).id).toBe(replica.id);
      await Promise.all([load.more(2_000), corkedLoad.more(2_000)]);
    }
    const [figures, corkedFigures] = await Promise.all([load.stop(), corkedLoad.stop()]);
    printFigures(`${host.name}, a master killed under load`, figures);
    printFigures(`${host.name}, corked, a master killed under load`, corkedFigures);
    for (const each of [figures, corkedFigures]) {
      expect(each).toMatchObject({ errors: {}, misdelivered: [], open: 0 });
    }
    expectCorked(corked);
    expect(await Promise.all(durable.map((key) => cluster.get(key)))).toEqual(durable.map((key) => `of ${key}`));

    // From here on no master dies any more, and nothing is lost.
    const after = new Load(cluster, { name: 'after' });
    await after.more(2_000);
    expect(await after.stop()).toMatchObject(NOTHING_WRONG);
    expect(cluster.coalescer.stats().inFlight).toBe(0);
  });
});
