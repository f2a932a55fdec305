import { once } from 'node:events';
import calculateSlot from 'cluster-key-slot';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ClusterNode, type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import {
  CLUSTER_HOSTS,
  type ClusterClient,
  type CoalescedCluster,
  KINDS,
  type Kind,
  warm,
} from '../helpers/cluster/clients.js';
import { outcomes } from '../helpers/hosts.js';
import { share } from '../helpers/share.js';
import { around, type Command, following, type Layer, layer, passing, replacing } from './helpers/layers.js';

/** Keys with the tag are in the slot that moves. */
const TAG = '{moving}';
const SLOT = calculateSlot(TAG);
const MOVING = Array.from({ length: 6 }, (_, index) => `${TAG}${index}`);
const NEIGHBOURS = Array.from({ length: 12 }, (_, index) => `neighbour:${index}`);
const KEYS = NEIGHBOURS.flatMap((key, index) => (index % 2 === 0 ? [key, MOVING[index / 2] as string] : [key]));
/** The drop-in class is that of ioredis 6. */
const HOSTS = CLUSTER_HOSTS.filter(({ name }) => name !== 'drop-in class');
const LAYERS: [string, (log: unknown[]) => Layer[]][] = [
  ['as OpenTelemetry has', (log) => [replacing(log)]],
  ['that pass everything on, and follow the promise', (log) => [passing(log), following(log)]],
  ['of every kind', (log) => [replacing(log, '1'), passing(log), following(log), replacing(log, '2')]],
];

/** Over the nodes, of SET and GET. */
const changing = (change: (command: Command) => unknown): Layer =>
  around((send, command) => {
    if (/^[sg]et$/.test(command.name)) change(command);
    return send();
  });

let nodes: RedisCluster;
beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 0 });
});
afterAll(() => nodes?.stop());

type Place = { from: ClusterNode; to: ClusterNode };
interface Scene {
  /** When both clients know where all slots are. */
  readonly prepare?: (place: Place) => Promise<unknown>;
  readonly play: (cluster: ClusterClient, place: Place) => Promise<unknown>;
  /** At least so many of its commands take the fast path. */
  readonly watched: number;
  /** Whether the layers are over the `sendCommand` of its nodes. */
  readonly isOfNodes?: boolean;
  readonly end?: (place: Place) => Promise<unknown>;
}

/**
 * Runs a scene on a plain and a coalesced Cluster with the same layers: values and what layers saw must be the same.
 */
async function beside(host: (typeof HOSTS)[number], layers: (log: unknown[]) => Layer[], scene: Scene) {
  const from = await nodes.masterOf(SLOT);
  const place = { from, to: (await nodes.masters()).find(({ id }) => id !== from.id) as ClusterNode };
  const clients = {} as Record<Kind, { cluster: ClusterClient; log: unknown[] }>;
  for (const kind of KINDS) {
    const log: unknown[] = [];
    const cluster = host.create(nodes);
    if (scene.isOfNodes) cluster.on('+node', (node) => void layer(node, ...layers(log)));
    else layer(cluster, ...layers(log));
    clients[kind] = { cluster: await warm(kind === 'plain' ? cluster : coalesce(cluster)), log };
  }
  const { cluster: admin } = clients.plain;
  await Promise.all(KEYS.map((key) => admin.set(key, `of ${key}`)));
  await scene.prepare?.(place);
  try {
    const found = [];
    for (const kind of KINDS) {
      const { cluster, log } = clients[kind];
      log.length = 0;
      const before = kind === 'coalesced' && (cluster as CoalescedCluster).coalescer.stats();
      const results = await scene.play(cluster, place);
      // Which node answers first is chance.
      found.push({ results, log: log.map((line) => JSON.stringify(line)).sort() });
      if (!before) continue;
      const { observedCommands, inFlight } = (cluster as CoalescedCluster).coalescer.stats();
      expect(observedCommands - before.observedCommands).toBeGreaterThanOrEqual(scene.watched);
      expect(inFlight).toBe(0);
    }
    expect(found[1]).toEqual(found[0]);
    return found[0] as { results: unknown; log: string[] };
  } finally {
    await scene.end?.(place);
    // Before the slot moves again, or both would ask about it.
    for (const { cluster } of Object.values(clients)) cluster.disconnect();
  }
}

const readAll = (cluster: ClusterClient) => outcomes(KEYS.map((key) => cluster.get(key)));
const VALUES = KEYS.map((key) => ({ value: `of ${key}` }));
const count = (log: readonly string[], text: string) => log.filter((line) => line.includes(text)).length;

