import { tracingChannel } from 'node:diagnostics_channel';
import { CHANNELS, type Coalesced, type ConnectionEvent, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import {
  CLUSTER_HOSTS,
  type ClusterClient,
  type ClusterHost,
  type CoalescedCluster,
  createCluster,
  KINDS,
  type Kind,
  warm,
} from '../helpers/cluster/clients.js';
import { keysOverAllSlots, PROGRAM } from '../helpers/cluster/program.js';
import { commandCounts, empty, resetCommandCounts, runProgram } from '../helpers/cluster/run-program.js';
import { cold } from '../helpers/cold.js';
import { type Client, outcomes, sleep, until } from '../helpers/hosts.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

let nodes: RedisCluster;

beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 3 });
});
afterAll(() => nodes?.stop());

/** Runs the same on an empty cluster with a plain and with a coalesced client, and expects the same of both. */
async function compare<T>(scenario: (kind: Kind) => Promise<T>): Promise<T> {
  await empty(nodes);
  const plain = await scenario('plain');
  await empty(nodes);
  expect(await scenario('coalesced')).toEqual(plain);
  return plain;
}

describe.each(CLUSTER_HOSTS)('Cluster of $name', (host: ClusterHost) => {
  it('gives the same values and errors as a plain one for a program over all slots', async () => {
    const plain = await runProgram(nodes, await warm(host.create(nodes)));
    const coalesced = await warm(host.createCoalesced(nodes));
    const found = await runProgram(nodes, coalesced);
    for (const step of Object.keys(PROGRAM)) {
      expect({ [step]: found[step] }).toEqual({ [step]: plain[step] });
    }
    expect(coalesced.coalescer.stats().fastCommands).toBeGreaterThan(1000);
    expect(coalesced.coalescer.stats().inFlight).toBe(0);
  });

  it('is a corked one if all its nodes are: flush() and detach() send what they hold', async () => {
    const plain = await warm(host.create(nodes, { redisOptions: { showFriendlyErrorStack: true } }));
    const cluster = coalesce(plain, { schedule: () => {} });
    const { coalescer } = cluster;
    expect(coalescer.stats().mode).toBe('cork');
    const flushed = cluster.get('{a}none');
    coalescer.flush();
    expect(await flushed).toBeNull();
    const detached = cluster.get('{a}none');
    coalescer.detach();
    expect(await detached).toBeNull();
  });

  it('sends 200 reads over all slots, issued in one turn, as one write to each master', async () => {
    const cluster = await warm(host.createCoalesced(nodes, {}, { busyPoll: false }));
    const keys = keysOverAllSlots(200);
    await Promise.all(keys.map((key) => cluster.set(key, `of ${key}`)));
    const masters = cluster.nodes('master');
    expect(masters).toHaveLength(3);
    const spies = masters.map((node) => spyOnSocket(node));
    const before = cluster.coalescer.stats();
    const replies = await Promise.all(keys.map((key) => cluster.get(key)));
    const after = cluster.coalescer.stats();
    expect(replies).toEqual(keys.map((key) => `of ${key}`));
    expect(spies.map(({ writes }) => writes.length)).toEqual([1, 1, 1]);
    expect(spies.flatMap((spy) => commandNames(spy.text()))).toEqual(keys.map(() => 'get'));
    expect(after.batches - before.batches).toBe(3);
    expect(after.fastCommands - before.fastCommands).toBe(200);
  });

  it('sends cold commands in the same write, in program order', async () => {
    const cluster = await warm(host.createCoalesced(nodes, {}, { schedule: 'immediate' }));
    const spies = cluster.nodes('master').map((node) => spyOnSocket(node));
    const replies = await Promise.all([
      cluster.set('{o}', '1'),
      cold(cluster, 'incr', '{o}'),
      cluster.get('{o}'),
      cluster.pipeline().incr('{o}').get('{o}').exec(),
      cluster.eval("return redis.call('incr', KEYS[1])", 1, '{o}'),
      cluster.get('{o}'),
    ]);
    const incremented = [
      [null, 3],
      [null, '3'],
    ];
    expect(replies).toEqual(['OK', 2, '2', incremented, 4, '4']);
    expect(spies.map(({ writes }) => writes.length).sort()).toEqual([0, 0, 1]);
    expect(spies.flatMap((spy) => commandNames(spy.text()))).toEqual(
      ['set', 'INCR', 'get', 'incr', 'get', 'eval', 'get'].map((name) => name.toLowerCase()),
    );
  });

  it.each([
    ['of the Cluster', { keyPrefix: 'prefix:' }],
    ['with a hash tag', { keyPrefix: '{all}:' }],
    ['of the nodes', { redisOptions: { keyPrefix: 'prefix:' } }],
  ])('applies keyPrefix, %s', async (_, options) => {
    await compare(async (kind) => {
      const cluster = await warm(createCluster(host, kind, nodes, options));
      const keys = keysOverAllSlots(20);
      const replies = await outcomes([
        ...keys.map((key) => cluster.set(key, key)),
        ...keys.map((key) => cluster.get(key)),
        cluster.mget('{t}1', '{t}2'),
        cluster.eval('return KEYS[1]', 1, 'script'),
        cluster.pipeline().set('{t}1', 'x').get('{t}1').exec(),
      ]);
      const stored = await Promise.all((await nodes.masters()).map(({ client }) => client.keys('*')));
      return { replies, stored: stored.flat().sort() };
    });
  });

  it.each([
    ['master', 'master', { master: 120, replica: 0 }],
    ['slave', 'slave', { master: 0, replica: 120 }],
    ['all', 'all', undefined],
    ['a function', 'function', { master: 0, replica: 120 }],
  ])('reads where a plain one reads with scaleReads: %s', async (_, scale, expected) => {
    await compare(async (kind) => {
      const asked: string[] = [];
      const scaleReads =
        scale === 'function'
          ? (candidates: unknown[], command: { name: string }) => {
              asked.push(command.name);
              return candidates[1];
            }
          : scale;
      const cluster = await warm(createCluster(host, kind, nodes, { scaleReads: scaleReads as 'all' }));
      const keys = keysOverAllSlots(60);
      await Promise.all(keys.map((key) => cluster.set(key, `of ${key}`)));
      await nodes.replicated();
      await resetCommandCounts(nodes);
      const replies = await outcomes([
        ...keys.map((key) => cluster.get(key)),
        ...keys.map((key) => cold(cluster, 'get', key)),
      ]);
      const masters = await nodes.masters();
      const count = async (of: typeof masters): Promise<number> =>
        (await commandCounts({ nodes: of } as RedisCluster, 'get')).calls ?? 0;
      const master = await count(masters);
      const replica = await count(nodes.nodes.filter((node) => !masters.includes(node)));
      expect(master + replica).toBe(120);
      if (expected) expect({ master, replica }).toEqual(expected);
      // Chance: 120 coins never fall on the same side.
      else expect(Math.min(master, replica)).toBeGreaterThan(0);
      return { replies, asked };
    });
  });

  it('writes to the master when reads go to a replica', async () => {
    const cluster = await warm(host.createCoalesced(nodes, { scaleReads: 'slave' }));
    await resetCommandCounts(nodes);
    await Promise.all(keysOverAllSlots(60).map((key) => cluster.set(key, 'x')));
    expect(await commandCounts(nodes, 'set')).toMatchObject({ rejected_calls: 0 });
  });

  it('names the caller first in the stack with showFriendlyErrorStack', async () => {
    const cluster = await warm(host.createCoalesced(nodes, { showFriendlyErrorStack: true }));
    await cluster.set('{s}text', 'text');
    const error = (await cluster.incr('{s}text').catch((reason: unknown) => reason)) as Error;
    expect(error.stack?.split('\n')[1]).toContain('basic.test.ts');
    cluster.coalescer.detach();
    expect(cluster.coalescer.enabled).toBe(false);
  });

  it('follows natMap', async () => {
    const natMap = Object.fromEntries(
      nodes.nodes.map(({ host: ip, port }) => [`${ip}:${port}`, { host: 'localhost', port }]),
    );
    await compare(async (kind) => {
      const cluster = await warm(createCluster(host, kind, nodes, { natMap, redisOptions: { family: 4 } }));
      expect(cluster.nodes('all').every(({ options }) => options.host === 'localhost')).toBe(true);
      const keys = keysOverAllSlots(30);
      return outcomes([...keys.map((key) => cluster.set(key, key)), ...keys.map((key) => cluster.get(key))]);
    });
  });

  it.each([
    ['issued before it knows its nodes', {}],
    ['that connects lazily', { lazyConnect: true }],
    ['that has no offline queue', { enableOfflineQueue: false }],
  ])('answers commands as a plain one: %s', async (_, options) => {
    await compare(async (kind) => {
      const cluster = createCluster(host, kind, nodes, options);
      const keys = keysOverAllSlots(20);
      const early = await outcomes([
        ...keys.map((key) => cluster.set(key, key)),
        ...keys.map((key) => cluster.get(key)),
        cluster.multi().incr('early').exec(),
      ]);
      // Without a queue, "early" commands fail; the same ones succeed later.
      await warm(cluster);
      return { early, late: await outcomes(keys.map((key) => cluster.get(key))), status: cluster.status };
    });
  });

  it('sends commands that were issued before quit(), and ends as a plain Cluster', async () => {
    await compare(async (kind) => {
      const cluster = await warm(createCluster(host, kind, nodes));
      const keys = keysOverAllSlots(30);
      const replies = await outcomes([
        ...keys.map((key) => cluster.set(key, 'before quit')),
        cluster.quit(),
        ...keys.map((key) => cluster.get(key)),
      ]);
      const stored = await Promise.all((await nodes.masters()).map(({ client }) => client.dbsize()));
      await until(() => cluster.status === 'end', 'the Cluster ends');
      return { replies, stored };
    });
  });

  it('sends commands that were issued before disconnect() in the same turn, as a plain Cluster', async () => {
    await compare(async (kind) => {
      const cluster = await warm(createCluster(host, kind, nodes));
      const keys = keysOverAllSlots(30);
      const replies = outcomes(keys.map((key) => cluster.set(key, 'before disconnect')));
      cluster.disconnect();
      const stored = async (): Promise<number> =>
        (await Promise.all((await nodes.masters()).map(({ client }) => client.dbsize()))).reduce((a, b) => a + b, 0);
      const found = await replies;
      await expect.poll(stored, { timeout: 5_000 }).toBe(keys.length);
      return found;
    });
  });

  it('coalesces a duplicate() too', async () => {
    const cluster = await warm(host.createCoalesced(nodes, {}, { maxBatchSize: 77 }));
    const copy = cluster.duplicate() as typeof cluster;
    copy.on('error', () => {});
    try {
      await warm(copy);
      expect(copy.coalescer.options.maxBatchSize).toBe(77);
      await copy.set('copy', '1');
      expect(await cluster.get('copy')).toBe('1');
      expect(copy.coalescer.stats().fastCommands).toBeGreaterThan(0);
    } finally {
      copy.disconnect();
    }
  });

  it('takes over nodes that were coalesced one by one, commands in flight included', async () => {
    const cluster = await warm(host.create(nodes));
    const keys = keysOverAllSlots(60);
    const byNode = cluster.nodes('all').map((node) => coalesce(node, { maxBatchSize: 3 }));
    const inFlight = [
      ...keys.map((key) => cluster.set(key, `of ${key}`)),
      ...byNode.flatMap((node) => [node.echo('fast'), node.call('ECHO', 'cold')]),
    ];
    const coalesced = coalesce(cluster, { maxBatchSize: 77, schedule: 'immediate' });
    expect(await Promise.all(inFlight)).toEqual([...keys.map(() => 'OK'), ...byNode.flatMap(() => ['fast', 'cold'])]);
    for (const node of byNode) expect(node.coalescer.options.maxBatchSize).toBe(77);
    await Promise.all(byNode.map((node) => node.ping()));
    const before = coalesced.coalescer.stats();
    expect(await Promise.all(keys.map((key) => coalesced.get(key)))).toEqual(keys.map((key) => `of ${key}`));
    const after = coalesced.coalescer.stats();
    expect(after.fastCommands - before.fastCommands).toBe(keys.length);
    expect(after.batches - before.batches).toBe(3);
    coalesced.coalescer.detach();
    for (const node of byNode) expect(node.coalescer.enabled).toBe(false);
  });

  it('is plain again after detach(), commands in flight included', async () => {
    const cluster = await warm(host.createCoalesced(nodes));
    const keys = keysOverAllSlots(60);
    const before = keys.map((key) => cluster.set(key, `of ${key}`));
    expect(cluster.coalescer.stats().mode).toBe('fast');
    cluster.coalescer.detach();
    expect(cluster.coalescer.stats().mode).toBe('plain');
    const after = keys.map((key) => cluster.get(key));
    expect(await Promise.all(before)).toEqual(keys.map(() => 'OK'));
    expect(await Promise.all(after)).toEqual(keys.map((key) => `of ${key}`));
    expect(cluster.coalescer.enabled).toBe(false);
    const spies = cluster.nodes('master').map((node) => spyOnSocket(node));
    await Promise.all(keys.map((key) => cluster.get(key)));
    const writes = spies.reduce((sum, spy) => sum + spy.writes.length, 0);
    // A plain client of ioredis writes each command by itself.
    expect(writes).toBe(keys.length);
  });
});

