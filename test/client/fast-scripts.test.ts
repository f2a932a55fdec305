import { setImmediate as turn } from 'node:timers/promises';
import type { RedisOptions } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { connectFake, type FakeConnection, Witness } from '../helpers/fake-connection.js';
import { canonical } from '../helpers/fidelity/canonical.js';
import type { HostName } from '../helpers/host-decoder.js';
import { type Client, outcomes, HOSTS as REAL_HOSTS, ready } from '../helpers/hosts.js';
import { redisUrl } from '../helpers/redis.js';

const HOSTS: readonly HostName[] = ['ioredis', 'ioredis5', 'iovalkey'];
const SCRIPTS = {
  one: { numberOfKeys: 1, lua: 'return 1' },
  two: { numberOfKeys: 2, lua: 'return 2' },
  none: { numberOfKeys: 0, lua: 'return 0' },
  loose: { lua: 'return "é"' },
  long: { numberOfKeys: 1, lua: `return 1 -- ${'x'.repeat(5_000)}` },
  reading: { numberOfKeys: 1, lua: 'return 3', readOnly: true },
} as const;
type Name = keyof typeof SCRIPTS;
type Scripts = Record<Name | `${Name}Buffer`, (...args: unknown[]) => Promise<unknown>>;
type Play = (connection: FakeConnection & { scripts: Scripts; watch: Witness['watch'] }) => Promise<void> | void;

interface Told {
  readonly written: string;
  readonly seen: readonly string[];
}

/**
 * Plays the same over a fake connection with a plain and with a coalesced client: what is written, and what callers
 * see.
 */
async function compare(hostName: HostName, options: RedisOptions, play: Play): Promise<{ told: Told; fast: number }> {
  const tell = async (coalesced: boolean) => {
    const connection = await connectFake({
      hostName,
      scripts: SCRIPTS,
      ...options,
      ...(coalesced ? { coalesce: {} } : {}),
    });
    onTestFinished(() => connection.client.disconnect());
    const witness = new Witness(connection.client);
    await play({
      ...connection,
      scripts: connection.client as unknown as Scripts,
      watch: (who, promise) => witness.watch(who, promise),
    });
    await turn();
    await turn();
    const told = { written: connection.socket.written.toString('latin1'), seen: witness.seen.map(canonical) };
    const stats = (connection.client as unknown as { coalescer?: { stats(): { fastCommands: number } } }).coalescer;
    return { told, fast: stats?.stats().fastCommands ?? 0 };
  };
  const plain = await tell(false);
  const coalesced = await tell(true);
  expect(coalesced.told).toEqual(plain.told);
  return coalesced;
}

const CALLS: Readonly<Record<string, (scripts: Scripts) => Promise<unknown>>> = {
  'one key': (s) => s.one('k'),
  'a key and arguments': (s) => s.one('k', 'a', 2, 1.5),
  'two keys': (s) => s.two('k', 'l', 'a'),
  'no keys': (s) => s.none('a'),
  'no keys and no arguments': (s) => s.none(),
  'keys counted by the caller': (s) => s.loose(2, 'k', 'l', 'a'),
  'keys counted by the caller in text': (s) => s.loose('1', 'k', 'a'),
  'an array': (s) => s.one(['k', 'a', 'b']),
  'a key and an array': (s) => s.loose(1, ['k', 'a', 'b']),
  'text beyond ASCII': (s) => s.one('ключ', 'é€😀'),
  Buffers: (s) => s.oneBuffer('k', Buffer.from([0xff, 0, 0x0d, 0x0a])),
  'a key in a Buffer': (s) => s.one(Buffer.from('k')),
  'null, undefined and booleans': (s) => s.one('k', null, undefined, true, false),
  'long arguments': (s) => s.one('k', 'x'.repeat(5_000), Buffer.alloc(5_000)),
  'a script over 4 KiB': (s) => s.long('k'),
  'a script that reads': (s) => s.reading('k'),
  'too few keys': (s) => s.two('k'),
  'more keys than there are': (s) => s.loose(3, 'k'),
  'a count that is none': (s) => s.loose('many', 'k'),
  'a negative count': (s) => s.loose(-1, 'k'),
  'an object': (s) => s.one('k', { toString: () => 'text' }),
  'a number beyond 2^53': (s) => s.one('k', 2 ** 60),
};

