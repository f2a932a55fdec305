/**
 * Random programs of fused reads and split keys while slots move, views of the Cluster are old, and connections break.
 */
import calculateSlot from 'cluster-key-slot';
import fc from 'fast-check';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { expect, it } from 'vitest';
import { type ClusterNode, type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { type ClusterClient, ioredis5, ioredis6, iovalkey, warm } from '../helpers/cluster/clients.js';
import { canonical } from '../helpers/fidelity/canonical.js';
import { describePrograms, programsOf } from '../helpers/fidelity/profiles.js';
import { LONG_ENOUGH, outcomesWithin } from '../helpers/hosts.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_FUSE');

const PROGRAMS = programsOf('MOVING', 5);

const TAGS = ['{one}', '{two}'] as const;
const KEYS = [...TAGS.flatMap((tag) => ['a', 'b', 'é', '7'].map((name) => `${tag}${name}`)), 'x', 'y', 'ключ'];
const HASH = '{one}h';

type Tag = (typeof TAGS)[number];
type Change =
  /** `begin` and `keys`: a slot moves; `view`: the client looks for it at another node. */
  | { readonly kind: 'begin' | 'view'; readonly tag: Tag }
  | { readonly kind: 'keys'; readonly tag: Tag; readonly keys: readonly string[] }
  | { readonly kind: 'rule'; readonly rule: string };
type Call = readonly [
  name: 'get' | 'getBuffer' | 'hget' | 'set' | 'del' | 'mget' | 'mset' | 'dels' | 'exists',
  ...keys: string[],
];
type Turn = { readonly before: readonly Change[]; readonly calls: readonly Call[]; readonly breaks: boolean };

const tag = fc.constantFrom(...TAGS);
const key = fc.constantFrom(...KEYS, ...KEYS.slice(0, 4), '{one}none');
const keys = fc.array(key, { minLength: 1, maxLength: 5 });
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('begin' as const), tag }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('keys' as const), tag, keys }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('view' as const), tag }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('rule' as const),
      rule: fc.constantFrom('-mget', '+mget', '-hmget', '+hmget'),
    }),
  },
);
const read: fc.Arbitrary<Call> = fc.oneof(
  { weight: 6, arbitrary: key.map((k): Call => ['get', k]) },
  { weight: 1, arbitrary: key.map((k): Call => ['getBuffer', k]) },
  { weight: 2, arbitrary: fc.constantFrom('f', 'g', 'é').map((field): Call => ['hget', HASH, field]) },
  { weight: 2, arbitrary: keys.map((all): Call => ['mget', ...all]) },
  { weight: 1, arbitrary: keys.map((all): Call => ['exists', ...all]) },
);
const write: fc.Arbitrary<Call> = fc.oneof(
  { weight: 3, arbitrary: key.map((k): Call => ['set', k]) },
  { weight: 1, arbitrary: key.map((k): Call => ['del', k]) },
  { weight: 1, arbitrary: keys.map((all): Call => ['mset', ...all]) },
  { weight: 1, arbitrary: keys.map((all): Call => ['dels', ...all]) },
);
const turn: fc.Arbitrary<Turn> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      before: fc.array(change, { maxLength: 3, size: 'max' }),
      calls: fc.array(fc.oneof({ weight: 6, arbitrary: read }, { weight: 1, arbitrary: write }), {
        minLength: 1,
        maxLength: 16,
        size: 'max',
      }),
      breaks: fc.constant(false),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      before: fc.array(change, { maxLength: 2 }),
      calls: fc.array(read, { minLength: 1, maxLength: 10, size: 'max' }),
      breaks: fc.constant(true),
    }),
  },
);
const programs = fc.array(turn, { minLength: 1, maxLength: 6, size: 'max' });

/** A Cluster's nodes, and which slots move. */
class World {
  readonly #moving = new Map<Tag, { from: ClusterNode; to: ClusterNode }>();
  readonly #owners = new Map<number, ClusterNode>();
  #masters: ClusterNode[] = [];
  /** Whether the user may. */
  mayMget = true;

  private constructor(readonly nodes: RedisCluster) {}

