import calculateSlot from 'cluster-key-slot';
import { expect, it } from 'vitest';
import { startCluster } from '../../tools/redis-cluster.js';
import { CLUSTER_HOSTS, type CoalescedCluster, createCluster, KINDS, warm } from '../helpers/cluster/clients.js';
import { keysOverAllSlots } from '../helpers/cluster/program.js';
import { outcomes } from '../helpers/hosts.js';

const KEYS = keysOverAllSlots(60);
const VALUES = KEYS.map((key) => ({ value: `of ${key}` }));

it('a node comes, serves slots, gives them back, is forgotten and stops: every command is answered', async () => {
  const nodes = await startCluster({ masters: 3, replicas: 0 });
  try {
    const clients = await Promise.all(
      CLUSTER_HOSTS.flatMap((host) =>
        KINDS.map(async (kind) => ({
          name: `${host.name}, ${kind}`,
          cluster: await warm(createCluster(host, kind, nodes, { retryDelayOnFailover: 20 })),
        })),
      ),
    );
    await Promise.all(KEYS.map((key) => clients[0]?.cluster.set(key, `of ${key}`)));
    const readAll = () =>
      Promise.all(
        clients.map(async ({ name, cluster }) => {
          expect({ [name]: await outcomes(KEYS.map((key) => cluster.get(key))) }).toEqual({ [name]: VALUES });
        }),
      );
    await readAll();
    const [home] = await nodes.masters();
    if (!home) throw new Error('expected a cluster with masters');
    const guest = await nodes.addNode();
    const its = new Set(await nodes.slotsOf(home));
    const slots = KEYS.map((key) => calculateSlot(key)).filter((slot) => its.has(slot));
    expect(slots.length).toBeGreaterThan(5);
    // Each time some clients know the slots from the time before, and some move while they read.
    await Promise.all([nodes.moveSlots(home, guest, slots), readAll()]);
    await readAll();
    await Promise.all([nodes.moveSlots(guest, home, slots), readAll()]);
    const others = nodes.nodes.filter(({ id }) => id !== guest.id);
    await Promise.all([...others.map(({ client }) => client.cluster('FORGET', guest.id)), readAll()]);
    await Promise.all([nodes.kill(guest), readAll()]);
    await readAll();
    for (const { cluster } of clients) {
      if (!('coalescer' in cluster)) continue;
      const { inFlight, fastCommands } = (cluster as CoalescedCluster).coalescer.stats();
      expect(inFlight).toBe(0);
      expect(fastCommands).toBeGreaterThan(5 * KEYS.length);
    }
  } finally {
    await nodes.stop();
  }
});
