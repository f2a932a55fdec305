import { getEventListeners } from 'node:events';
import type { Socket } from 'node:net';
import calculateSlot from 'cluster-key-slot';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { type CallOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type ClusterNode, type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { CLUSTER_HOSTS, type ClusterHost, type CoalescedCluster, warm } from '../helpers/cluster/clients.js';
import { commandCounts, empty, resetCommandCounts } from '../helpers/cluster/run-program.js';
import { type Client, HOSTS, type Host, outcomes, ready } from '../helpers/hosts.js';
import { type RedisServer, startServer } from '../helpers/redis.js';
import { share } from '../helpers/share.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';
import { collectUncaught } from '../helpers/uncaught.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_AUTO_PIPELINING', 'COALESCE_WARN_REPLACED');

const reason = new Error('the caller has gone');
const SPLIT = { splitKeys: true };
const KEYS = Array.from({ length: 12 }, (_, index) => `key:${index}`);

/** What a call may be made of: a method and its arguments. */
type Call = readonly [method: string, ...args: unknown[]];

let nodes: RedisCluster;
/** Takes keys of any slot in one command, so it shows what a call over several slots has to give. */
let single: RedisServer;

beforeAll(async () => {
  nodes = await startCluster({ masters: 3, replicas: 0 });
  single = await startServer();
});
afterAll(async () => {
  await nodes?.stop();
  await single?.stop();
});

const invoke = (client: object, [method, ...args]: Call): Promise<unknown> =>
  (client as Record<string, (...args: readonly unknown[]) => Promise<unknown>>)[method]?.(...args) as Promise<unknown>;

/** Runs the calls one after the other. */
async function run(client: object, calls: readonly Call[]) {
  const found = [];
  for (const call of calls) found.push(...(await outcomes([invoke(client, call)])));
  return found;
}

const hostOf = ({ name }: ClusterHost): Host => HOSTS.find((host) => host.name === name) ?? (HOSTS[0] as Host);

async function emptyAll(plain: Client): Promise<void> {
  await empty(nodes);
  await plain.flushall();
}

const CALLS: Readonly<Record<string, readonly Call[]>> = {
  'keys as arguments': [
    ['mset', 'a', '1', 'b', '2', 'c', '3', 'd', 'é'],
    ['mget', 'd', 'none', 'a', 'c', 'b'],
    ['exists', 'a', 'b', 'none', 'c'],
    ['touch', 'a', 'none', 'b'],
    ['del', 'a', 'none', 'b'],
    ['unlink', 'b', 'c', 'd'],
    ['mget', 'a', 'b', 'c', 'd'],
  ],
  'arrays of keys': [
    ['mset', ['a', 1, 'b', 2, 'c', 3]],
    ['mget', ['c', 'none', 'a', 'b']],
    ['mget', ['c', 'none'], 'a', ['b']],
    ['exists', ['a', 'b', 'none']],
    ['del', ['a', 'b', 'c']],
  ],
  'objects and Maps of pairs': [
    ['mset', { a: 1, b: 'two', c: Buffer.from([0, 255]) }],
    ['mgetBuffer', 'a', 'b', 'c'],
    [
      'mset',
      new Map<unknown, unknown>([
        ['a', 'x'],
        [7, 'y'],
      ]),
    ],
    ['mget', 'a', 7, '7'],
  ],
  'the same key more than once': [
    ['mset', 'a', 1, 'b', 2, 'a', 3, 'c', 4, 'b', 5],
    ['mget', 'a', 'b', 'a', 'c', 'b', 'a'],
    ['exists', 'a', 'b', 'a', 'a'],
    ['del', 'a', 'b', 'a'],
    ['mget', 'a', 'b', 'c'],
  ],
  'Buffers, numbers, and what else can be a key': [
    ['mset', Buffer.from([0, 200, 1]), 'binary', 12, 'number', 1.5, 'fraction', '', 'empty', null, 'null', 'ключ', '√'],
    ['mget', Buffer.from([0, 200, 1]), 12, 1.5, '', null, undefined, 'ключ', true, 'ab'],
    ['mgetBuffer', [Buffer.from('12'), Buffer.from([0, 200, 1]), Buffer.from('ключ')]],
    ['existsBuffer', 12, Buffer.from([0, 200, 1]), 'none'],
    ['msetBuffer', 'a', Buffer.from([1]), 'b', 'x'.repeat(100_000)],
    ['mget', 'b', 'a'],
    ['delBuffer', 'a', 12, 'none'],
  ],
  'hash tags, in one slot and in two': [
    ['mset', '{a}1', 1, '{b}1', 2, '{a}2', 3],
    ['mget', '{a}2', '{b}1', '{a}1'],
    ['mget', '{a}2', '{a}1'],
    ['del', '{a}1'],
    ['del', ['{a}2', '{b}1']],
  ],
  'an empty hash tag before another, by which Redis hashes the whole key': [
    ['mset', '{}:{a}1', 1, '{}:{a}2', 2, '{}:{a}3', 3, 'x{}', 4],
    ['mget', '{}:{a}3', '{}:{a}1', Buffer.from('{}:{a}2'), 'x{}', '{}:{a}3'],
    ['del', '{}:{a}1', '{}:{a}2', '{}:{a}3', 'x{}'],
  ],
  'values of other types': [
    ['hset', 'h', 'f', 'v'],
    ['set', 's', 'text'],
    ['mget', 'h', 's', 'none'],
    ['del', 'h', 's', 'none'],
  ],
  'call() and callBuffer()': [
    ['call', 'mset', 'a', '1', 'b', '2'],
    ['call', 'mget', ['b', 'a'], 'c'],
    ['callBuffer', 'mget', 'b', 'a'],
    ['call', 'del', 'a', 'b', 'c'],
  ],
  'wrong numbers of arguments': [['mget'], ['mget', []], ['del'], ['mset'], ['mset', 'a'], ['mset', {}]],
};