describe.each(HOSTS)('Layers over the sendCommand of a Cluster of $name', (host) => {
  it.each(LAYERS)('%s see values, errors, pipelines and scripts as on a plain one', async (_, layers) => {
    const [a = '', b = ''] = MOVING;
    const { log } = await beside(host, layers, {
      watched: KEYS.length + 10,
      play: async (cluster, { from }) => {
        cluster.defineCommand('both', {
          numberOfKeys: 2,
          lua: "return {KEYS[1], redis.call('GET', KEYS[2]), ARGV[1]}",
        });
        const { both } = cluster as unknown as { both: (...args: unknown[]) => Promise<unknown> };
        await cluster.set(a, 'text');
        await from.client.del(`${TAG}hash`);
        await Promise.all(nodes.nodes.map(({ client }) => client.script('FLUSH')));
        const replies = await outcomes([
          ...KEYS.map((key) => cluster.get(key)),
          cluster.getBuffer(a),
          cluster.mget(a, b),
          cluster.mget(a, 'neighbour:0'),
          cluster.incr(a),
          cluster.hset(`${TAG}hash`, { field: 1, other: 'ü' }),
          cluster.hgetall(`${TAG}hash`),
          cluster.call('strlen', b),
          cluster.set(`${TAG}bytes`, Buffer.from([0xff, 0])),
          cluster.getBuffer(`${TAG}bytes`),
        ]);
        const scripts = [await both.call(cluster, a, b, 1), await both.call(cluster, a, b, 2)];
        const pipelines = await outcomes([
          cluster.pipeline().get(a).incr(a).strlen(b).exec(),
          cluster.multi().get(a).hgetall(`${TAG}hash`).exec() as Promise<unknown>,
        ]);
        const called = new Promise((settle) => void cluster.get(a, (error, value) => settle([error, value])));
        return [replies, scripts, pipelines, await called];
      },
    });
    expect(count(log, 'both')).toBe(0);
    expect(count(log, 'evalsha')).toBeGreaterThan(0);
  });

  it.each(share(LAYERS, 2))('%s see what is redirected by MOVED as on a plain one', async (_, layers) => {
    const { results } = await beside(host, layers, {
      watched: KEYS.length + MOVING.length + KEYS.length,
      prepare: ({ from, to }) => nodes.moveSlots(from, to, [SLOT]),
      play: async (cluster) => {
        const refreshed = once(cluster, 'refresh');
        const first = await readAll(cluster);
        await refreshed;
        return [first, await readAll(cluster)];
      },
    });
    expect(results).toEqual([VALUES, VALUES]);
  });

  it.each(share(LAYERS, 2))('%s, over its nodes, see errors of what is redirected as on plain', async (_, layers) => {
    const { log } = await beside(host, layers, {
      isOfNodes: true,
      watched: KEYS.length + 1,
      play: async (cluster, { to }) => {
        (cluster as unknown as { slots: string[][] }).slots[SLOT] = [to.address];
        return outcomes([...KEYS.map((key) => cluster.get(key)), ...MOVING.map((key) => cluster.hget(key, 'field'))]);
      },
    });
    expect(count(log, 'WRONGTYPE')).toBeGreaterThan(MOVING.length);
  });

  const CHANGES: [string, (command: Command) => unknown][] = [
    ['an argument', (command) => (command.args[0] = `${String(command.args[0])}:mine`)],
    ['all arguments', (command) => (command.args = [`${String(command.args[0])}:mine`, ...command.args.slice(1)])],
    ['the command', (command) => (command.name = command.name === 'set' ? 'append' : 'getrange')],
  ];

  it.each(CHANGES)('over its nodes that change %s change it in pipelines as on a plain one', async (_, change) => {
    const [a = '', b = ''] = MOVING;
    const { results } = await beside(host, (log) => [changing(change), replacing(log)], {
      isOfNodes: true,
      watched: 0,
      play: async (cluster, { from, to }) => {
        const keys = [a, b].flatMap((key) => [key, `${key}:mine`]);
        await from.client.del(keys);
        const sent = () =>
          outcomes([
            cluster.pipeline().set(a, 'x').get(a).set(b, 'y').exec(),
            cluster.multi().set(a, 'z').get(a).exec() as Promise<unknown>,
          ]);
        const first = await sent();
        (cluster as unknown as { slots: string[][] }).slots[SLOT] = [to.address];
        return [first, await sent(), await from.client.mget(keys)];
      },
    });
    expect(JSON.stringify(results)).not.toContain('MOVED');
  });

  it.each(share(LAYERS, 2))('%s see what is redirected by ASK as on a plain one', async (_, layers) => {
    const moved = MOVING.slice(0, 3);
    const { results } = await beside(host, layers, {
      watched: 2 * (KEYS.length + moved.length),
      prepare: async ({ from, to }) => {
        await nodes.beginMove(SLOT, from, to);
        await nodes.moveKeys(SLOT, from, to, moved);
      },
      play: async (cluster) => [await readAll(cluster), await readAll(cluster)],
      end: async ({ from, to }) => {
        await nodes.moveKeys(SLOT, from, to);
        await nodes.finishMove(SLOT, to);
      },
    });
    expect(results).toEqual([VALUES, VALUES]);
  });

  it.each(share(LAYERS, 2))('%s see timeouts as on a plain one', async (_, layers) => {
    const { results } = await beside(host, layers, {
      watched: MOVING.length + KEYS.length,
      play: async (cluster, { from }) => {
        const timeout = (ms: number | undefined) => {
          for (const { options } of cluster.nodes()) options.commandTimeout = ms as number;
        };
        await from.client.client('PAUSE', 60_000, 'WRITE');
        const node = cluster.nodes().find(({ options }) => options.port === from.port);
        timeout(50);
        const late = await outcomes(MOVING.map((key) => cluster.set(key, `of ${key}`)));
        timeout(undefined);
        await from.client.call('CLIENT', 'UNPAUSE');
        // Their late replies reach nobody.
        await node?.echo('after them');
        return [late, await readAll(cluster)];
      },
    });
    expect(results).toMatchObject([MOVING.map(() => ({ error: 'Error/Error: Command timed out' })), VALUES]);
  });
});
