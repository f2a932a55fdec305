/** What users attach to a command's arguments runs once, as on a plain client, and before the command is sent. */
import { Command } from 'ioredis';
import type { Coalesced } from 'ioredis-coalesce/coalesce';
import { Command as Command5 } from 'ioredis5';
import { Command as ValkeyCommand } from 'iovalkey';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import {
  type Client,
  HOSTS,
  type Host,
  ioredis6,
  iovalkey,
  outcomes,
  outcomesWithin,
  ready,
  until,
} from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { collectUncaught } from '../helpers/uncaught.js';

const prefix = uniquePrefix('arguments-once');

type Transform = (args: unknown[]) => unknown[];
type CommandClass = {
  setArgumentTransformer(name: string, transform: Transform): void;
  readonly _transformer: { readonly argument: Record<string, unknown> };
};
const COMMANDS: Record<Host['name'], CommandClass> = {
  'ioredis 6': Command as never,
  'ioredis 5': Command5 as never,
  iovalkey: ValkeyCommand as never,
};

/** Until the running test ends. */
function transformArguments(host: Host, name: string, transform: Transform): void {
  const commandClass = COMMANDS[host.name];
  const { argument } = commandClass._transformer;
  const before = argument[name];
  commandClass.setArgumentTransformer(name, transform);
  onTestFinished(() => {
    if (before === undefined) Reflect.deleteProperty(argument, name);
    else argument[name] = before;
  });
}

/** Counts how often it was read as a field of an object, as a Map's entry, as an array's element, or as text. */
class Counter {
  count = 0;

  readonly #next = () => `${++this.count}`;

  get object(): Record<string, unknown> {
    return Object.defineProperty({}, 'seq', { get: () => ++this.count, enumerable: true });
  }

