/** How long answers from memory are given: the time to live of their keys, and errors that pass. */
import { setImmediate as turn } from 'node:timers/promises';
import type { CacheOptions } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FAST_COMMANDS, isOfMissingKey } from '../../src/commands/fast-commands.js';
import { meaningOfError } from '../../src/resp/error-meaning.js';
import { cached, fromMemory, hitsOf, keep } from '../helpers/client-cache/cached.js';
import { type Client, type CoalescedClient, ioredis6, ready, sleep, until } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { startServer, uniquePrefix } from '../helpers/redis.js';
import { bulk, startScriptedServer } from '../helpers/scripted-server.js';
import { share } from '../helpers/share.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

let server: Awaited<ReturnType<typeof startServer>>;
let other: Client;
beforeAll(async () => {
  server = await startServer({ args: ['--enable-debug-command', 'yes'] });
});
afterAll(() => server.stop());
beforeEach(async () => {
  other = await ready(ioredis6.create(server.url));
  // Redis removes no expired key by itself, so that no invalidation helps.
  await other.call('DEBUG', 'SET-ACTIVE-EXPIRE', '0');
});

const MODES: readonly (readonly [string, true | CacheOptions])[] = [
  ['every key', true],
  ['keys of a prefix', { prefixes: ['times:', 'other:'] }],
];
/** Milliseconds. */
const TTL = 1_500;

/** Fills a key of the right type, with a 0 as what a read of it may answer. */
const FILL: Record<string, (key: string) => Promise<unknown>> = {
  text: (key) => other.set(key, '\0'),
  hash: (key) => other.hset(key, 'f', 'v'),
  list: (key) => other.rpush(key, 'a'),
  set: (key) => other.sadd(key, 'm'),
  zset: (key) => other.zadd(key, 1, 'm'),
  stream: (key) => other.xadd(key, '1-1', 'f', 'v'),
  geo: (key) => other.geoadd(key, 1, 1, 'm'),
};
const READS: readonly [type: string, read: string, ...args: string[]][] = [
  ['text', 'get'],
  ['text', 'getrange', '0', '-1'],
  ['text', 'strlen'],
  ['text', 'getbit', '0'],
  ['text', 'bitcount'],
  ['text', 'bitpos', '0'],
  ['text', 'bitpos', '1'],
  ['text', 'type'],
  ['hash', 'hget', 'f'],
  ['hash', 'hmget', 'f', 'none'],
  ['hash', 'hmget', 'none', 'none'],
  ['hash', 'hgetall'],
  ['hash', 'hexists', 'f'],
  ['hash', 'hlen'],
  ['hash', 'hkeys'],
  ['hash', 'hvals'],
  ['hash', 'hstrlen', 'f'],
  ['list', 'llen'],
  ['list', 'lrange', '0', '-1'],
  ['list', 'lrange', '5', '6'],
  ['list', 'lindex', '0'],
  ['list', 'lpos', 'a'],
  ['list', 'lpos', 'a', 'COUNT', '0'],
  ['set', 'sismember', 'm'],
  ['set', 'smismember', 'm', 'none'],
  ['set', 'smembers'],
  ['set', 'scard'],
  ['zset', 'zscore', 'm'],
  ['zset', 'zmscore', 'm', 'none'],
  ['zset', 'zcard'],
  ['zset', 'zcount', '-inf', '+inf'],
  ['zset', 'zrank', 'm'],
  ['zset', 'zrevrank', 'm'],
  ['zset', 'zrange', '0', '-1', 'WITHSCORES'],
  ['zset', 'zrevrange', '0', '-1'],
  ['zset', 'zrangebyscore', '-inf', '+inf'],
  ['zset', 'zrevrangebyscore', '+inf', '-inf'],
  ['zset', 'zrangebylex', '-', '+'],
  ['zset', 'zrevrangebylex', '+', '-'],
  ['zset', 'zlexcount', '-', '+'],
  ['stream', 'xlen'],
  ['stream', 'xrange', '-', '+'],
  ['stream', 'xrevrange', '+', '-'],
  ['geo', 'geopos', 'm', 'none'],
  ['geo', 'geodist', 'm', 'm'],
  ['geo', 'geohash', 'm'],
  ['geo', 'geosearch', 'FROMLONLAT', '1', '1', 'BYRADIUS', '9', 'km'],
];
type Method = (...args: string[]) => Promise<unknown>;
const ask = (client: object, name: string, args: readonly string[]) =>
  ((client as Record<string, Method>)[name] as Method).call(client, ...args);

