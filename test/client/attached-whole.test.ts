/** `coalesce()` attaches to a client whole or not at all, whatever its class is like. */
import { Redis } from 'ioredis';
import { CODES, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, describe, expect, it } from 'vitest';
import { type CopiedHost, copyHost } from '../helpers/changed-hosts.js';
import { type Client, endWithTest, HOSTS, type Host, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const key = uniquePrefix('attached-whole');
const copies: CopiedHost[] = [];
afterAll(() => {
  for (const { remove } of copies) remove();
});

function use(client: Client): Promise<unknown[]> {
  return Promise.all([client.set(key, 'v'), client.get(key), client.strlen(key), client.pipeline().get(key).exec()]);
}

/** What users derive from a class. */
const DERIVED: Readonly<Record<string, (Class: Host['Redis']) => Host['Redis']>> = {
  'a getter in place of get, which needs a client': (Class) => {
    class WithGetter extends Class {}
    Object.defineProperty(WithGetter.prototype, 'get', {
      get(this: Client) {
        if (this.options === undefined) throw new Error('not of a client');
        return () => Promise.resolve('of the getter');
      },
    });
    return WithGetter;
  },
  'a method that cannot be written': (Class) => {
    class ReadOnly extends Class {}
    const value = () => Promise.resolve('read-only');
    Object.defineProperty(ReadOnly.prototype, 'get', { value, writable: false });
    return ReadOnly;
  },
  'a frozen class with methods of its own': (Class) => {
    class Frozen extends Class {
      override strlen() {
        return Promise.resolve(7) as never;
      }
    }
    Object.freeze(Frozen.prototype);
    return Frozen;
  },
  'getters in place of pipeline, multi, duplicate': (Class) => {
    class WithGetters extends Class {}
    for (const name of ['pipeline', 'multi', 'duplicate'] as const) {
      const get = () => Class.prototype[name];
      Object.defineProperty(WithGetters.prototype, name, { get });
    }
    return WithGetters;
  },
};

describe.each(HOSTS)('$name', ({ Redis: Class, create }) => {
  it.each(Object.keys(DERIVED))('%s: what cannot be overlaid is called, and all else is fast', async (name) => {
    const Derived = DERIVED[name]?.(Class) as Host['Redis'];
    const expected = await use(await ready(endWithTest(new Derived(redisUrl(), {}))));
    for (const options of [{}, { maxPending: 100 }]) {
      const client = coalesce(await ready(endWithTest(new Derived(redisUrl(), {}))), options);
      await client.ping();
      expect(await use(client)).toEqual(expected);
      expect(client.coalescer.stats().fastCommands).toBeGreaterThan(1);
      client.coalescer.detach();
      expect(Object.getPrototypeOf(client)).toBe(Derived.prototype);
      expect(await use(client)).toEqual(expected);
    }
  });

  it('a client that fails amid coalesce() is as before, and the error has a code', async () => {
    const client = await ready(create(redisUrl()));
    const before = [Object.getPrototypeOf(client), Reflect.ownKeys(client), client.stream.listeners('data')];
    client.once('newListener', () => {
      throw new RangeError('by the user');
    });
    const error = (() => {
      try {
        return coalesce(client);
      } catch (thrown) {
        return thrown;
      }
    })();
    expect(error).toMatchObject({ code: CODES.CLIENT, cause: new RangeError('by the user') });
    expect([Object.getPrototypeOf(client), Reflect.ownKeys(client), client.stream.listeners('data')]).toEqual(before);
    expect(await use(coalesce(client))).toEqual(['OK', 'v', 1, [[null, 'v']]]);
  });

  it('a client that can get no new properties is corked', async () => {
    const plain = await ready(create(redisUrl()));
    // Host: these come when a connection is lost.
    const client = Object.preventExtensions(Object.assign(plain, { prevCondition: null, prevCommandQueue: null }));
    expect(await use(coalesce(client))).toEqual(['OK', 'v', 1, [[null, 'v']]]);
    expect(Object.getPrototypeOf(client)).toBe(Class.prototype);
  });
});

it.each(['ioredis', 'ioredis5', 'iovalkey'])('a frozen class of %s is fast', async (name) => {
  const copy = copyHost(name);
  copies.push(copy);
  const { Redis: Class } = copy.load();
  // Its constructor writes what a frozen prototype has.
  const plain = await ready(endWithTest(new Class(redisUrl())));
  Object.freeze(Class.prototype);
  const client = coalesce(plain);
  await client.ping();
  expect(await use(client)).toEqual(['OK', 'v', 1, [[null, 'v']]]);
  expect(client.coalescer.stats().fastCommands).toBeGreaterThan(1);
});

it.each([{}, { maxPending: 5 }])('the overlay shows the methods that the class shows: %j', (options) => {
  const names = (client: object) => {
    const found: string[] = [];
    for (const name in client) found.push(name);
    return found.sort();
  };
  const client = endWithTest(new Redis({ lazyConnect: true }));
  const before = names(client);
  expect(names(coalesce(client, options))).toEqual([...before, 'addBuiltinCommand', 'defineCommand'].sort());
});