  get array(): unknown[] {
    return Object.defineProperty([] as unknown[], 0, { get: this.#next, enumerable: true });
  }

  get text(): { toString(): string } {
    return { toString: this.#next };
  }
}

type Scripts = Record<'give' | 'loose', (...args: unknown[]) => Promise<unknown>>;

function scripts(client: Client): Scripts {
  client.defineCommand('give', { numberOfKeys: 1, lua: 'return ARGV' });
  client.defineCommand('loose', { lua: 'return ARGV' });
  return client as unknown as Scripts;
}

/** Each with an argument that the fast path cannot take, so that the command falls back after it was looked at. */
const FALLING_THROUGH: Record<string, (client: Client, counter: Counter, key: string) => Promise<unknown>> = {
  'hset of an object with a getter': (c, { object }, key) =>
    c.hset(key, Object.defineProperty(object, 'flag', { value: true, enumerable: true }) as never),
  'hmset of an object with a getter': (c, { object }, key) =>
    c.hmset(key, Object.defineProperty(object, 'flag', { value: true, enumerable: true }) as never),
  'mset of an object with a getter': (c, { object }) =>
    c.mset(Object.defineProperty(object, `${prefix}flag`, { value: true, enumerable: true }) as never),
  'rpush of an array with a getter': (c, { array }, key) => {
    array[1] = true;
    return c.rpush(key, array as never);
  },
  'mget of an array with a getter, in front': (c, { array }) => {
    array[1] = true;
    return c.mget(array as never);
  },
  'hmget of an array with a getter': (c, { array }, key) => {
    array[1] = { toString: () => 'text' };
    return c.hmget(key, array as never);
  },
  'a script with an array with a getter': (c, { array }, key) => {
    array[1] = { toString: () => 'text' };
    return scripts(c).give(key, array);
  },
  'a script without a number of keys': (c, { array }, key) => {
    array[1] = { toString: () => 'text' };
    return scripts(c).loose(1, key, array, [[['nested'], 'deeply']]);
  },
  'a pipeline of rpush of an array with a getter': (c, { array }, key) => {
    array[1] = true;
    return c
      .pipeline()
      .rpush(key, ...(array as never[]))
      .rpush(key, array as never)
      .exec();
  },
  'a transaction of rpush of an array with a getter': (c, { array }, key) => {
    array[1] = true;
    return c
      .multi()
      .rpush(key, array as never)
      .exec();
  },
  'xread of an array with a getter': (c, { array }, key) => c.xread('STREAMS', `${key}stream`, array as never),
  'set of an object with toString()': (c, { text }, key) => c.set(key, text as never),
  'hset of fields whose values have toString()': (c, { text }, key) => c.hset(key, { a: text, b: text } as never),
};

describe.each(HOSTS)('$name: arguments are read once', (host) => {
  it.each(
    Object.keys(FALLING_THROUGH).flatMap((title) => ['', prefix].map((keyPrefix) => [title, keyPrefix] as const)),
  )('%s, the rest of which is not plain, under keyPrefix %j', async (title, keyPrefix) => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), { keyPrefix });
      const key = `${prefix}${title}`;
      await client.del(key);
      // So that a script is loaded, and not sent twice.
      await outcomes([Promise.resolve(FALLING_THROUGH[title]?.(client, new Counter(), key))]);
      await client.del(key);
      const counter = new Counter();
      const reply = await outcomes([Promise.resolve(FALLING_THROUGH[title]?.(client, counter, key))]);
      const stored = await outcomes([client.hgetall(key), client.lrange(key, 0, -1), client.get(key)]);
      return { reply, stored, read: counter.count };
    });
  });

  it.each([
    ['plain arguments', ['v']],
    ['an argument that is not plain', [true]],
    ['an argument beyond ASCII', ['é€']],
    ['too few arguments', []],
  ])('a transformer is called once: %s', async (title, args) => {
    let calls = 0;
    transformArguments(host, 'set', (given) => {
      calls += 1;
      return [...given, 'PX', `${100_000 + calls}`];
    });
    await expectAsPlain(async (kind) => {
      calls = 0;
      const client = await connectAs(kind, host, redisUrl(), { keyPrefix: prefix });
      const set = client.set as (...args: unknown[]) => Promise<unknown>;
      const reply = await outcomes([set.call(client, title, ...args)]);
      return { reply, calls };
    });
  });

  it('a transformer that throws is called once', async () => {
    // Host: the command is sent all the same, and its reply finds no one to resolve.
    const uncaught = collectUncaught();
    let calls = 0;
    transformArguments(host, 'set', () => {
      calls += 1;
      throw new RangeError('by the transformer');
    });
    const plain = await expectAsPlain(async (kind) => {
      calls = 0;
      const client = await connectAs(kind, host, redisUrl());
      const before = uncaught.length;
      const replies = await outcomes([client.set(`${prefix}k`, 'v')]);
      await until(() => uncaught.length > before, 'the reply');
      return { replies, calls };
    });
    expect(plain).toEqual({
      replies: [{ error: 'RangeError/RangeError: by the transformer', command: undefined }],
      calls: 1,
    });
  });

  it('a transformer that keeps its array and changes it later does not change the sent command', async () => {
    const kept: unknown[] = [];
    transformArguments(host, 'set', (given) => {
      kept.splice(0, kept.length, ...given);
      return kept;
    });
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      const keys = ['a', 'ż', 'c'].map((name) => `${prefix}kept:${name}`);
      const replies = [...keys.map((key, index) => client.set(key, `€${index}`)), client.echo('behind')];
      kept.push({ not: 'plain' });
      return outcomes([...replies, ...keys.map((key) => client.get(key)), client.echo('later')]);
    });
  });

  it('a transformer that returns the same array each time: the content at the time of the call is sent', async () => {
    const kept: unknown[] = [];
    transformArguments(host, 'set', (given) => {
      kept.splice(0, kept.length, ...given);
      return kept;
    });
    const keys = ['a', 'b', 'c'].map((name) => `${prefix}same:${name}`);
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), {}, { schedule: 'immediate' });
      await client.del(...keys);
      // The last of them has the batch encoded again, from what is kept of each.
      const replies = keys.map((key, index) => client.set(key, index === 2 ? '€' : `${index}`));
      return outcomes([...replies, ...keys.map((key) => client.get(key))]);
    });
  });

  it('an array with a getter that sends the same command: each command has its own arguments', async () => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      const hset = client.hset as (...args: unknown[]) => Promise<unknown>;
      await client.del(`${prefix}outer`, `${prefix}nested`);
      let reads = 0;
      const nested: Promise<unknown>[] = [];
      const fields = Object.defineProperty(['field', '', 'flag', true], 1, {
        get() {
          reads += 1;
          nested.push(hset.call(client, `${prefix}nested`, `field ${reads}`, 'nested'));
          return 'value';
        },
        enumerable: true,
      });
      await hset.call(client, `${prefix}outer`, fields);
      const counts = await Promise.all(nested);
      return [reads, counts, await client.hgetall(`${prefix}outer`), await client.hgetall(`${prefix}nested`)];
    });
  });
});

