import type { ClusterOptions } from 'ioredis';
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
import { empty } from '../helpers/cluster/run-program.js';
import { LONG_ENOUGH, type Outcome, outcomes, outcomesWithin, until } from '../helpers/hosts.js';
import { bulk, handshake, type Script, startScriptedServer } from '../helpers/scripted-server.js';
import { share } from '../helpers/share.js';
import { collectUncaught } from '../helpers/uncaught.js';

let nodes: RedisCluster;

beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 0 });
});
afterAll(() => nodes?.stop());

type Pipelines = Readonly<Record<string, (cluster: ClusterClient) => (Promise<unknown> | null)[]>>;

/** Fast as a whole, or in what can be. */
const HOT: Pipelines = {
  'of one slot': (cluster) => [
    cluster.pipeline().set('{a}1', 'é').get('{a}1').getBuffer('{a}1').mget('{a}1', '{a}2').exec(),
    cluster.pipeline().hset('{a}h', { f: 1 }).hgetall('{a}h').del('{a}h', '{a}1').exec(),
  ],
  'of several slots of one master': (cluster) => [
    cluster.pipeline().set('k1', '1').get('k1').exec(),
    cluster.pipeline().set('k1', '1').set('k2', '2').set('k3', '3').set('k4', '4').set('k5', '5').exec(),
  ],
  'with a command that has no key, and one that is not fast': (cluster) => [
    cluster.pipeline().echo('x').set('{a}1', '1').object('ENCODING', '{a}1').call('get', '{a}1').exec(),
    cluster.pipeline().set('{a}1', '1').eval('return KEYS[1]', 1, '{a}1').exec(),
  ],
  'whose keys belong to several slots': (cluster) => [
    cluster.pipeline().set('{a}1', '1').mget('{a}1', '{b}1').exec(),
    cluster.multi().set('{a}1', '1').mget('{a}1', '{b}1').exec(),
    cluster.pipeline().set('{a}1', '1').get('{a}1').exec(),
  ],
  'with errors of commands': (cluster) => [
    cluster.pipeline().set('{a}t', 't').incr('{a}t').get('{a}t').exec(),
    cluster.multi().set('{a}t', 't').incr('{a}t').get('{a}t').exec(),
  ],
  'that are transactions': (cluster) => [
    cluster.multi().set('{a}1', '1').incr('{a}1').getBuffer('{a}1').hgetall('{a}h').exec(),
    cluster.multi([['get', '{a}1']]).exec(),
    cluster.multi().get('{a}1').get('{b}1').exec(),
  ],
};

/** What the host does by itself. */
const COLD: Pipelines = {
  'without a key': (cluster) => [cluster.pipeline().echo('x').echo('y').exec(), cluster.multi().echo('x').exec()],
  'without a command': (cluster) => [cluster.pipeline().exec()],
  'with a command that the client handles, behind fast ones': (cluster) => [
    cluster.pipeline().hset('{a}h', { f: 'é' }).hgetall('{a}h').select(0).getBuffer('{a}n').exec(),
    cluster.multi().hset('{a}h', { f: 1 }).hgetall('{a}h').get('{a}n').select(0).zrange('{a}none', '0', '1').exec(),
  ],
};