/** Runs `call`, and within it `then`, when the channel first reports this change of a connection's coalescing. */
function atFirst(change: ConnectionEvent['change'], then: () => void, call: () => void): void {
  const { start } = tracingChannel(CHANNELS.CONNECTION);
  const see = (event: unknown) => {
    if ((event as ConnectionEvent).change !== change) return;
    start.unsubscribe(see);
    then();
  };
  start.subscribe(see);
  try {
    call();
  } finally {
    start.unsubscribe(see);
  }
}

/** Whether coalescing has hooks on the nodes of a Cluster, and how many of its own on the Cluster. */
const tracesOn = (cluster: ClusterClient) => ({
  streams: cluster.nodes().map((node) => Object.hasOwn((node as Client).stream, 'write')),
  prototypes: new Set(cluster.nodes().map((node) => Object.getPrototypeOf(node) as object)).size,
  newNodes: cluster.listenerCount('+node'),
});

async function expectWorking(cluster: CoalescedCluster, coalesced: boolean): Promise<void> {
  await warm(cluster);
  const keys = keysOverAllSlots(30);
  await Promise.all(keys.map((key) => cluster.set(key, `of ${key}`)));
  const before = cluster.coalescer.stats();
  expect(await Promise.all(keys.map((key) => cluster.get(key)))).toEqual(keys.map((key) => `of ${key}`));
  const { fastCommands, fallbacks } = cluster.coalescer.stats();
  expect({ fast: fastCommands - before.fastCommands, fallbacks }).toEqual({
    fast: coalesced ? keys.length : 0,
    fallbacks: before.fallbacks,
  });
  expect(cluster.coalescer.enabled).toBe(coalesced);
  const enabled = cluster.nodes().map((node) => (node as Partial<Coalesced>).coalescer?.enabled ?? false);
  expect(enabled).toEqual(cluster.nodes().map(() => coalesced));
}