/** What a transformer or getter may do, the client having been looked at as plain. */
const WITHIN: Record<string, (client: Client) => unknown> = {
  'disconnect()': (client) => client.disconnect(),
  'disconnect(true)': (client) => client.disconnect(true),
  'stream.destroy()': (client) => client.stream.destroy(),
  'stream.end()': (client) => client.stream.end(),
  'a fast command': (client) => client.echo('nested').catch(() => {}),
  'a cold command': (client) => client.call('ECHO', 'nested').catch(() => {}),
  'select()': (client) => client.select(3).catch(() => {}),
  'multi()': (client) => client.multi({ pipeline: false }),
  'detach()': (client) => (client as unknown as Partial<Coalesced>).coalescer?.detach(),
  'subscribe()': (client) => client.subscribe(`${prefix}channel`).catch(() => {}),
};

describe.each(HOSTS)('$name: an argument transformer that changes the client', (host) => {
  it.each(Object.keys(WITHIN))('%s: all commands have the outcome of a plain client', async (title) => {
    const plain = await expectAsPlain(async (kind) => {
      let active: Client | undefined;
      transformArguments(host, 'set', (args) => {
        const client = active;
        active = undefined;
        if (client !== undefined) WITHIN[title]?.(client);
        return args;
      });
      // RESP2, where subscriber mode refuses commands; all hosts have it.
      const client = await connectAs(kind, host, redisUrl(), { protocol: 2, retryStrategy: () => 5 });
      const before = [client.echo('before'), client.call('ECHO', 'before')];
      active = client;
      const behind = [
        client.set(`${prefix}transformed`, '1'),
        client.echo('a'),
        client.call('ECHO', 'b'),
        client.echo('c'),
      ];
      const replies = await outcomesWithin(150, [...before, ...behind]);
      return { replies, acted: active === undefined };
    });
    expect(plain.acted).toBe(true);
  });
});

const WITH_AN_ARRAY: Record<string, (client: Client, key: string, array: never) => Promise<unknown>> = {
  'rpush(key, array)': (c, key, array) => c.rpush(key, array),
  'mget(array)': (c, _key, array) => c.mget(array),
  "call('rpush', key, array)": (c, key, array) => c.call('rpush', key, array),
  'a script': (c, key, array) => scripts(c).give(key, array),
  'a pipeline': (c, key, array) => c.pipeline().rpush(key, array).exec(),
  'a transaction': (c, key, array) => c.multi().rpush(key, array).exec(),
};

describe.each(HOSTS)('$name: an array with a getter that changes the client', (host) => {
  it.each(
    Object.keys(WITH_AN_ARRAY).flatMap((command) => ['', prefix].map((keyPrefix) => [command, keyPrefix] as const)),
  )('%s, keyPrefix %j: the command and those around it fare as on a plain client', async (command, keyPrefix) => {
    const uncaught = collectUncaught();
    for (const [within, act] of Object.entries(WITHIN)) {
      const key = `${prefix}within`;
      const plain = await expectAsPlain(async (kind) => {
        uncaught.length = 0;
        const client = await connectAs(kind, host, redisUrl(), { keyPrefix, retryStrategy: () => 5 });
        for (const db of [3, 0]) {
          await client.select(db);
          await client.del(key);
        }
        let acts = false;
        const get = () => {
          if (acts) act(client);
          acts = false;
          return 'v';
        };
        const array = Object.defineProperty([], 0, { get, enumerable: true });
        const send = () => WITH_AN_ARRAY[command]?.(client, key, array as never) as Promise<unknown>;
        // So that the script is loaded.
        await send();
        acts = true;
        const replies = [client.echo('before'), send(), client.echo('a'), client.call('ECHO', 'b'), client.echo('c')];
        const found = { replies: await outcomesWithin(500, replies), acted: !acts, uncaught: uncaught.map(String) };
        client.disconnect();
        return { within, ...found };
      });
      expect(plain.acted, within).toBe(true);
    }
  });
});