  static async start(): Promise<World> {
    const world = new World(await startCluster({ masters: 3, replicas: 0 }));
    world.#masters = await world.nodes.masters();
    for (const each of [...KEYS, ...TAGS]) {
      const slot = calculateSlot(each);
      world.#owners.set(slot, await world.nodes.masterOf(slot));
    }
    for (const { client } of world.#masters) await client.call('CONFIG', 'SET', 'cluster-allow-reads-when-down', 'yes');
    return world;
  }

  async reset(): Promise<void> {
    for (const each of TAGS) await this.#stop(each);
    await this.#onAll('ACL', 'SETUSER', 'user', 'reset', 'on', 'nopass', 'allkeys', '&*', '+@all');
    this.mayMget = true;
    await this.#onAll('FLUSHALL');
    for (const each of KEYS) await this.#owner(each).client.set(each, `${each}#0`);
    await this.#owner(HASH).client.hset(HASH, { f: `${HASH}/f#0`, é: `${HASH}/é#0` });
  }

  #owner(of: string): ClusterNode {
    return this.#owners.get(calculateSlot(of)) as ClusterNode;
  }

  async #onAll(...command: [string, ...string[]]): Promise<void> {
    for (const { client } of this.#masters) await client.call(...command);
  }

  async #stop(of: Tag): Promise<void> {
    const moving = this.#moving.get(of);
    this.#moving.delete(of);
    for (const node of moving ? [moving.from, moving.to] : []) {
      await node.client.call('CLUSTER', 'SETSLOT', calculateSlot(of), 'STABLE');
    }
  }

  async apply(one: Change, cluster: ClusterClient): Promise<void> {
    if (one.kind === 'rule') {
      if (one.rule.endsWith('mget') && !one.rule.endsWith('hmget')) this.mayMget = one.rule === '+mget';
      return this.#onAll('ACL', 'SETUSER', 'user', one.rule);
    }
    const slot = calculateSlot(one.tag);
    const from = this.#owner(one.tag);
    const to = this.#masters[(this.#masters.indexOf(from) + 1) % 3] as ClusterNode;
    const moving = this.#moving.get(one.tag);
    if (one.kind === 'view') {
      const { slots } = cluster as unknown as { slots: string[][] };
      slots[slot] = [to.address];
    } else if (one.kind === 'begin' && moving === undefined) {
      this.#moving.set(one.tag, { from, to });
      await this.nodes.beginMove(slot, from, to);
    } else if (one.kind === 'keys' && moving !== undefined) {
      const own = one.keys.filter((name) => name.startsWith(one.tag));
      if (own.length > 0) await this.nodes.moveKeys(slot, from, to, [...new Set(own)]);
    }
  }

  moves(name: string): boolean {
    return TAGS.some((each) => name.startsWith(each) && this.#moving.has(each));
  }

  stop = () => this.nodes.stop();
}

/** What the calls of a program came to; a call of several keys, on a plain Cluster, as calls of one. */
async function run(world: World, cluster: ClusterClient, program: readonly Turn[], isPlain: boolean) {
  const found: { call: string; mayBeLate: boolean; outcome: string }[] = [];
  let writes = 0;
  for (const { before, calls, breaks } of program) {
    for (const one of before) await world.apply(one, cluster);
    const sent = calls.map((call) => answerable(call, world));
    const pending = sent.map(([name, ...of]) => {
      writes += 1;
      return made(cluster, name, of, isPlain || (name === 'mget' && !world.mayMget), writes);
    });
    if (breaks) {
      for (const node of cluster.nodes('all')) (node as unknown as { stream: { destroy(): void } }).stream?.destroy();
    }
    const outcomes = await outcomesWithin(LONG_ENOUGH, pending);
    for (const [at, outcome] of outcomes.entries()) {
      const [name, ...of] = sent[at] as Call;
      const keys = name === 'mget' ? of : of.slice(0, 1);
      const isWritten = sent
        .slice(at + 1)
        .some(([later, ...those]) => /set|del/.test(later) && keys.some((one) => those.includes(one)));
      // Reads whose MGET is refused are sent again, behind what this client wrote meanwhile (docs/api.md, `fuseReads`).
      const isRefused =
        name === 'mget' ? !world.mayMget : /^h?get/.test(name) && (!world.mayMget || world.moves(of[0] ?? ''));
      found.push({
        call: canonical(calls[at]),
        mayBeLate: isWritten && isRefused,
        outcome: canonical(outcome),
      });
    }
    if (outcomes.includes('open')) break;
  }
  return found;
}