describe.each(CLUSTER_HOSTS)('detach() amid coalesce(), Cluster of $name', (host: ClusterHost) => {
  it.each([
    ['detach()', 'attached', false],
    ['detach() and coalesce()', 'attached', true],
    ['detach() and coalesce()', 'detached', true],
  ] as const)('%s by a subscriber of the channel, at %s', async (_, change, again) => {
    const cluster = (await warm(host.create(nodes))) as CoalescedCluster;
    const plain = tracesOn(cluster);
    // So there is a change to report: a node that was coalesced by itself is taken over.
    if (change === 'detached') for (const node of cluster.nodes()) coalesce(node);
    const detach = () => {
      cluster.coalescer.detach();
      if (again) coalesce(cluster);
    };
    atFirst(change, detach, () => coalesce(cluster));
    expect(tracesOn(cluster).newNodes).toBe(plain.newNodes + Number(again));
    await expectWorking(cluster, again);
    cluster.coalescer.detach();
    expect(tracesOn(cluster)).toEqual(plain);
  });

  it.each([
    ['detach()', false],
    ['detach() and coalesce()', true],
  ])('%s by a listener of `+node` that was there before', async (_, again) => {
    const cluster = host.create(nodes, { lazyConnect: true }) as CoalescedCluster;
    cluster.on('+node', () => {
      cluster.coalescer.detach();
      if (again) coalesce(cluster);
    });
    coalesce(cluster);
    await cluster.connect();
    await expectWorking(cluster, again);
    cluster.coalescer.detach();
    expect(tracesOn(cluster).streams).toEqual(cluster.nodes().map(() => false));
  });
});