describe('a read that is answered from memory', () => {
  it.each<[string, unknown[]]>([
    ['all in an array', []],
    ['an array behind others', ['y', 'z']],
  ])('its arguments, %s, are read once, and what their getters write is seen', async (_, before) => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { cache: true }));
    const key = `${prefix}kept`;
    await client.hset(key, 'x', '1', 'y', '2', 'z', '3');
    let reads = 0;
    let act = (): unknown => undefined;
    const fields = Object.defineProperty(['', 'y'], 0, {
      get: () => {
        reads += 1;
        act();
        return 'x';
      },
      enumerable: true,
    });
    const read = () => client.hmget(key, ...(before as string[]), fields as never);
    const others = before.map((field) => (field === 'y' ? '2' : '3'));
    for (let round = 1; round < 5; round += 1) {
      expect(await read()).toEqual([...others, '1', '2']);
      expect(reads).toBe(round);
    }
    expect(client.coalescer.stats().cache?.hits).toBeGreaterThan(0);
    act = () => client.hset(key, 'x', '9');
    expect(await read()).toEqual([...others, '9', '2']);
    await client.del(key);
  });
});

describe('iovalkey: commands whose arguments the host transforms', () => {
  it.each<[string, (client: Client, key: string) => Promise<unknown>]>([
    ['hset of an object', (c, key) => c.hset(key, { a: 1, b: 'é' })],
    ['hset of a Map', (c, key) => c.hset(key, new Map([['a', 1]]))],
    ['hset of fields', (c, key) => c.hset(key, 'a', 1, 'b', '2')],
    ['hmset of an object', (c, key) => c.hmset(key, { a: 1, b: '€' })],
    ['mset of an object', (c, key) => c.mset({ [key]: 1, [`${key}2`]: '2' })],
    ['mset of a Map', (c, key) => c.mset(new Map([[key, '1']]))],
    ['msetnx of pairs', (c, key) => c.msetnx(key, 1, `${key}2`, 'é')],
    ['msetnx of an array', (c, key) => c.msetnx([key, 1] as never)],
  ])('%s takes the fast path, with the values of a plain client', async (title, send) => {
    const key = `${prefix}transformed:${title}`;
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, iovalkey, redisUrl());
      await client.del(key, `${key}2`);
      const reply = await outcomes([send(client, key)]);
      return [reply, await outcomes([client.hgetall(key), client.get(key), client.get(`${key}2`)])];
    });
    const client = await ready(iovalkey.createCoalesced(redisUrl()));
    await send(client, key).catch(() => {});
    expect(client.coalescer.stats()).toMatchObject({ fastCommands: 1, commands: 1 });
  });
});

describe.each(HOSTS)('$name: an argument transformer that returns no array', (host) => {
  it.each([
    ['text', 'text'],
    ['text of no character', ''],
    ['an object of length 0', { length: 0 }],
  ])('%s: as on a plain client', async (_, result) => {
    const [first] = await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      let runs = 0;
      transformArguments(host, 'append', () => {
        runs += 1;
        return result as never;
      });
      const call = async (make: () => Promise<unknown>) => make();
      const settled = await outcomes([
        call(() => client.append('k', 'v')),
        call(() => client.pipeline().append('k', 'v').get(`${prefix}none`).exec()),
        call(() => client.multi().append('k', 'v').exec()),
      ]);
      return [settled, runs] as const;
    });
    expect(JSON.stringify(first)).toMatch(/Error/);
  });
});

describe.each(HOSTS)('$name: an argument transformer that is set to nothing', (host) => {
  it.each([null, undefined, false])('%s: no transformer runs, as on a plain client', async (nothing) => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      const key = `${prefix}nothing`;
      transformArguments(host, 'hset', nothing as never);
      const replies = outcomes([
        client.hset(key, 'f', 'v'),
        client.pipeline().hset(key, 'g', 'w').exec(),
        client.hset(key, { h: 'x' }),
        client.hgetall(key),
        client.del(key),
      ]);
      return await replies;
    });
  });
});