describe.each(HOSTS)('a defined script on %s', (hostName) => {
  it.each([
    ['no keyPrefix', {}],
    ['keyPrefix', { keyPrefix: 'p:' }],
    ['keyPrefix beyond ASCII', { keyPrefix: 'é:' }],
    ['a keyPrefix in a Buffer', { keyPrefix: Buffer.from('p:') as unknown as string }],
  ])('is sent as by a plain client, first as EVAL and then as EVALSHA, with %s', async (_, options) => {
    await compare(hostName, options, async ({ scripts, watch }) => {
      for (const [title, call] of Object.entries(CALLS)) {
        watch(title, call(scripts));
        watch(`${title}, again`, call(scripts));
      }
      await turn();
    });
  });

  it('is fast from its first call on, with plain arguments', async () => {
    const { fast } = await compare(hostName, {}, async ({ scripts, socket, watch }) => {
      watch('1', scripts.one('k'));
      watch('2', scripts.one('k', Buffer.from('a')));
      watch('3', scripts.loose(1, ['k', 'a']));
      watch('4', scripts.oneBuffer('k', null));
      await turn();
      socket.feed('+OK\r\n:1\r\n*2\r\n$1\r\na\r\n$-1\r\n$1\r\nb\r\n');
    });
    expect(fast).toBe(4);
  });

  it('settles its callers in the order of a plain client, between other commands of one packet', async () => {
    const { told } = await compare(hostName, {}, async ({ client, scripts, socket, watch }) => {
      watch('get 1', client.get('a'));
      watch('script 1', scripts.one('k'));
      watch('get 2', client.get('b'));
      watch('script 2', scripts.oneBuffer('k'));
      watch('failing', scripts.one('k'));
      watch('get 3', client.get('c'));
      void scripts.one('k', (...result: unknown[]) => watch('callback', Promise.resolve(result)));
      await turn();
      socket.feed('+1\r\n+2\r\n+3\r\n+4\r\n-ERR failed\r\n+6\r\n+7\r\n');
    });
    expect(told.seen).toHaveLength(7);
  });

  it('that the server has forgotten is sent once as EVAL, and then as EVALSHA', async () => {
    const { told, fast } = await compare(hostName, {}, async ({ scripts, socket, watch }) => {
      watch('loads', scripts.one('k'));
      await turn();
      socket.feed('+loaded\r\n');
      watch('flushed 1', scripts.one('k', 'first'));
      watch('flushed 2', scripts.oneBuffer('k', 'second'));
      await turn();
      socket.feed('-NOSCRIPT No matching script. Please use EVAL.\r\n');
      await turn();
      socket.feed('-NOSCRIPT No matching script. Please use EVAL.\r\n');
      await turn();
      socket.feed('+first\r\n+second\r\n');
      watch('known', scripts.one('k', 'third'));
      await turn();
      socket.feed('+third\r\n');
    });
    expect(told.seen).toHaveLength(4);
    expect(fast).toBeGreaterThanOrEqual(3);
  });

  it('that fails to compile is sent as EVALSHA, and as EVAL when the server does not know it', async () => {
    await compare(hostName, {}, async ({ scripts, socket, watch }) => {
      watch('broken', scripts.one('k'));
      await turn();
      socket.feed('-ERR Error compiling script\r\n');
      watch('broken again', scripts.one('k'));
      await turn();
      socket.feed('-NOSCRIPT No matching script\r\n');
      await turn();
      socket.feed('-ERR Error compiling script\r\n');
    });
  });

  it('shares its loaded state with pipelines, transactions and the calls that the host sends', async () => {
    await compare(hostName, {}, async ({ client, scripts, socket, watch }) => {
      type Chain = Record<string, (...args: unknown[]) => { exec(): Promise<unknown> }>;
      const chain = (method: 'pipeline' | 'multi') => client[method]() as unknown as Chain;
      watch('pipeline', chain('pipeline').one?.('k').exec() as Promise<unknown>);
      watch('one', scripts.one('k'));
      watch('two', scripts.two('k', 'l'));
      watch('multi', chain('multi').two?.('k', 'l').exec() as Promise<unknown>);
      watch('cold', scripts.none({ toString: () => 'x' }));
      watch('none', scripts.none('x'));
      await turn();
      socket.feed('+1\r\n+2\r\n+3\r\n+OK\r\n+QUEUED\r\n*1\r\n+4\r\n+5\r\n-NOSCRIPT flushed\r\n');
      await turn();
      socket.feed('+6\r\n');
    });
  });

  it('calls back as the host does, and an error that the callback throws surfaces later', async () => {
    const names = ['script', 'failing', 'get', 'call', 'two'];
    const thrown: unknown[] = [];
    const listeners = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    process.on('uncaughtException', (error) => thrown.push(error.message));
    onTestFinished(() => {
      process.removeAllListeners('uncaughtException');
      for (const listener of listeners) process.on('uncaughtException', listener);
    });
    await compare(hostName, {}, async ({ client, scripts, socket, watch }) => {
      const callback =
        (name: string) =>
        (...result: unknown[]) => {
          watch(`callback of ${name}`, Promise.resolve(result));
          throw new Error(`by the callback of ${name}`);
        };
      watch('script', scripts.one('k', callback('script')));
      watch('failing', scripts.one('k', callback('failing')));
      watch('get', client.get('k', callback('get')) as Promise<unknown>);
      watch('call', client.call('get', 'k', callback('call')) as Promise<unknown>);
      const get = client.get as unknown as (...args: unknown[]) => Promise<unknown>;
      watch('two callbacks', get.call(client, 'k', callback('first'), callback('two')));
      await turn();
      const before = thrown.length;
      socket.feed('+1\r\n-ERR failed\r\n$-1\r\n+text\r\n-ERR too many\r\n');
      // The errors come from timers, one per turn of the loop: on a busy machine that takes its time.
      await vi.waitFor(() => expect(thrown.length).toBeGreaterThanOrEqual(before + names.length));
    });
    const errors = names.map((name) => `by the callback of ${name}`).sort();
    expect(thrown.slice(0, names.length).sort()).toEqual(errors);
    expect(thrown.slice(names.length).sort()).toEqual(errors);
  });
});