/** Nodes pass messages on over their own bus, and what one says before its link to another is up is lost. */
async function hearsAll(masters: readonly Client[], channel: string, messages: readonly string[]): Promise<void> {
  for (const [index, master] of masters.entries()) {
    for (let tries = 0; !messages.includes(`${channel} from ${index}`); tries += 1) {
      expect(tries, `messages of master ${index} that came through`).toBeLessThan(200);
      await master.publish(channel, `from ${index}`);
      await sleep(20);
    }
  }
}

describe.each(CLUSTER_HOSTS)('Pub/sub on a Cluster of $name', (host: ClusterHost) => {
  it.each(KINDS)('delivers messages to a %s subscriber that also reads', async (kind) => {
    // Channels of its own: a node may pass on a message of the test before only now (seen on Redis 8.2).
    const news = `news, ${kind}, ${host.name}`;
    const weather = `weather, ${kind}, ${host.name}`;
    const subscriber = await warm(createCluster(host, kind, nodes));
    const publisher = await warm(host.createCoalesced(nodes));
    const messages: string[] = [];
    subscriber.on('message', (channel, message) => messages.push(`${channel} ${message}`));
    expect(await subscriber.subscribe(news, weather)).toBe(2);
    await hearsAll(publisher.nodes('master'), news, messages);
    const published = () => messages.filter((text) => !text.includes(' from '));
    const numbers = Array.from({ length: 25 }, (_, index) => String(index));
    await Promise.all(
      numbers.flatMap((number) => [
        publisher.publish(news, number),
        publisher.publish(weather, number),
        subscriber.set(number, 'a Cluster subscribes on a connection of its own'),
      ]),
    );
    await until(() => published().length === 50, 'all messages');
    // Each is published at any of the nodes, so the order is left to chance.
    expect(published().sort()).toEqual(
      numbers.flatMap((number) => [`${news} ${number}`, `${weather} ${number}`]).sort(),
    );
    expect(await subscriber.unsubscribe()).toBe(0);
  });

  it.runIf(host.shardedSubscribers).each(KINDS)('delivers sharded messages to a %s subscriber', async (kind) => {
    const subscriber = await warm(createCluster(host, kind, nodes, { shardedSubscribers: true }));
    const publisher = await warm(host.createCoalesced(nodes));
    const messages: string[] = [];
    subscriber.on('smessage', (channel, message) => messages.push(`${channel} ${message}`));
    const channels = keysOverAllSlots(12);
    for (const channel of channels) await subscriber.ssubscribe(channel);
    await Promise.all(channels.map((channel) => publisher.spublish(channel, 'first')));
    await Promise.all(channels.map((channel) => publisher.spublish(channel, 'second')));
    await until(() => messages.length === 24, 'all messages');
    expect(messages.sort()).toEqual(channels.flatMap((channel) => [`${channel} first`, `${channel} second`]).sort());
    expect(await subscriber.get('still answers')).toBeNull();
  });
});