describe.each(CLUSTER_HOSTS)('pipelines on a Cluster of $name', (host) => {
  async function run(kind: Kind, pipelines: Pipelines[string], options = {}): Promise<[Outcome[], ClusterClient]> {
    await empty(nodes);
    const cluster = await warm(createCluster(host, kind, nodes, options));
    return [await outcomes(pipelines(cluster) as Promise<unknown>[]), cluster];
  }

  it.each(share(Object.entries(HOT), 2))('%s: as on a plain Cluster', async (_name, pipelines) => {
    for (const options of [{}, { keyPrefix: 'prefix:' }]) {
      const [plain] = await run('plain', pipelines, options);
      const [coalesced, cluster] = await run('coalesced', pipelines, options);
      expect(coalesced).toEqual(plain);
      expect((cluster as CoalescedCluster).coalescer.stats().fastCommands).toBeGreaterThan(1);
    }
  });

  it.each(share(Object.entries(COLD), 2))('%s: as on a plain Cluster', async (_name, pipelines) => {
    const [plain] = await run('plain', pipelines);
    const [coalesced] = await run('coalesced', pipelines);
    expect(coalesced).toEqual(plain);
  });

  it('refused for their keys, then executed when their slots have moved together: as on a plain Cluster', async () => {
    const played = await Promise.all(
      KINDS.map(async (kind) => {
        const cluster = await warm(createCluster(host, kind, nodes));
        const { slots, _groupsBySlot: groups } = cluster as unknown as Record<string, unknown[]>;
        const pipeline = cluster.pipeline().set('a', '1').set('b', '2').set('c', '3');
        const refused = await outcomes([pipeline.exec()]);
        const [before, mastersBefore] = [groups?.slice(), slots?.slice()];
        groups?.fill(groups[0]);
        const again = await outcomesWithin(LONG_ENOUGH, [pipeline.exec()]);
        // Whatever became of it, others get their own replies.
        groups?.splice(0, groups.length, ...(before as unknown[]));
        slots?.splice(0, slots.length, ...(mastersBefore as unknown[]));
        const keys = ['a', 'b', 'c'].map((key) => `${key}${kind}`);
        await outcomes(keys.map((key) => cluster.set(key, key)));
        const others = (await outcomes(keys.map((key) => cluster.get(key)))).map(
          (outcome) => outcome !== 'open' && 'value' in outcome,
        );
        return { refused, again, others };
      }),
    );
    expect(played[1]).toEqual(played[0]);
  });

  it('on a node that is the first one to connect: replies in the form of its protocol', async () => {
    await empty(nodes);
    const keys = ['a', 'b', 'c'];
    const played = await Promise.all(
      KINDS.map((kind) =>
        outcomes(
          keys.map(async (key) => {
            const cluster = createCluster(host, kind, nodes, { enableReadyCheck: false });
            await until(() => cluster.status === 'ready', 'a ready Cluster');
            const connected = cluster.nodes().filter(({ status }) => status !== 'wait').length;
            const scored = `${kind}${key}`;
            const pipeline = cluster.pipeline().zadd(scored, '1.5', 'm').zrange(scored, '0', '-1', 'WITHSCORES');
            return [connected, await pipeline.exec()];
          }),
        ),
      ),
    );
    expect(played[1]).toEqual(played[0]);
    expect(played[0]).toEqual(
      keys.map(() => ({
        value: [
          0,
          [
            [null, 1],
            [null, ['m', '1.5']],
          ],
        ],
      })),
    );
  });

  it.each(['single', 'pipeline', 'multi'] as const)(
    'of a view, aborted as redirected (%s): rejected once, and executed',
    async (kind) => {
      await empty(nodes);
      const unhandled = collectUncaught('unhandledRejection');
      const cluster = (await warm(createCluster(host, 'coalesced', nodes))) as CoalescedCluster;
      const controller = new AbortController();
      const reason = new Error('the caller has gone');
      const view = cluster.coalescer.withOptions({ signal: controller.signal }) as ClusterClient;
      const { slots } = cluster as unknown as { slots: string[][] };
      const masters = [...new Set(slots.map(([master]) => master as string))];
      for (const keys of slots) keys[0] = masters[(masters.indexOf(keys[0] as string) + 1) % masters.length] as string;
      // Called before the pipeline is sent again.
      cluster.refreshSlotsCache = () => controller.abort(reason);
      const call = kind === 'single' ? view.set('{a}1', 'v') : view[kind]().set('{a}1', 'v').exec();
      await expect(call).rejects.toBe(reason);
      await until(async () => (await cluster.get('{a}1')) === 'v', 'an executed SET', 5_000);
      expect(unhandled).toEqual([]);
    },
  );

  it('are left to the client when replicas may be read from', async () => {
    await empty(nodes);
    const cluster = (await warm(createCluster(host, 'coalesced', nodes, { scaleReads: 'all' }))) as CoalescedCluster;
    const before = cluster.coalescer.stats();
    expect(await cluster.pipeline().get('{a}1').exec()).toEqual([[null, null]]);
    const after = cluster.coalescer.stats();
    expect(after.fastCommands - before.fastCommands).toBe(0);
    expect(after.fallbacks.routing - before.fallbacks.routing).toBe(1);
  });
});