/** Redis answers a command of several keys with TRYAGAIN as long as their slot moves: it is made without these. */
function answerable([name, ...of]: Call, world: World): Call {
  const kept = /^(mget|mset|dels|exists)$/.test(name) ? of.filter((each) => !world.moves(each)) : of;
  return kept.length === 0 ? ['get', 'x'] : [name, ...kept];
}

async function made(cluster: ClusterClient, name: Call[0], of: string[], isPlain: boolean, count: number) {
  const value = (each: string) => `${each}#${count}`;
  const all = <T>(each: (one: string) => Promise<T>) => Promise.all(of.map(each));
  const sum = (replies: number[]) => replies.reduce((before, reply) => before + reply, 0);
  const [first = '', second = ''] = of;
  switch (name) {
    case 'set':
      return cluster.set(first, value(first));
    case 'hget':
      return cluster.hget(first, second);
    case 'mget':
      return isPlain ? all((each) => cluster.get(each)) : cluster.mget(...of);
    case 'exists':
      return isPlain ? sum(await all((each) => cluster.exists(each))) : cluster.exists(...of);
    case 'dels':
      return isPlain ? sum(await all((each) => cluster.del(each))) : cluster.del(...of);
    case 'mset':
      if (!isPlain) return cluster.mset(...of.flatMap((each) => [each, value(each)]));
      await all((each) => cluster.set(each, value(each)));
      return 'OK';
    default:
      return cluster[name](first);
  }
}

/** Neither goes on in the background when the other one has failed. */
async function bothOf<T>(both: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(both);
  return Promise.all(both);
}

const OPTIONS: readonly CoalesceOptions[] = [{}, { shareReads: true }, { maxInFlight: 3 }];
const connecting = {
  redisOptions: { username: 'user', password: 'any' },
  clusterRetryStrategy: () => 1,
  retryDelayOnTryAgain: 5,
  retryDelayOnFailover: 5,
  retryDelayOnMoved: 0,
  enableReadyCheck: true,
};

let total = 0;

describePrograms({
  name: 'moving programs',
  expects: '%s: fused reads and split keys are as reads of single keys on a plain Cluster',
  cases: [ioredis6, ioredis5, iovalkey].flatMap((host) =>
    OPTIONS.map((options) => [`${host.name}, ${JSON.stringify(options)}`, { host, options }] as const),
  ),
  programs,
  runs: PROGRAMS,
  start: async () => ({ plain: await World.start(), fused: await World.start() }),
  stop: async ({ plain, fused }) => {
    await plain.stop();
    await fused.stop();
  },
  prepare: async (worlds, { host, options }) => {
    await Promise.all([worlds.plain.reset(), worlds.fused.reset()]);
    const coalesceOptions = { fuseReads: true, splitKeys: true, ...options };
    const plain = await warm(host.create(worlds.plain.nodes, connecting));
    const fused = await warm(host.createCoalesced(worlds.fused.nodes, connecting, coalesceOptions));
    const compare = async (program: readonly Turn[]) => {
      const [theirs = [], mine = []] = await bothOf(
        (['plain', 'fused'] as const).map(async (kind) => {
          const client = kind === 'plain' ? plain : fused;
          await worlds[kind].reset();
          await Promise.all([client.get('{one}unused'), client.hget('{one}unused', 'f')]);
          return run(worlds[kind], client, program, kind === 'plain');
        }),
      );
      const wrong = mine.flatMap(({ call, outcome, mayBeLate }, at) => {
        const expected = theirs[at]?.outcome;
        const isRight = outcome === expected || (mayBeLate && /^\{"value": (null|"|\[)/.test(outcome));
        return isRight ? [] : [`${call}: ${expected} / ${outcome}`];
      });
      expect(wrong.join('\n')).toBe('');
      expect(mine.length).toBe(theirs.length);
    };
    const end = () => {
      const { fusedReads, inFlight } = fused.coalescer.stats();
      total += fusedReads;
      expect(inFlight).toBe(0);
    };
    return [compare, end];
  },
});

// Over all variants: the few programs of one may have none.
it('reads were fused', () => {
  console.log(`moving programs: ${9 * PROGRAMS} programs, ${total} fused reads`);
  expect(total).toBeGreaterThan(0);
});