describe.each(CLUSTER_HOSTS)('splitKeys with $name', (host) => {
  async function clients(options: Parameters<ClusterHost['createCoalesced']>[1] = {}) {
    const { redisOptions, ...own } = options;
    const cluster = await warm(host.createCoalesced(nodes, options, SPLIT));
    const plain = await ready(hostOf(host).create(single.url, { ...redisOptions, ...own } as object));
    await emptyAll(plain);
    return { cluster, plain };
  }

  it.each(share(Object.entries(CALLS), 2))('%s: as a single server answers', async (_, calls) => {
    const { cluster, plain } = await clients();
    expect(await run(cluster, calls)).toEqual(await run(plain, calls));
    expect(cluster.coalescer.stats().inFlight).toBe(0);
  });

  it.each([
    ['keyPrefix', { keyPrefix: 'prefix:' }],
    ['keyPrefix with a hash tag', { keyPrefix: '{all}:' }],
    ['stringNumbers', { redisOptions: { stringNumbers: true } }],
    ['showFriendlyErrorStack', { showFriendlyErrorStack: true }],
    ['enableAutoPipelining', { enableAutoPipelining: true }],
  ])('%s: as a single server answers', async (_, options) => {
    const { cluster, plain } = await clients(options);
    // Host: with `enableAutoPipelining` `call()` gets no prefix, `callBuffer()` fails, and a Cluster takes other keys
    // for text, and does not redirect one whose slot it gets wrong.
    const left = 'enableAutoPipelining' in options ? /^(wrong|call|Buffers|an empty)/ : /^(wrong|call)/;
    const calls = Object.entries(CALLS).flatMap(([name, some]) => (left.test(name) ? [] : some));
    expect(await run(cluster, calls)).toEqual(await run(plain, calls));
  });

  it('call() in upper case with keyPrefix: split if the client adds the prefix', async () => {
    const { cluster, plain } = await clients({ keyPrefix: 'prefix:' });
    const calls: Call[] = [
      ['call', 'MSET', 'a', '1', 'b', '2'],
      ['call', 'MGET', 'b', 'a', 'none'],
      ['call', 'DEL', 'a', 'b'],
    ];
    const found = await run(cluster, calls);
    const ofObject: Call[] = [['call', 'MSET', { a: '1', b: '2' }]];
    expect(await run(cluster, ofObject)).toEqual(await run(plain, ofObject));
    if (host.name !== 'iovalkey') expect(found).toEqual(await run(plain, calls));
    else
      expect(found).toEqual(
        calls.map(() => ({ error: expect.stringContaining('CROSSSLOT'), command: expect.anything() })),
      );
  });

  it('a missing value: the error of a single server', async () => {
    const { cluster, plain } = await clients();
    const calls = [['a', 1, 'b'], [['a', 1, 'b', 2, 'c']]].map((args): Call => ['mset', ...args]);
    const found = await Promise.allSettled(calls.flatMap((call) => [invoke(cluster, call), invoke(plain, call)]));
    const messages = found.map((each) => each.status === 'rejected' && (each.reason as Error).message);
    expect(messages).toEqual(Array(4).fill("ERR wrong number of arguments for 'mset' command"));
  });

  it('random calls: as a single server answers', async () => {
    const { cluster, plain } = await clients();
    const key = fc.constantFrom<unknown>('a', 'b', 'c', '{t}1', '{t}2', '', 7, 'ключ', Buffer.from([255, 0]), 'd', 'e');
    const value = fc.constantFrom<unknown>('v', 1, 'é', Buffer.from([128]), '');
    const keys = fc.array(key, { minLength: 1, maxLength: 8 });
    const pairs = fc.array(fc.tuple(key, value), { minLength: 1, maxLength: 6 }).map((some) => some.flat());
    const spread = (method: string, args: unknown[], form: number): Call =>
      form === 0 ? [method, ...args] : form === 1 ? [method, args] : ['call', method, ...args];
    const form = fc.nat(2);
    const call = fc.oneof(
      fc.tuple(fc.constantFrom('mget', 'del', 'unlink', 'exists', 'touch'), keys, form),
      fc.tuple(fc.constant('mset'), pairs, form),
    );
    const buffers = fc.tuple(fc.constantFrom('mgetBuffer', 'delBuffer'), keys, fc.nat(1));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof(call, call, buffers), { minLength: 1, maxLength: 20 }), async (program) => {
        // All at once: the parts of one call keep their places among those of the others.
        const issue = (client: object) =>
          outcomes(program.map(([method, args, how]) => invoke(client, spread(method, args as unknown[], how))));
        expect(await issue(cluster)).toEqual(await issue(plain));
      }),
      { numRuns: 30 },
    );
  });

  it('more arguments than can be spread twice, split or not', async () => {
    const { cluster } = await clients();
    const keys = Array.from({ length: 100_000 }, (_, index) => `{t}${index % 10}`);
    expect((await cluster.mget(...keys)).length).toBe(100_000);
    expect(await cluster.exists(...keys, 'b')).toBe(0);
    expect(await cluster.call('sadd', '{t}', ...keys)).toBe(10);
  });

  it('callbacks get the value, once', async () => {
    const { cluster, plain } = await clients();
    const called = (client: object) =>
      new Promise<unknown[]>((resolve) => {
        void invoke(client, [
          'mset',
          'a',
          1,
          'b',
          2,
          (...set: unknown[]) => void invoke(client, ['mget', 'b', 'a', (...got: unknown[]) => resolve([set, got])]),
        ]);
      });
    expect(await called(cluster)).toEqual(await called(plain));
  });

  it('the timeout and the signal of a view reject a call, and its callback gets the error, once', async () => {
    const unhandled = collectUncaught('unhandledRejection');
    const { cluster } = await clients();
    const gone = new AbortController();
    const called: unknown[] = [];
    const call = (options: CallOptions) =>
      cluster.coalescer.withOptions(options).mget('a', 'b', (...outcome: unknown[]) => void called.push(outcome));
    for (const node of cluster.nodes()) (node as unknown as { stream: Socket }).stream.pause();
    await expect(call({ timeout: 1 })).rejects.toThrow('Command timed out');
    expect(called.splice(0)).toEqual([[expect.objectContaining({ message: 'Command timed out' })]]);
    const aborted = call({ signal: gone.signal });
    await new Promise(setImmediate);
    gone.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    await expect(call({ signal: gone.signal })).rejects.toBe(reason);
    for (const node of cluster.nodes()) (node as unknown as { stream: Socket }).stream.resume();
    // Nobody looks at the promise of a call with a callback.
    const refused = new Promise((resolve) => {
      void invoke(cluster.coalescer.withOptions({ timeout: 60_000 }), ['mset', 'a', '1', 'b', resolve]);
    });
    expect(await refused).toBeInstanceOf(Error);
    await new Promise(setImmediate);
    expect(called).toEqual([[reason], [reason]]);
    expect(getEventListeners(gone.signal, 'abort')).toEqual([]);
    expect(unhandled).toEqual([]);
  });

  it.each([
    ['in one slot', ['{a}1', '{a}2']],
    ['in several slots', ['a', 'b']],
  ])('keys %s: a call that is aborted in its turn is rejected, and executed', async (_, keys) => {
    const { cluster } = await clients();
    await cluster.mset(keys.flatMap((key) => [key, `of ${key}`]));
    const gone = new AbortController();
    const aborted = cluster.coalescer.withOptions({ signal: gone.signal }).del(...keys);
    gone.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect(await cluster.mget(...keys)).toEqual([null, null]);
  });

  it('a call that is aborted before the Cluster is connected is not executed', async () => {
    const { cluster } = await clients();
    await cluster.mset('a', 'of a', 'b', 'of b');
    const early = host.createCoalesced(nodes, {}, SPLIT);
    const gone = new AbortController();
    const aborted = early.coalescer.withOptions({ signal: gone.signal }).del('a', 'b');
    gone.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect(await early.mget('a', 'b')).toEqual(['of a', 'of b']);
  });

  it('arguments are read once, when the call is made', async () => {
    const { cluster } = await clients();
    let reads = 0;
    const keys = ['a', 'b'];
    const counted = Object.defineProperty([...keys], 0, {
      get: () => {
        reads += 1;
        return 'a';
      },
      enumerable: true,
    });
    await cluster.mset('a', 'of a', 'b', 'of b');
    const values = cluster.mget(counted);
    keys[1] = 'changed';
    expect(await values).toEqual(['of a', 'of b']);
    expect(reads).toBe(1);
    const key = {
      toString: () => {
        reads += 1;
        return 'b';
      },
    };
    expect(await cluster.mget('a', key as unknown as string)).toEqual(['of a', 'of b']);
    expect(reads).toBe(2);
  });

  it('one command per slot goes into the batch of this turn, one write to each master', async () => {
    const { cluster } = await clients();
    const spies = cluster.nodes('master').map((node) => spyOnSocket(node));
    const before = cluster.coalescer.stats();
    await Promise.all([cluster.mget(...KEYS), cluster.get('key:0')]);
    const after = cluster.coalescer.stats();
    const slots = new Set(KEYS.map((key) => calculateSlot(key))).size;
    expect(spies.map(({ writes }) => writes.length)).toEqual([1, 1, 1]);
    expect(spies.flatMap((spy) => commandNames(spy.text())).sort()).toEqual(['get', ...Array(slots).fill('mget')]);
    expect(after.fastCommands - before.fastCommands).toBe(slots + 1);
  });

  it('keys of one slot go out as one command, in the order of the call', async () => {
    const { cluster } = await clients();
    const spies = cluster.nodes('master').map((node) => spyOnSocket(node));
    await Promise.all([cluster.mget('{t}a', '{t}b', '{t}a'), cluster.del(['{t}b', '{t}a']), cluster.del('{t}c')]);
    expect(spies.flatMap((spy) => commandNames(spy.text()))).toEqual(['mget', 'del', 'del']);
  });

  it('without the option: CROSSSLOT, as on a plain Cluster', async () => {
    const cluster = await warm(host.createCoalesced(nodes));
    await expect(cluster.mget('a', 'b')).rejects.toThrow(/CROSSSLOT/);
  });

  it('in a pipeline and in a transaction: CROSSSLOT, as on a plain Cluster', async () => {
    const { cluster } = await clients();
    const plain = await warm(host.create(nodes));
    const make = (client: typeof plain) => [
      client.pipeline().mget('{x}1', '{y}1').exec(),
      client.multi().mget('{x}1', '{y}1').exec(),
    ];
    expect(await outcomes(make(cluster))).toEqual(await outcomes(make(plain)));
  });

  it.each<[string, (cluster: CoalescedCluster) => CoalescedCluster]>([
    [
      'after detach()',
      (cluster) => {
        cluster.coalescer.detach();
        return cluster;
      },
    ],
    [
      'a duplicate() of one that was detached',
      (cluster) => {
        cluster.coalescer.detach();
        return cluster.duplicate() as CoalescedCluster;
      },
    ],
  ])('%s: the Cluster is plain, and keys are still split', async (_, prepare) => {
    const { cluster, plain } = await clients();
    const detached = prepare(cluster);
    onTestFinished(() => detached.disconnect());
    expect(detached.coalescer?.enabled ?? false).toBe(false);
    for (const calls of Object.values(CALLS)) expect(await run(detached, calls)).toEqual(await run(plain, calls));
    const view = cluster.coalescer.withOptions({ timeout: 60_000 });
    expect(await view.mget('a', 'b')).toEqual(await plain.mget('a', 'b'));
    // As before the option, for all that is not split.
    expect(await detached.set('a', '1')).toBe('OK');
    expect(await detached.pipeline().get('a').exec()).toEqual([[null, '1']]);
    expect(await detached.multi().get('a').exec()).toEqual([[null, '1']]);
  });

  it('coalesced again after detach(): fast, and detached again: split', async () => {
    const { cluster } = await clients();
    cluster.coalescer.detach();
    coalesce(cluster);
    const fastCommands = () => cluster.coalescer.stats().fastCommands;
    // A connection in use is fast once a reply shows that no transaction is open.
    for (let before = Number.NaN; fastCommands() - before !== 2; ) {
      before = fastCommands();
      expect(await cluster.mset('a', '1', 'b', '2')).toBe('OK');
    }
    cluster.coalescer.detach();
    expect(await cluster.mget('b', 'a')).toEqual(['2', '1']);
    cluster.coalescer.detach();
    coalesce(cluster, {});
    await expect(cluster.mget('b', 'a')).rejects.toThrow(/CROSSSLOT/);
  });

  it('with IOREDIS_COALESCE=off: the Cluster is plain, and keys are split', async () => {
    await emptyAll(await ready(hostOf(host).create(single.url)));
    vi.stubEnv('IOREDIS_COALESCE', 'off');
    vi.resetModules();
    onTestFinished(() => {
      vi.unstubAllEnvs();
      vi.resetModules();
    });
    const off = await import('ioredis-coalesce/coalesce');
    const cluster = await warm(off.coalesce(host.create(nodes), SPLIT));
    expect(cluster.coalescer.enabled).toBe(false);
    expect(await cluster.mset('a', 1, 'b', 2)).toBe('OK');
    expect(await cluster.mget('b', 'none', 'a')).toEqual(['2', null, '1']);
    const copy = cluster.duplicate();
    onTestFinished(() => copy.disconnect());
    expect(await copy.del('b', 'a')).toBe(2);
  });

  it.each([
    ['not connected yet', () => {}, {}],
    ['with fastPath: false', (cluster: CoalescedCluster) => warm(cluster), { fastPath: false }],
  ])('%s: the Cluster sends the parts itself', async (_, prepare, coalesceOptions) => {
    await emptyAll(await ready(hostOf(host).create(single.url)));
    const cluster = host.createCoalesced(nodes, {}, { ...SPLIT, ...coalesceOptions });
    await prepare(cluster);
    expect(await cluster.mset('a', 1, 'b', 2, 'c', 3)).toBe('OK');
    expect(await cluster.mget('c', 'none', 'a', 'b')).toEqual(['3', null, '1', '2']);
    expect(await cluster.call('mget', 'c', 'a')).toEqual(['3', '1']);
    expect(await cluster.del('a', 'b', 'c')).toBe(3);
  });

  const CORKED = { ...SPLIT, fastPath: false };
  it.each<[string, string, (cluster: CoalescedCluster) => unknown]>([
    ['', 'cork', () => {}],
    [' that was detached', 'plain', ({ coalescer }) => coalescer.detach()],
    [
      ' that was coalesced again',
      'cork',
      (cluster) => {
        cluster.coalescer.detach();
        coalesce(cluster);
      },
    ],
    [
      ' that was fast before',
      'cork',
      (cluster) => {
        cluster.coalescer.detach();
        coalesce(cluster, SPLIT).coalescer.detach();
        coalesce(cluster, CORKED);
      },
    ],
  ])('a duplicate() of a corked one%s splits keys, too', async (_, mode, prepare) => {
    const cluster = host.createCoalesced(nodes, {}, CORKED);
    prepare(cluster);
    const copy = cluster.duplicate() as CoalescedCluster;
    onTestFinished(() => copy.disconnect());
    expect((copy as Partial<CoalescedCluster>).coalescer?.stats().mode ?? 'plain').toBe(mode);
    expect(await copy.mset('a', 1, 'b', 2)).toBe('OK');
    expect(await copy.mget('b', 'a')).toEqual(['2', '1']);
    expect(await copy.del('a', 'b')).toBe(2);
  });

  it('a tracer that wraps sendCommand() sees each part', async () => {
    const { cluster } = await clients();
    const seen: string[] = [];
    const { sendCommand } = cluster;
    cluster.sendCommand = function (command, ...rest) {
      seen.push([command.name, ...command.args].join(' '));
      return sendCommand.call(this, command, ...rest);
    };
    await cluster.mset('a', '1', 'b', '2');
    expect(await cluster.mget('b', 'a', 'b')).toEqual(['2', '1', '2']);
    expect(seen).toEqual(['mset a 1', 'mset b 2', 'mget b b', 'mget a']);
  });

  it('one failed part rejects the call with its error, and the others are executed', async () => {
    const { cluster, plain } = await clients();
    const slot = calculateSlot('a');
    const owner = await nodes.masterOf(slot);
    await owner.client.config('SET', 'maxmemory', '1');
    try {
      await expect(cluster.mset('a', '1', ...KEYS.flatMap((key) => [key, 'set']))).rejects.toThrow(/^OOM/);
    } finally {
      await owner.client.config('SET', 'maxmemory', '0');
    }
    const others: string[] = [];
    for (const key of KEYS) if ((await nodes.masterOf(calculateSlot(key))).id !== owner.id) others.push(key);
    expect(others.length).toBeGreaterThan(0);
    expect(await cluster.mget(...others)).toEqual(others.map(() => 'set'));
    expect(await cluster.get('a')).toBeNull();
    await plain.ping();
  });

  it('a part whose slot has moved follows MOVED by itself, one that is moving ASK and TRYAGAIN', async () => {
    const { cluster } = await clients();
    const slot = calculateSlot('{moving}');
    const from = await nodes.masterOf(slot);
    const to = (await nodes.masters()).find(({ id }) => id !== from.id) as ClusterNode;
    const keys = ['{moving}1', '{moving}2', ...KEYS];
    await cluster.mset(keys.flatMap((key) => [key, `of ${key}`]));
    const values = [...keys.map((key) => `of ${key}`), null];
    const read = () => cluster.mget(...keys, 'none');

    await nodes.beginMove(slot, from, to);
    await nodes.moveKeys(slot, from, to, ['{moving}1', '{moving}2']);
    await resetCommandCounts(nodes);
    expect(await read()).toEqual(values);
    expect((await commandCounts(nodes, 'asking')).calls).toBeGreaterThan(0);

    await nodes.finishMove(slot, to);
    expect(await read()).toEqual(values);
    await nodes.moveSlots(to, from, [slot]);
    expect(await read()).toEqual(values);
  });
});