/** What a node says to a command on a key, the n-th time that it is asked. */
type Say = (times: number, there: string) => string | undefined;

const value: Say = () => bulk('value');
const once =
  (first: Say): Say =>
  (times, there) =>
    (times === 1 ? first : value)(times, there);
const says =
  (message: string): Say =>
  (_times, there) =>
    `-${message.replace('THERE', there)}\r\n`;

/** By key: how the node that owns all slots answers, and how the other one does. */
type Story = Readonly<Record<string, readonly [owner: Say, other: Say]>>;

const STORIES: Readonly<Record<string, Story>> = {
  'MOVED, all of them': { a: [says('MOVED 1 THERE'), value], b: [says('MOVED 1 THERE'), value] },
  'MOVED, one of them': { a: [value, value], b: [says('MOVED 1 THERE'), value] },
  'MOVED without end': { a: [says('MOVED 1 THERE'), says('MOVED 1 THERE')], b: [value, value] },
  'ASK, all of them': { a: [says('ASK 1 THERE'), value], b: [says('ASK 1 THERE'), value] },
  'ASK and another error': { a: [says('ASK 1 THERE'), value], b: [says('ERR no'), value] },
  TRYAGAIN: { a: [once(says('TRYAGAIN later')), value], b: [value, value] },
  CLUSTERDOWN: { a: [once(says('CLUSTERDOWN not served')), value], b: [value, value] },
  'errors that are no redirections': { a: [says('ERR x'), value], b: [says('WRONGTYPE y'), value] },
  'a connection that closes before a reply': { a: [once(() => 'close'), value], b: [value, value] },
  'a connection that closes between two replies': { a: [value, value], b: [once(() => 'close'), value] },
};

const SENT: Readonly<Record<string, (cluster: ClusterClient) => Promise<unknown>>> = {
  'a pipeline of reads': (cluster) => cluster.pipeline().get('{x}a').get('{x}b').exec(),
  'a pipeline with a write': (cluster) => cluster.pipeline().set('{x}a', '1').get('{x}b').exec(),
  'a transaction': (cluster) => cluster.multi().get('{x}a').get('{x}b').exec() as Promise<unknown>,
};

describe.each(CLUSTER_HOSTS)('redirections of pipelines on a Cluster of $name', (host) => {
  it.each(share(Object.entries(STORIES), 2))('%s: as on a plain Cluster', async (_name, story) => {
    for (const [name, send] of Object.entries(SENT)) {
      const [plain, coalesced] = await Promise.all(KINDS.map((kind) => play(host, kind, story, send)));
      expect({ [name]: coalesced?.outcome }).toEqual({ [name]: plain?.outcome });
      expect({ [name]: coalesced?.asked }).toEqual({ [name]: plain?.asked });
      expect(coalesced?.fast).toBeGreaterThan(1);
    }
  });
});

describe.each(CLUSTER_HOSTS)('commandTimeout of pipelines on a Cluster of $name', (host) => {
  const silent: Say = () => undefined;
  const moved = says('MOVED 1 THERE');

  it.each(Object.entries(SENT).slice(0, 2))('%s that a silent node is asked again times out', async (_name, send) => {
    const story: Story = { a: [moved, silent], b: [moved, silent] };
    const errors = async (cluster: ClusterClient) =>
      ((await send(cluster)) as [Error | null][]).map(([error]) => error?.message);
    const [plain, coalesced] = await Promise.all(
      KINDS.map((kind) => play(host, kind, story, errors, { redisOptions: { commandTimeout: 1_000 } })),
    );
    expect(plain?.outcome).toEqual({ value: ['Command timed out', 'Command timed out'] });
    expect(coalesced?.outcome).toEqual(plain?.outcome);
    expect(coalesced?.fast).toBeGreaterThan(1);
  });
});