describe.each(REAL_HOSTS)('the methods of scripts, $name', (host) => {
  type Methods = Record<string, ((...args: unknown[]) => Promise<unknown>) | undefined>;
  const create = async (coalesced: boolean, options: RedisOptions = {}) => {
    const client = host.create(redisUrl(), { scripts: { early: SCRIPTS.one }, ...options });
    if (coalesced) coalesce(client);
    await ready(client);
    client.defineCommand('late', SCRIPTS.one);
    return { client, methods: client as unknown as Methods };
  };

  it('are own properties if the host makes them so', async () => {
    const keysOf = async (coalesced: boolean) => {
      const { client } = await create(coalesced);
      client.addBuiltinCommand('get');
      return Object.entries(Object.getOwnPropertyDescriptors(client))
        .filter(([name]) => /^(early|late|get)/.test(name))
        .map(([name, { value, ...flags }]) => ({ name, type: typeof value, ...flags }));
    };
    const plain = await keysOf(false);
    expect(await keysOf(true)).toEqual(plain);
    expect(plain).toHaveLength(6);
  });

  it('are fast whether they were defined by the option, before or after coalesce()', async () => {
    const { client, methods } = await create(false);
    const coalesced = coalesce(client);
    client.defineCommand('later', SCRIPTS.loose);
    await client.echo('the first one after coalesce() is cold');
    const before = coalesced.coalescer.stats().fastCommands;
    expect(await Promise.all([methods.early?.('k'), methods.late?.('k'), methods.later?.(0)])).toEqual([1, 1, 'é']);
    expect(coalesced.coalescer.stats().fastCommands - before).toBe(3);
  });

  it('stay replaced when a user has put others in their place', async () => {
    const { client, methods } = await create(false);
    const own = async () => 'own';
    methods.early = own;
    const wrapped = methods.late;
    methods.late = function late(...args) {
      return Promise.resolve(wrapped?.apply(this, args)).then((value) => `wrapped ${value}`);
    };
    const { late } = methods;
    const coalesced = coalesce(client);
    expect(methods.early).toBe(own);
    expect(methods.late).toBe(late);
    const replaced = async () => 'replaced';
    methods.earlyBuffer = replaced;
    expect(await Promise.all([methods.early('k'), methods.late?.('k'), methods.earlyBuffer('k')])).toEqual([
      'own',
      'wrapped 1',
      'replaced',
    ]);
    coalesced.coalescer.detach();
    expect([methods.early, methods.late, methods.earlyBuffer]).toEqual([own, late, replaced]);
  });

  it('are the host’s own again after detach(), and calls in flight are answered', async () => {
    const { client, methods } = await create(false);
    client.addBuiltinCommand('get');
    const originals = { ...methods };
    const { coalescer } = coalesce(client);
    const names = ['early', 'earlyBuffer', 'late', 'lateBuffer', 'get', 'getBuffer'];
    for (const name of names) expect(methods[name], name).not.toBe(originals[name]);
    await client.ping();
    await client.script('FLUSH');
    const replies = [methods.early?.('k'), methods.late?.('k')];
    coalescer.detach();
    for (const name of names) expect(methods[name], name).toBe(originals[name]);
    expect(await Promise.all([...replies, methods.early?.('k')])).toEqual([1, 1, 1]);
  });

  it('may be given as a Buffer', async () => {
    const run = async (coalesced: boolean) => {
      const lua = Buffer.from("return 'é' .. redis.call('ECHO', ARGV[1])") as unknown as string;
      const script = { numberOfKeys: 1, lua };
      const { client, methods } = await create(coalesced, { scripts: { early: script } });
      client.defineCommand('late', script);
      return outcomes([methods.early?.('k', '1'), methods.late?.('k', '2')] as Promise<unknown>[]);
    };
    const plain = await run(false);
    expect(plain).toEqual([{ value: 'é1' }, { value: 'é2' }]);
    expect(await run(true)).toEqual(plain);
  });

  it('without numberOfKeys run no code of users to read their first argument', async () => {
    const run = async (coalesced: boolean) => {
      const { client, methods } = await create(coalesced, { keyPrefix: 'p:' });
      client.defineCommand('any', { lua: 'return {#KEYS, ARGV[1]}' });
      let valuesRead = 0;
      const counts = {
        toString: () => '1',
        valueOf: () => {
          valuesRead += 1;
          return 1;
        },
      };
      const first = [counts, Symbol('1'), true, 1, '1'];
      const replies = first.map((count) => methods.any?.(count, 'k', 'v')) as Promise<unknown>[];
      return [await outcomes(replies), valuesRead];
    };
    expect(await run(true)).toEqual(await run(false));
  });

  it('are replaced by a second defineCommand()', async () => {
    const { client, methods } = await create(true);
    expect(await methods.late?.('k')).toBe(1);
    client.defineCommand('late', SCRIPTS.two);
    expect(await methods.late?.('k', 'l')).toBe(2);
  });

  const BETWEEN: [string, (client: Client) => unknown][] = [
    ['nothing', () => {}],
    ['another script', (client) => client.defineCommand('other', SCRIPTS.two)],
    ['a command', (client) => client.addBuiltinCommand('strlen')],
    [
      'another script, and a pipeline',
      (client) => {
        client.defineCommand('other', SCRIPTS.two);
        return client.pipeline();
      },
    ],
  ];

  it.each(['late', 'lateBuffer'].flatMap((name) => BETWEEN.map((row) => [name, ...row] as const)))(
    '%s of a pipeline is what was defined when it was made, with %s in between',
    async (name, _, define) => {
      const run = async (coalesced: boolean) => {
        const { client } = await create(coalesced);
        const make = () => [client.pipeline(), client.multi()] as unknown as (Methods & { exec(): Promise<unknown> })[];
        const first = make();
        const called = make();
        for (const each of called) void each[name]?.('k');
        define(client);
        client.defineCommand('late', SCRIPTS.none);
        const second = make();
        define(client);
        client.defineCommand('late', SCRIPTS.loose);
        for (const each of [...first, ...called, ...second, ...make()]) void each[name]?.(1, 'k');
        return outcomes([...first, ...called, ...second].map((each) => each.exec()));
      };
      const plain = await run(false);
      expect(await run(true)).toEqual(plain);
      expect(new Set(plain.map((each) => JSON.stringify(each))).size).toBe(3);
    },
  );

  it('may have the name of a fast command', async () => {
    const { client, methods } = await create(true);
    client.defineCommand('get', SCRIPTS.one);
    expect(await methods.get?.('k')).toBe(1);
    client.addBuiltinCommand('get');
    expect(await methods.get?.('none')).toBeNull();
  });

  it('are fast on the client, and their copies on a pipeline run the same script', async () => {
    const { client, methods } = await create(true);
    const { coalescer } = client as unknown as ReturnType<typeof coalesce>;
    await client.ping();
    const before = coalescer.stats().fastCommands;
    expect(await methods.late?.('k')).toBe(1);
    expect(coalescer.stats().fastCommands).toBe(before + 1);
    const pipeline = client.pipeline();
    void (pipeline as unknown as Methods).late?.('k');
    expect(await pipeline.exec()).toEqual([[null, 1]]);
  });

  it('count in stats() why a call was left to the host', async () => {
    const { client, methods } = await create(true);
    const { coalescer } = client as unknown as ReturnType<typeof coalesce>;
    const reasons = () =>
      Object.fromEntries(Object.entries(coalescer.stats().fallbacks).filter(([, count]) => count > 0));
    await client.ping();
    expect(reasons()).toEqual({});
    await methods.late?.('k', { toString: () => 'text' });
    expect(reasons()).toEqual({ arguments: 1 });
    const { sendCommand } = client;
    client.sendCommand = function patched(this: typeof client, ...args: Parameters<typeof sendCommand>) {
      return sendCommand.apply(this, args);
    };
    await methods.late?.('k');
    Reflect.deleteProperty(client, 'sendCommand');
    expect(reasons()).toEqual({ arguments: 1, patched: 1 });
    client.options.showFriendlyErrorStack = true;
    await methods.late?.('k');
    expect(reasons()).toEqual({ arguments: 1, patched: 1, options: 1 });
  });
});

it('a client with fastPath: false leaves scripts to the host', async () => {
  const [host] = REAL_HOSTS;
  const client = await ready(
    host!.createCoalesced(redisUrl(), { scripts: { early: SCRIPTS.one } }, { fastPath: false }),
  );
  expect(await (client as unknown as Scripts & { early(key: string): Promise<number> }).early('k')).toBe(1);
  expect(client.coalescer.stats()).toMatchObject({ mode: 'cork', fastCommands: 0 });
});