describe('splitKeys', () => {
  it("a user's transformers get the arguments and the reply of each part", async () => {
    const cluster = await warm((CLUSTER_HOSTS[0] as ClusterHost).createCoalesced(nodes, {}, SPLIT));
    const seen: unknown[] = [];
    onTestFinished(withoutTransformers('mget'));
    await cluster.mset('{a}1', '1', 'b', '2');
    Command.setArgumentTransformer('mget', (args) => {
      seen.push([...args]);
      return args;
    });
    Command.setReplyTransformer('mget', (values) => {
      seen.push(values);
      return (values as string[]).map((value) => `transformed ${value}`);
    });
    expect(await cluster.mget('{a}1', 'b', '{a}2')).toEqual(['transformed 1', 'transformed 2', 'transformed null']);
    expect(seen).toEqual([['{a}1', '{a}2'], ['b'], expect.anything(), expect.anything()]);
    expect(seen.slice(2)).toEqual(expect.arrayContaining([['1', null], ['2']]));
  });

  it.each(['mget', 'del'] as const)(
    'a transformer of %s that makes keys of an object gets that object',
    async (name) => {
      for (const options of [SPLIT, { ...SPLIT, fastPath: false }]) {
        const plain = (CLUSTER_HOSTS[0] as ClusterHost).create(nodes);
        const split = (CLUSTER_HOSTS[0] as ClusterHost).createCoalesced(nodes, {}, options);
        onTestFinished(withoutTransformers(name));
        Command.setArgumentTransformer(name, (args) => args.flatMap((of) => Object.values(of as object)));
        const found = [];
        for (const cluster of [await warm(plain), await warm(split)]) {
          await cluster.mset('{a}1', '1', '{a}2', '2');
          found.push(
            await run(cluster, [
              [name, { one: '{a}2', other: '{a}1' }],
              ['call', name, { one: '{a}1' }],
            ]),
          );
        }
        expect(found[1]).toEqual(found[0]);
        withoutTransformers(name)();
      }
    },
  );

  it('MGET replies that a transformer has changed into something else cannot be joined: the call fails', async () => {
    const cluster = await warm((CLUSTER_HOSTS[0] as ClusterHost).createCoalesced(nodes, {}, SPLIT));
    onTestFinished(withoutTransformers('mget'));
    Command.setReplyTransformer('mget', (values) => (values as string[]).join('+'));
    await expect(cluster.mget('a', 'b')).rejects.toThrow('splitKeys cannot join replies of MGET');
    expect(await cluster.mget('{none}1', '{none}2')).toBe('+');
  });

  it('a layer that encodes values encodes those of MSET once', async () => {
    const cluster = await warm((CLUSTER_HOSTS[0] as ClusterHost).createCoalesced(nodes, {}, SPLIT));
    const prototype = Command.prototype as unknown as { stringifyArguments(): void; name: string; args: unknown[] };
    const { stringifyArguments } = prototype;
    onTestFinished(() => void Object.assign(prototype, { stringifyArguments }));
    prototype.stringifyArguments = function () {
      if (this.name === 'mset')
        this.args = this.args.map((value, index) => (index % 2 ? JSON.stringify(value) : value));
      stringifyArguments.call(this);
    };
    await cluster.mset({ a: { one: 1 }, b: [2, '3'] });
    expect(await cluster.mget('a', 'b')).toEqual(['{"one":1}', '[2,"3"]']);
  });

  it('methods that users have put on a Cluster are not replaced, before the option or after; it leaves none of its own', async () => {
    const cluster = (CLUSTER_HOSTS[0] as ClusterHost).create(nodes, { lazyConnect: true });
    const own = () =>
      Object.getOwnPropertyNames(cluster).filter((name) => typeof Reflect.get(cluster, name) === 'function');
    const before = own();
    const mget = async () => ['stub'];
    Object.assign(cluster, { mget });
    const split = coalesce(cluster, SPLIT);
    const del = async () => 7;
    Object.assign(cluster, { del });
    expect([await cluster.mget('a', 'b'), await cluster.del('a', 'b')]).toEqual([['stub'], 7]);
    split.coalescer.detach();
    coalesce(cluster, {}).coalescer.detach();
    expect(own().sort()).toEqual([...before, 'mget', 'del'].sort());
  });
});

/** Removes the transformers of a command. */
function withoutTransformers(name: string): () => void {
  const { argument, reply } = (
    Command as unknown as { _transformer: Record<'argument' | 'reply', Record<string, unknown>> }
  )._transformer;
  return () => {
    delete argument[name];
    delete reply[name];
  };
}
