import { once } from 'node:events';
import calculateSlot from 'cluster-key-slot';
import type { ClusterOptions } from 'ioredis';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ClusterNode, type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { KINDS } from '../helpers/beside.js';
import { CLUSTER_HOSTS, type ClusterClient, type Kind, warm } from '../helpers/cluster/clients.js';
import { commandCounts, empty, resetCommandCounts } from '../helpers/cluster/run-program.js';
import { cold } from '../helpers/cold.js';
import { type Outcome, outcomes } from '../helpers/hosts.js';

/** All keys with the tag are in the slot that moves; the neighbours are all over the cluster. */
const TAG = '{moving}';
const SLOT = calculateSlot(TAG);
const MOVING = Array.from({ length: 20 }, (_, index) => `${TAG}${index}`);
const NEIGHBOURS = Array.from({ length: 80 }, (_, index) => `neighbour:${index}`);
/** A moving key after every four neighbours. */
const MIXED = NEIGHBOURS.flatMap((key, index) => (index % 4 === 3 ? [key, MOVING[(index - 3) / 4] as string] : [key]));

/**
 * One for each kind of client, so that both run at the same time: a moved slot takes a second to be known everywhere.
 */
let clusters: Readonly<Record<Kind, RedisCluster>>;

beforeAll(async () => {
  const [plain, coalesced] = await Promise.all(KINDS.map(() => startCluster({ masters: 3, replicas: 0 })));
  clusters = { plain, coalesced } as typeof clusters;
});
afterAll(() => Promise.all(Object.values(clusters ?? {}).map((nodes) => nodes.stop())));

/** The drop-in class is that of ioredis 6; `basic.test.ts` has it. */
const HOSTS = CLUSTER_HOSTS.filter(({ name }) => name !== 'drop-in class');

interface Situation {
  readonly nodes: RedisCluster;
  readonly cluster: ClusterClient;
  /** Where the slot is, and where it could go. */
  readonly from: ClusterNode;
  readonly to: ClusterNode;
}

/**
 * Runs a scenario with a plain and a coalesced client, each of which knows where all slots are, and expects the same.
 * @returns what it came to.
 */
async function compare<T>(
  host: (typeof CLUSTER_HOSTS)[number],
  scenario: (situation: Situation) => Promise<T>,
  options: ClusterOptions = {},
  coalesceOptions: CoalesceOptions = {},
): Promise<T> {
  const run = async (kind: Kind): Promise<T> => {
    const nodes = clusters[kind];
    await empty(nodes);
    const from = await nodes.masterOf(SLOT);
    const to = (await nodes.masters()).find(({ id }) => id !== from.id) as ClusterNode;
    const cluster = await warm(
      kind === 'plain' ? host.create(nodes, options) : host.createCoalesced(nodes, options, coalesceOptions),
    );
    await Promise.all(MIXED.map((key) => cluster.set(key, `of ${key}`)));
    await resetCommandCounts(nodes);
    try {
      const found = await scenario({ nodes, cluster, from, to });
      if ('coalescer' in cluster) {
        const { fastCommands, inFlight } = (cluster as ReturnType<typeof host.createCoalesced>).coalescer.stats();
        // Else this would compare a plain client with a plain one.
        expect(fastCommands).toBeGreaterThan(MIXED.length);
        expect(inFlight).toBe(0);
      }
      return found;
    } finally {
      cluster.disconnect();
    }
  };
  const [plain, coalesced] = await Promise.all([run('plain'), run('coalesced')]);
  expect(coalesced).toEqual(plain);
  return plain;
}

const readAll = (cluster: ClusterClient): Promise<Outcome[]> => outcomes(MIXED.map((key) => cluster.get(key)));
const VALUES = MIXED.map((key) => ({ value: `of ${key}` }));

/** ioredis tries again at a random node, so the last of several errors is the one of the slot's state or a MOVED. */
function withoutChance(outcome: Outcome): Outcome {
  if (typeof outcome === 'string' || 'value' in outcome) return outcome;
  return { ...outcome, error: outcome.error.replace(/ReplyError: (TRYAGAIN|CLUSTERDOWN|MOVED) .*/, 'one of these') };
}