it('only the reads listed here are kept', () => {
  const kept = FAST_COMMANDS.filter(({ cacheable }) => cacheable).map(({ name }) => name);
  expect([...new Set(READS.map(([, name]) => name))].sort()).toEqual(kept.sort());
});

describe.each<[string, { stringNumbers?: boolean; replyMapping?: 'resp3' }]>([
  ['as by default', {}],
  ['with stringNumbers', { stringNumbers: true }],
  ["with replyMapping: 'resp3'", { replyMapping: 'resp3' }],
])('numbers and maps %s', (_, options) => {
  it.each(share(MODES, 2))(
    'each read is answered from memory until its key expires, then as Redis does, %s',
    async (__, cache) => {
      const client = await cached(server.url, cache, options);
      const plain = await ready(ioredis6.create(server.url, options));
      const prefix = `times:${uniquePrefix('each')}`;
      const keyOf = (index: number, type: string) => `${prefix}${index}:${type}`;
      const readAll = (from: object) =>
        Promise.all(READS.map(([type, name, ...args], index) => ask(from, name, [keyOf(index, type), ...args])));
      const lasts = performance.now() + TTL;
      const filled = await Promise.all(
        READS.map(async ([type], index) => {
          await FILL[type]?.(keyOf(index, type));
          return other.pexpire(keyOf(index, type), TTL);
        }),
      );
      expect(filled).not.toContain(0);
      const expired = performance.now() + TTL;
      const before = await readAll(plain);
      expect(await readAll(client)).toEqual(before);
      await client.ping();
      const hits = hitsOf(client);
      expect(await readAll(client)).toEqual(before);
      if (performance.now() < lasts) expect(hitsOf(client) - hits).toBe(READS.length);
      await until(() => performance.now() > expired + 20, 'the keys have expired');
      expect(await readAll(client)).toEqual(await readAll(plain));
    },
  );

  it.each(MODES)('answers are kept of keys that are missing, and of keys that do not expire, %s', async (__, cache) => {
    const client = await cached(server.url, cache, options);
    const prefix = `times:${uniquePrefix('lasting')}`;
    const isKept = async (reads: typeof READS) => {
      const readAll = () =>
        Promise.all(reads.map(([, name, ...args], index) => ask(client, name, [`${prefix}${index}`, ...args])));
      const first = await readAll();
      await client.ping();
      const hits = hitsOf(client);
      expect(await readAll()).toEqual(first);
      expect(hitsOf(client) - hits).toBe(reads.length);
    };
    await isKept(READS.filter(([, name]) => name !== 'bitpos'));
    await Promise.all(READS.map(([type], index) => FILL[type]?.(`${prefix}${index}`)));
    // Its reply comes behind the invalidations.
    await client.ping();
    await isKept(READS);
  });
});

it('an answer that only an existing key can have is not taken for one of a missing key', () => {
  const commandOf = (name: string) => FAST_COMMANDS.find((each) => each.name === name) as (typeof FAST_COMMANDS)[0];
  for (const [name, answer] of [
    ['zrank', 0],
    ['zrevrank', '0'],
    ['lpos', 0],
    ['lpos', [0]],
    ['get', ''],
    ['get', '0'],
    ['bitpos', 0],
    ['hget', 'none'],
    ['zrange', [['m', 0]]],
  ] as const)
    expect([name, isOfMissingKey(commandOf(name), answer)]).toEqual([name, false]);
});

