import { setImmediate as turn } from 'node:timers/promises';
import type { Redis as IORedis, RedisOptions } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectFake } from '../helpers/fake-connection.js';
import type { HostName } from '../helpers/host-decoder.js';
import { type CoalescedClient, HOSTS, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('fast-calls');

type Method = 'call' | 'callBuffer' | 'send_command';
type Caller = Record<Method, (...args: unknown[]) => Promise<unknown>>;

const METHODS: readonly Method[] = ['call', 'callBuffer', 'send_command'];
const HOST_NAMES: readonly HostName[] = ['ioredis', 'ioredis5', 'iovalkey'];

const CALLS: readonly unknown[][] = [
  ['get', 'k'],
  ['GET', 'k'],
  ['gEt', 'k'],
  ['get', ['k']],
  ['get', Buffer.from('k')],
  ['get'],
  ['set', 'k', 1],
  ['SET', 'k', 'é'],
  ['mget', ['a', 'b'], 'c'],
  ['MGET', 'a', 'b'],
  ['mset', { a: 1, b: 'x' }],
  ['MSET', { a: 1, b: 'x' }],
  ['mset', new Map([['a', 1]])],
  ['hset', 'h', { f: 'v' }],
  ['HSET', 'h', { f: 'v' }],
  ['del', 'a', 'b'],
  ['eval', 'return 1', 1, 'k'],
  ['EVAL', 'return 1', '1', 'k'],
  ['zunion', 2, 'a', 'b'],
  ['ZUNION', 2, 'a', 'b'],
  ['time'],
  ['info', 'server'],
  ['NOT.KNOWN', 'k'],
  [['get', 'k']],
  [Buffer.from('get'), 'k'],
  [],
];

describe.each(HOST_NAMES)('call() and its like on %s', (hostName) => {
  async function written(options: RedisOptions, method: Method, coalesced: boolean): Promise<string[]> {
    const { client, socket } = await connectFake({ hostName, ...options, ...(coalesced ? { coalesce: {} } : {}) });
    onTestFinished(() => client.disconnect());
    const found: string[] = [];
    for (const args of CALLS) {
      socket.writes.length = 0;
      try {
        (client as unknown as Caller)[method](...args).catch(() => {});
      } catch (error) {
        found.push(String(error));
        continue;
      }
      await turn();
      found.push(socket.written.toString('latin1'));
    }
    return found;
  }

  describe.each(METHODS)('%s', (method) => {
    it.each([
      ['no keyPrefix', {}],
      ['keyPrefix', { keyPrefix: 'p:' }],
    ])('writes what a plain client writes, in whatever case and with %s', async (_, options) => {
      const plain = await written(options, method, false);
      expect(plain[1]).toContain('GET');
      expect(await written(options, method, true)).toEqual(plain);
    });
  });
});

describe.each(HOSTS)('call() and similar methods, $name', (host) => {
  it('give the values and errors of a plain client, transformers by the name as it was given', async () => {
    const values = async (client: CoalescedClient | IORedis) => {
      const caller = (await ready(client as CoalescedClient)) as unknown as Caller;
      const k = (name: string) => prefix + name;
      await caller.call('DEL', k('h'), k('s'));
      const calls: (readonly [Method, ...unknown[]])[] = [
        ['call', 'hset', k('h'), { f: '1', g: 'é' }],
        ['call', 'hgetall', k('h')],
        ['call', 'HGETALL', k('h')],
        ['callBuffer', 'hgetall', k('h')],
        ['send_command', 'hgetall', k('h')],
        ['callBuffer', 'hget', k('h'), 'g'],
        ['call', 'INCR', k('h')],
        ['call', 'get'],
        ['call', 'SET', k('s'), Buffer.from([0xff])],
        ['callBuffer', 'get', k('s')],
        ['call', 'strlen', k('s')],
        ['call', 'ZADD', k('s'), 1, 'm'],
        // The Kelvin sign, whose lower case is ASCII's k.
        ['call', '\u212aeys', k('h')],
      ];
      return Promise.all(
        calls.map(([method, ...args]) =>
          caller[method](...args).catch(({ name, message, command }) => ({ name, message, command })),
        ),
      );
    };
    const plain = await values(host.create(redisUrl()));
    const client = host.createCoalesced(redisUrl(), {}, { busyPoll: false });
    expect(await values(client)).toEqual(plain);
    expect(client.coalescer.stats().fastCommands).toBe(13);
  });

  it('are fast only for fast commands, and are not own properties', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { busyPoll: false }));
    const caller = client as unknown as Caller;
    for (const method of METHODS) expect(Object.hasOwn(client, method)).toBe(false);
    await Promise.all([caller.call('echo', 'x'), caller.callBuffer('ECHO', 'x'), caller.send_command('echo', 'x')]);
    expect(client.coalescer.stats().fastCommands).toBe(3);
    await caller.call('info', 'server');
    expect(client.coalescer.stats().fastCommands).toBe(3);
  });

  it('leave unusual calls to the host, and count them', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { busyPoll: false }));
    const caller = client as unknown as Caller;
    expect(await caller.call('echo', { toString: () => 'text' })).toBe('text');
    expect(client.coalescer.stats().fallbacks.arguments).toBe(1);
    const own = client as unknown as { call: unknown };
    own.call = () => 'replaced';
    expect(caller.call('echo', 'x')).toBe('replaced');
  });

  it('send a command made with addBuiltinCommand() in upper or lower case as it was added', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { busyPoll: false }));
    client.addBuiltinCommand('GET');
    client.addBuiltinCommand('echo');
    const methods = client as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    expect(await Promise.all([methods.GET?.('none'), methods.echo?.('x'), methods.echoBuffer?.('x')])).toEqual([
      null,
      'x',
      Buffer.from('x'),
    ]);
    expect(client.coalescer.stats().fastCommands).toBe(3);
  });

  it('work for more spellings than are kept', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { busyPoll: false }));
    const name = 'zremrangebyrank';
    const spellings = Array.from({ length: 1_100 }, (_, bits) =>
      [...name].map((letter, index) => ((bits >> index) & 1 ? letter.toUpperCase() : letter)).join(''),
    );
    const replies = await Promise.all(spellings.map((spelling) => client.call(spelling, `${prefix}none`, 0, 1)));
    expect(new Set(replies)).toEqual(new Set([0]));
    expect(client.coalescer.stats().fastCommands).toBe(1_100);
  });
});

describe('argument transformers of iovalkey', () => {
  const [, , host] = HOSTS as readonly [unknown, unknown, (typeof HOSTS)[number]];

  it('that are the host’s own leave hset, hmset, mset and msetnx fast', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { busyPoll: false }));
    const k = (name: string) => `${prefix}transformed:${name}`;
    await client.del(k('h'), k('a'), k('b'));
    expect(
      await Promise.all([
        client.hset(k('h'), { f: 1 }),
        client.hmset(k('h'), new Map([['g', '2']])),
        client.mset({ [k('a')]: 'A' }),
        client.msetnx({ [k('b')]: 'B' }),
        client.hgetall(k('h')),
        client.mget(k('a'), k('b')),
      ]),
    ).toEqual([1, 'OK', 'OK', 1, { f: '1', g: '2' }, ['A', 'B']]);
    expect(client.coalescer.stats()).toMatchObject({ fastCommands: 7, fallbacks: { transformer: 0 } });
  });
});