describe.each(HOSTS)('Redirections of a Cluster of $name', (host) => {
  it('MOVED: only the commands of the moved slot are sent again, each by itself', async () => {
    const found = await compare(host, async ({ nodes, cluster, from, to }) => {
      await nodes.moveSlots(from, to, [SLOT]);
      const refreshed = once(cluster, 'refresh');
      const replies = await readAll(cluster);
      const reads = await commandCounts(nodes, 'get');
      // Host: a slot range shares one array of nodes (ioredis cluster/index.js), so until the slots are read again a
      // MOVED for one slot redirects all of its range.
      await refreshed;
      const again = await readAll(cluster);
      return { replies, reads, again, later: await commandCounts(nodes, 'get') };
    });
    expect(found.replies).toEqual(VALUES);
    expect(found.again).toEqual(VALUES);
    expect(found.reads).toMatchObject({ calls: MIXED.length, rejected_calls: MOVING.length });
    // By then the client knows.
    expect(found.later).toMatchObject({ calls: 2 * MIXED.length, rejected_calls: MOVING.length });
  });

  it('MOVED: of identical reads, that of the Cluster is redirected, and that of a node is not', async () => {
    const found = await compare(
      host,
      async ({ cluster, to }) => {
        const node = cluster
          .nodes('master')
          .find(({ options }) => options.port === to.port) as unknown as ClusterClient;
        const read = async (...readers: Pick<ClusterClient, 'get'>[]) => {
          (cluster as unknown as { slots: string[][] }).slots[SLOT] = [to.address];
          const all = await outcomes(readers.map((reader) => reader.get(MOVING[0] as string)));
          return all.map((each) => /MOVED|of /.exec(JSON.stringify(each))?.[0]);
        };
        return [await read(node, cluster), await read(cluster, node)];
      },
      {},
      { shareReads: true },
    );
    expect(found).toEqual([
      ['MOVED', 'of '],
      ['of ', 'MOVED'],
    ]);
  });

  it('MOVED: writes, other commands, pipelines and transactions are redirected as on a plain Cluster', async () => {
    const found = await compare(host, async ({ nodes, cluster, from, to }) => {
      await nodes.moveSlots(from, to, [SLOT]);
      const [a = '', b = '', c = '', d = ''] = MOVING;
      const replies = await outcomes([
        cluster.append(a, '!'),
        cluster.append(NEIGHBOURS[0] as string, '!'),
        cold(cluster, 'strlen', b),
        cluster.eval("return redis.call('get', KEYS[1])", 1, c),
        cluster.pipeline().get(a).append(d, '?').exec(),
        cluster.multi().get(a).append(d, '?').exec(),
        cluster.hget(b, 'field'),
        cluster.getBuffer(c),
        cluster.mget(b, c),
        cluster.incr(`${TAG}counter`),
      ]);
      return { replies, counts: await commandCounts(nodes, 'append'), counter: await cluster.get(`${TAG}counter`) };
    });
    expect(found.counter).toBe('1');
  });

  it('ASK: keys that have moved already are read from the other node, and the slot map stays the same', async () => {
    const gone = MOVING.slice(0, 12);
    const found = await compare(host, async ({ nodes, cluster, from, to }) => {
      await nodes.beginMove(SLOT, from, to);
      await nodes.moveKeys(SLOT, from, to, gone);
      const replies = await readAll(cluster);
      const reads = await commandCounts(nodes, 'get');
      const asking = await commandCounts(nodes, 'asking');
      const rest = await outcomes([
        cluster.get(`${TAG}never was`),
        cluster.set(`${TAG}new`, 'goes to the other node'),
        cluster.get(`${TAG}new`),
        cluster.incr(gone[0] as string),
        cluster.get(MOVING[15] as string),
      ]);
      await nodes.moveKeys(SLOT, from, to);
      await nodes.finishMove(SLOT, to);
      return { replies, reads, asking, rest, after: await readAll(cluster) };
    });
    expect(found.replies).toEqual(VALUES);
    expect(found.after).toEqual(VALUES);
    expect(found.reads).toMatchObject({ calls: MIXED.length, rejected_calls: gone.length });
    expect(found.asking).toMatchObject({ calls: gone.length });
  });

  it('TRYAGAIN: a command with several keys is repeated until all of them have moved', async () => {
    const found = await compare(
      host,
      async ({ nodes, cluster, from, to }) => {
        await nodes.beginMove(SLOT, from, to);
        await nodes.moveKeys(SLOT, from, to, MOVING.slice(0, 10));
        const [here = '', there = '', otherHere = '', otherThere = ''] = [15, 0, 16, 1].map((index) => MOVING[index]);
        const torn = outcomes([
          cluster.mget(here, there),
          cluster.exists(there, here),
          cluster.mset(otherHere, '1', otherThere, '2'),
        ]);
        const neighbours = await readAll(cluster);
        const refused = await Promise.all(['mget', 'exists', 'mset'].map((name) => commandCounts(nodes, name)));
        expect(refused.every(({ calls, rejected_calls }) => calls === 0 && Number(rejected_calls) > 0)).toBe(true);
        await nodes.moveKeys(SLOT, from, to);
        await nodes.finishMove(SLOT, to);
        const replies = await torn;
        const counts = await Promise.all(['mget', 'exists', 'mset'].map((name) => commandCounts(nodes, name)));
        return {
          neighbours,
          replies,
          calls: counts.map(({ calls }) => calls),
          after: await cluster.mget(otherHere, otherThere),
        };
      },
      { retryDelayOnTryAgain: 20, maxRedirections: 1_000 },
    );
    expect(found.neighbours).toEqual(VALUES);
    expect(found.calls).toEqual([1, 1, 1]);
    expect(found.after).toEqual(['1', '2']);
  });

  it('TRYAGAIN: a command gives up after maxRedirections, with the same error', async () => {
    const found = await compare(
      host,
      async ({ nodes, cluster, from, to }) => {
        await nodes.beginMove(SLOT, from, to);
        await nodes.moveKeys(SLOT, from, to, MOVING.slice(0, 10));
        const [here = '', there = ''] = [MOVING[15], MOVING[0]];
        const replies = (await outcomes([cluster.mget(here, there), cluster.mget(there, here), cluster.get(here)])).map(
          withoutChance,
        );
        const counts = await commandCounts(nodes, 'mget');
        await nodes.moveKeys(SLOT, from, to);
        await nodes.finishMove(SLOT, to);
        return { replies, counts };
      },
      { retryDelayOnTryAgain: 5, maxRedirections: 3 },
    );
    expect(found.replies[0]).toMatchObject({
      error: 'Error/Error: Too many Cluster redirections. Last error: one of these',
    });
    expect(found.replies[2]).toEqual({ value: `of ${MOVING[15]}` });
    expect(found.counts).toMatchObject({ calls: 0 });
  });

  it.each([
    ['of one slot that nobody serves', 'no', MOVING.length],
    ['of all slots of a node that wants full coverage', 'yes', undefined],
  ])('CLUSTERDOWN %s: commands are tried again until it is up', async (_, coverage, refused) => {
    const found = await compare(
      host,
      async ({ nodes, cluster, from }) => {
        await from.client.config('SET', 'cluster-require-full-coverage', coverage);
        await from.client.call('CLUSTER', 'DELSLOTS', SLOT);
        await expect
          .poll(() => from.client.call('CLUSTER', 'INFO'))
          .toContain(`cluster_state:${coverage === 'no' ? 'ok' : 'fail'}`);
        const pending = MIXED.map((key) => cluster.append(key, '!'));
        const replies = outcomes(pending);
        const moving = Promise.race(MOVING.map((key) => pending[MIXED.indexOf(key)]));
        const first = await Promise.race([moving.then(() => 'answered'), rejections(nodes, refused ?? 1)]);
        await from.client.call('CLUSTER', 'ADDSLOTS', SLOT);
        const values = await replies;
        const { calls } = await commandCounts(nodes, 'append');
        await from.client.config('SET', 'cluster-require-full-coverage', 'yes');
        return { first, values, calls };
      },
      { retryDelayOnClusterDown: 50, maxRedirections: 1_000, slotsRefreshTimeout: 5_000 },
    );
    expect(found.first).toBe('refused');
    // Each was carried out exactly once.
    expect(found.values).toEqual(MIXED.map((key) => ({ value: `of ${key}!`.length })));
    expect(found.calls).toBe(MIXED.length);
  });

  it('CLUSTERDOWN: a command gives up after maxRedirections, with the same error; others are answered', async () => {
    const found = await compare(
      host,
      async ({ cluster, from }) => {
        await from.client.config('SET', 'cluster-require-full-coverage', 'no');
        await from.client.call('CLUSTER', 'DELSLOTS', SLOT);
        const replies = (await readAll(cluster)).map(withoutChance);
        await from.client.call('CLUSTER', 'ADDSLOTS', SLOT);
        await from.client.config('SET', 'cluster-require-full-coverage', 'yes');
        return { replies, after: await readAll(cluster) };
      },
      { retryDelayOnClusterDown: 5, maxRedirections: 3, slotsRefreshTimeout: 5_000 },
    );
    expect(found.replies.filter((reply) => typeof reply === 'object' && 'error' in reply)).toHaveLength(MOVING.length);
    expect(found.after).toEqual(VALUES);
  });
});

/** Resolves once the servers have refused `count` APPENDs. */
async function rejections(nodes: RedisCluster, count: number): Promise<'refused'> {
  await expect
    .poll(async () => Number((await commandCounts(nodes, 'append')).rejected_calls), { timeout: 10_000, interval: 5 })
    .toBeGreaterThanOrEqual(count);
  return 'refused';
}