describe.each(MODES)('an error that passes, %s', (_, cache) => {
  const PASSING = [
    'BUSY Redis is busy running a script.',
    'MASTERDOWN Link with MASTER is down',
    'LOADING Redis is loading the dataset in memory',
    'CLUSTERDOWN The cluster is down',
  ];

  /** A server that answers the commands named in `errors` with these errors. */
  const failing = async (errors: Record<string, string | undefined>, ttl = -1) => {
    const scripted = await startScriptedServer(([name = '', ...args]) => {
      const error = errors[args[0] === 'TRACKING' || args[0] === 'CACHING' ? args[0] : name];
      if (error !== undefined) return `-${error}\r\n`;
      if (name.toLowerCase() === 'hello')
        return `%3\r\n${bulk('server')}${bulk('redis')}${bulk('version')}${bulk('7.0.9')}${bulk('proto')}:3\r\n`;
      if (name === 'info') return bulk('redis_version:7.0.0\r\nloading:0\r\n');
      if (name === 'pttl') return `:${ttl}\r\n`;
      return name === 'get' ? bulk('v') : '+OK\r\n';
    });
    return ready(ioredis6.createCoalesced(scripted.url, { enableReadyCheck: false }, { cache }));
  };
  const armed = async (client: CoalescedClient) => {
    await until(
      () => {
        void client.get('times:armed').catch(() => {});
        return hitsOf(client) > 0;
      },
      'a read is answered from memory',
      20_000,
    );
    await client.ping();
    await turn();
  };

  it.each([...PASSING, 'MOVED 1 127.0.0.1:1'])(
    '%s, as the reply to PTTL, is asked again: the next key lives as long as it does',
    async (error) => {
      const errors: Record<string, string | undefined> = {};
      const client = await failing(errors, 300);
      await armed(client);
      errors.pttl = error;
      for (let round = 0; round < 3; round += 1)
        expect(await fromMemory(client, () => client.get('times:a'))).toBe(false);
      errors.pttl = undefined;
      await client.get('times:a');
      await client.ping();
      expect(await fromMemory(client, () => client.get('times:a'))).toBe(true);
      await sleep(350);
      expect(await fromMemory(client, () => client.get('times:a'))).toBe(false);
    },
  );

  it.each(PASSING)('%s, as the reply to a command of the cache, empties it: all reads are sent', async (error) => {
    const errors: Record<string, string | undefined> = {};
    const client = await failing(errors);
    await armed(client);
    await keep(client, () => client.get('times:a'));
    errors.pttl = error;
    await client.get('times:b');
    await client.ping();
    expect(await fromMemory(client, () => client.get('times:a'))).toBe(false);
  });

  it.each(cache === true ? ['TRACKING', 'CACHING'] : ['TRACKING'])(
    'as the reply to CLIENT %s, does not end the cache, and there is no warning',
    async (which) => {
      const errors: Record<string, string | undefined> = { [which]: PASSING[0] };
      const client = await failing(errors);
      for (let round = 0; round < 3; round += 1) {
        expect(await fromMemory(client, () => client.get('times:a'))).toBe(false);
        await client.ping();
      }
      errors[which] = undefined;
      await armed(client);
    },
  );
});

it('a time to live counts from when it was requested, not from its reply: an answer ends early rather than late', async () => {
  const ttl = 600;
  const proxy = await startProxy(server.url);
  const key = `times:${uniquePrefix('slow')}`;
  const client = await cached(proxy.url, true);
  await other.set(key, 'v', 'PX', ttl);
  proxy.stall();
  const first = client.get(key);
  await until(() => proxy.received().split(key).length > 2, 'the read and the question to be on the wire');
  await sleep(ttl + 50);
  proxy.resume();
  expect(await first).toBe('v');
  await client.ping();
  expect(await client.get(key)).toBeNull();
});

