import { expect, it } from 'vitest';
import { startCluster } from '../../tools/redis-cluster.js';
import { CLUSTER_HOSTS, createCluster, KINDS, warm } from '../helpers/cluster/clients.js';
import { keysOverAllSlots } from '../helpers/cluster/program.js';
import { type Outcome, outcomes } from '../helpers/hosts.js';

const KEYS = keysOverAllSlots(60);

/** Which of several errors was the last one is chance: ioredis tries again at a random node. */
function withoutChance(outcome: Outcome): Outcome {
  if (typeof outcome === 'string' || 'value' in outcome) return outcome;
  return { ...outcome, error: outcome.error.replace(/(Last error: ).*/, '$1one of several') };
}

it('a master without a replica dies: every command has the outcome that it has with a plain Cluster', async () => {
  const nodes = await startCluster({ masters: 3, replicas: 0, args: ['--cluster-require-full-coverage', 'no'] });
  try {
    const clients = await Promise.all(
      CLUSTER_HOSTS.flatMap((host) =>
        KINDS.map(async (kind) => {
          const options = { retryDelayOnFailover: 5, retryDelayOnClusterDown: 5, maxRedirections: 4 };
          return {
            name: `${host.name}, ${kind}`,
            host,
            kind,
            cluster: await warm(createCluster(host, kind, nodes, options)),
          };
        }),
      ),
    );
    const [first] = clients;
    await Promise.all(KEYS.map((key) => first?.cluster.set(key, `of ${key}`)));
    const [victim] = await nodes.masters();
    if (!victim) throw new Error('expected a cluster with masters');
    const [survivor] = (await nodes.masters()).filter(({ id }) => id !== victim.id);
    const lost = new Set((await victim.client.keys('*')).map(String));
    await nodes.kill(victim);

    /** Until the others have noticed, and after. */
    const found = new Map<string, { atOnce: Outcome[]; later: Outcome[] }>();
    const readAll = async (cluster: (typeof clients)[number]['cluster']): Promise<Outcome[]> =>
      (await outcomes(KEYS.map((key) => cluster.get(key)))).map(withoutChance);
    const atOnce = await Promise.all(clients.map(({ cluster }) => readAll(cluster)));
    await expect
      .poll(() => survivor?.client.cluster('NODES'), { timeout: 15_000 })
      .toMatch(new RegExp(`^${victim.id} .*\\bfail\\b(?!\\?)`, 'm'));
    const later = await Promise.all(clients.map(({ cluster }) => readAll(cluster)));
    clients.forEach(({ name }, index) => {
      found.set(name, { atOnce: atOnce[index] ?? [], later: later[index] ?? [] });
    });

    const answered = KEYS.map((key) => !lost.has(key));
    expect(new Set(answered)).toEqual(new Set([true, false]));
    for (const [name, outcome] of found) {
      for (const replies of [outcome.atOnce, outcome.later]) {
        const values = replies.map(
          (reply, index) => typeof reply === 'object' && 'value' in reply && reply.value === `of ${KEYS[index]}`,
        );
        expect({ [name]: values }).toEqual({ [name]: answered });
      }
    }
    for (const { name, host, cluster } of clients) {
      expect(found.get(name)).toEqual(found.get(`${host.name}, plain`));
      if ('coalescer' in cluster) {
        expect((cluster as ReturnType<typeof host.createCoalesced>).coalescer.stats().inFlight).toBe(0);
      }
    }
  } finally {
    await nodes.stop();
  }
}, 60_000);
