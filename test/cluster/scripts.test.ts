import type { ClusterOptions } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import {
  CLUSTER_HOSTS,
  type ClusterClient,
  createCluster,
  KINDS,
  type Kind,
  warm,
} from '../helpers/cluster/clients.js';
import { empty } from '../helpers/cluster/run-program.js';
import { type CoalescedClient, outcomes } from '../helpers/hosts.js';

const SCRIPTS = {
  add: { numberOfKeys: 1, lua: "return redis.call('APPEND', KEYS[1], ARGV[1])" },
  loose: { lua: 'return {KEYS, ARGV}' },
  read: { numberOfKeys: 1, lua: "return redis.call('GET', KEYS[1])", readOnly: true },
  none: { numberOfKeys: 0, lua: 'return ARGV' },
} satisfies ClusterOptions['scripts'];

type Scripts = Record<keyof typeof SCRIPTS, (...args: unknown[]) => Promise<unknown>>;

const KEYS = Array.from({ length: 12 }, (_, index) => `key:${index}`);

let nodes: RedisCluster;

beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 3 });
});
afterAll(() => nodes?.stop());

describe.each(CLUSTER_HOSTS)('scripts over the Cluster of $name', (host) => {
  async function create(kind: Kind, options: ClusterOptions = {}) {
    const cluster = await warm(createCluster(host, kind, nodes, { scripts: SCRIPTS, ...options }));
    return { cluster, scripts: cluster as unknown as Scripts };
  }

  /** Runs the same on an empty cluster with a plain and with a coalesced client; returns how much of it was fast. */
  async function compare(
    options: ClusterOptions,
    run: (scripts: Scripts, cluster: ClusterClient) => Promise<unknown>,
  ): Promise<number> {
    const told: unknown[] = [];
    let fast = 0;
    for (const kind of KINDS) {
      await empty(nodes);
      const { cluster, scripts } = await create(kind, options);
      await Promise.all(cluster.nodes('master').map((node) => node.script('FLUSH')));
      told.push(await run(scripts, cluster));
      if (kind === 'coalesced') fast = (cluster as unknown as CoalescedClient).coalescer.stats().fastCommands;
    }
    expect(told[1]).toEqual(told[0]);
    return fast;
  }

  it('go to the node of their first key, with the values and errors of a plain Cluster', async () => {
    const fast = await compare({}, async (scripts) => [
      await outcomes(KEYS.map((key) => scripts.add(key, 'é'))),
      await outcomes(KEYS.map((key) => scripts.add(key, Buffer.from('x')))),
      await outcomes(KEYS.map((key) => scripts.loose(1, key, 'argument'))),
      await outcomes([scripts.add('key:0'), scripts.loose(2, 'key:0', 'key:1'), scripts.none('a'), scripts.loose(0)]),
    ]);
    expect(fast).toBeGreaterThanOrEqual(3 * KEYS.length);
  });

  it('have keyPrefix before their keys', async () => {
    const fast = await compare({ keyPrefix: 'p:' }, async (scripts, cluster) => [
      await outcomes(KEYS.map((key) => scripts.add(key, '1'))),
      await outcomes(KEYS.map((key) => scripts.loose(1, key, key))),
      await outcomes(KEYS.map((key) => cluster.get(key))),
      await outcomes(KEYS.flatMap((key) => [cluster.call('get', key), cluster.call('STRLEN', key)])),
    ]);
    expect(fast).toBeGreaterThanOrEqual(2 * KEYS.length);
  });

  it('are sent again as EVAL by a node that has forgotten them', async () => {
    await compare({}, async (scripts, cluster) => {
      const first = await outcomes(KEYS.map((key) => scripts.add(key, '1')));
      await Promise.all(cluster.nodes('master').map((node) => node.script('FLUSH')));
      return [first, await outcomes(KEYS.map((key) => scripts.add(key, '2')))];
    });
  });

  it('follow MOVED, each separately', async () => {
    await compare({}, async (scripts, cluster) => {
      const first = await outcomes(KEYS.map((key) => scripts.add(key, '1')));
      // Every slot looks as if the next master had it.
      const slots = (cluster as unknown as { slots: string[][] }).slots;
      const masters = [...new Set(slots.map(([master]) => master as string))];
      slots.forEach((keys, slot) => {
        slots[slot] = [masters[(masters.indexOf(keys[0] as string) + 1) % masters.length] as string];
      });
      return [
        first,
        await outcomes(KEYS.map((key) => scripts.add(key, '2'))),
        await outcomes(KEYS.map((key) => cluster.get(key))),
      ];
    });
  });

  it('that only read go to replicas under scaleReads', async () => {
    const fast = await compare({ scaleReads: 'slave' }, async (scripts, cluster) => {
      await outcomes(KEYS.map((key) => cluster.set(key, `of ${key}`)));
      await Promise.all(cluster.nodes('master').map((node) => node.wait(1, 2_000)));
      return [
        await outcomes(KEYS.map((key) => scripts.read(key))),
        await outcomes(KEYS.map((key) => scripts.read(key))),
        await outcomes(KEYS.map((key) => scripts.add(key, '+'))),
      ];
    });
    expect(fast).toBeGreaterThanOrEqual(3 * KEYS.length);
  });
});