it('a busy server does not stop the requests for times to live', async () => {
  const busy = await startServer({ args: ['--busy-reply-threshold', '50'] });
  try {
    const client = await cached(busy.url, true);
    const admin = await ready(ioredis6.create(busy.url));
    const script = admin.eval('while true do end', 0).catch(String);
    let reply: unknown;
    for (let attempt = 0; attempt < 500 && !String(reply).includes('BUSY'); attempt += 1) {
      reply = await client.get('times:k').catch(String);
      await sleep(5);
    }
    expect(reply).toContain('BUSY');
    await client.get('times:k').catch(() => {});
    await (await ready(ioredis6.create(busy.url, { enableReadyCheck: false }))).call('SCRIPT', 'KILL');
    expect(await script).toContain('killed');
    await admin.set('times:k', 'v', 'PX', 10_000);
    await client.get('times:k');
    await client.ping();
    expect(await fromMemory(client, () => client.get('times:k'))).toBe(true);
    await admin.pexpire('times:k', 1);
    await until(async () => (await client.get('times:k')) === null, 'the key to be gone');
  } finally {
    await busy.stop();
  }
});

it.each(['ttl', 'time to live', 'silence'])(
  'when the %s of a hot key is over, callers of one turn share one read',
  async (what) => {
    const proxy = await startProxy(server.url);
    const key = `times:${uniquePrefix('fast')}`;
    await other.set(key, 'v');
    const client = await cached(proxy.url, { ttl: what === 'ttl' ? 200 : 60_000 });
    if (what === 'time to live') await other.pexpire(key, 1_000);
    await keep(client, () => client.get(key));
    await sleep(what === 'ttl' ? 250 : 1_200);
    const spy = spyOnSocket(client);
    await Promise.all(Array.from({ length: 1_000 }, () => client.get(key)));
    expect(commandNames(spy.text()).filter((name) => name === 'get')).toHaveLength(1);
  },
);

it('an answer is not used before its time to live is known', async () => {
  const scripted = await startScriptedServer(([name = '', ...args]) => {
    if (name.toLowerCase() === 'hello')
      return `%3\r\n${bulk('server')}${bulk('redis')}${bulk('version')}${bulk('7.0.9')}${bulk('proto')}:3\r\n`;
    if (name === 'info') return bulk('redis_version:7.0.0\r\nloading:0\r\n');
    if (name === 'pttl') return args[0] === 'late' ? '' : ':-1\r\n';
    return name === 'get' ? bulk('v') : '+OK\r\n';
  });
  const client = await ready(ioredis6.createCoalesced(scripted.url, {}, { cache: true }));
  await until(() => {
    void client.get('k');
    return hitsOf(client) > 0;
  }, 'a read is answered from memory');
  expect(await client.get('late')).toBe('v');
  const hits = hitsOf(client);
  void client.get('late').catch(() => {});
  await turn();
  await turn();
  expect(hitsOf(client)).toBe(hits);
});

it.each([
  ['BUSY Redis is busy', 'passing'],
  ['BUSYKEY Target key name already exists.', 'other'],
  ['LOADING Redis', 'passing'],
  ['MASTERDOWN Link', 'passing'],
  ['CLUSTERDOWN ', 'passing'],
  ['TRYAGAIN Multiple', 'passing'],
  ['MOVED 1 a:1', 'moved'],
  ['ASK 1 a:1', 'moved'],
  ['ASKING', 'other'],
  ['READONLY You', 'moved'],
  ['NOPERM this', 'forbidden'],
  ['NOAUTH Auth', 'forbidden'],
  ['ERR unknown command', 'other'],
  ['WRONGTYPE Oper', 'other'],
  ['', 'other'],
])('the error %j means: %s', (message, meaning) => {
  expect(meaningOfError(message)).toBe(meaning);
});