type Played = { readonly outcome: Outcome | undefined; readonly asked: readonly string[]; readonly fast: number };

/** Sends a pipeline to a Cluster of two nodes, of which the first owns all slots. */
async function play(
  host: ClusterHost,
  kind: Kind,
  story: Story,
  send: (cluster: ClusterClient) => Promise<unknown>,
  options: ClusterOptions = {},
): Promise<Played> {
  const ports: number[] = [];
  const address = (index: number) => `127.0.0.1:${ports[index]}`;
  const servers = await Promise.all(
    [0, 1].map((index) => startScriptedServer(nodeScript(story, index as 0 | 1, address))),
  );
  for (const { url } of servers) ports.push(Number(new URL(url).port));
  const startupNodes = [{ host: '127.0.0.1', port: ports[0] as number }];
  const cluster = createCluster(host, kind, { startupNodes } as unknown as RedisCluster, {
    retryDelayOnTryAgain: 5,
    retryDelayOnClusterDown: 5,
    retryDelayOnFailover: 5,
    slotsRefreshTimeout: 2_000,
    ...options,
  });
  await until(() => cluster.status === 'ready', 'a ready Cluster');
  // Nodes connect when they get their first command.
  await cluster.get('warm');
  const [outcome] = await outcomes([send(cluster)]);
  const asked = servers.flatMap(({ commands }) =>
    commands.filter(([name, key]) => /^(asking|get|set|multi|exec)$/.test(name ?? '') && key !== 'warm'),
  );
  return {
    outcome: JSON.parse(JSON.stringify(outcome).replaceAll(/127\.0\.0\.1:\d+/g, 'a node')),
    // TRYAGAIN and CLUSTERDOWN are tried again at any node.
    asked: asked.map((command) => command.join(' ')).sort(),
    fast: kind === 'plain' ? 0 : (cluster as CoalescedCluster).coalescer.stats().fastCommands,
  };
}

function nodeScript(story: Story, index: 0 | 1, address: (index: number) => string): Script {
  const times = new Map<string, number>();
  const queued = new Map<number, (string | undefined)[]>();
  return (command, connection) => {
    const [name = '', key = ''] = command;
    const transaction = queued.get(connection);
    if (name === 'cluster') return key.toLowerCase() === 'slots' ? slots(address) : bulk('cluster_state:ok\r\n');
    if (name === 'asking') return '+OK\r\n';
    if (name === 'multi') {
      queued.set(connection, []);
      return '+OK\r\n';
    }
    if (name === 'exec') {
      queued.delete(connection);
      return transaction?.includes(undefined)
        ? '-EXECABORT Transaction discarded because of previous errors.\r\n'
        : `*${transaction?.length}\r\n${transaction?.join('')}`;
    }
    if (name !== 'get' && name !== 'set') return handshake(command);
    if (key === 'warm') return bulk('up');
    times.set(key, (times.get(key) ?? 0) + 1);
    const reply = story[key.slice(-1)]?.[index](times.get(key) as number, address(1 - index));
    if (transaction === undefined || reply === 'close') return reply;
    const refused = reply?.startsWith('-') === true;
    transaction.push(refused ? undefined : reply);
    return refused ? reply : '+QUEUED\r\n';
  };
}

/** All slots are the first node's; the second one is known for one slot, which no key has. */
function slots(address: (index: number) => string): string {
  const entry = (from: number, to: number, index: number) => {
    const [host = '', port] = address(index).split(':');
    return `*3\r\n:${from}\r\n:${to}\r\n*2\r\n${bulk(host)}:${port}\r\n`;
  };
  return `*2\r\n${entry(0, 16382, 0)}${entry(16383, 16383, 1)}`;
}
