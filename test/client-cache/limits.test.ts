/** What is tracked, kept and held, and with which servers. */
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { Command } from 'ioredis';
import type { CacheOptions } from 'ioredis-coalesce/coalesce';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Tracking } from '../../src/cache/tracking.js';
import { TransactionState } from '../../src/core/transaction-state.js';
import type { EntryContext } from '../../src/host/command-facade.js';
import type { InternalEntry } from '../../src/reads/internal-entry.js';
import { startCluster } from '../../tools/redis-cluster.js';
import { cached, fromMemory, hitsOf, keep } from '../helpers/client-cache/cached.js';
import { ioredis6 as clusters, warm } from '../helpers/cluster/clients.js';
import { cold } from '../helpers/cold.js';
import { arrayBuffersNow, heapNow } from '../helpers/hostile/heap.js';
import { type Client, type CoalescedClient, ioredis6, ready, sleep, until } from '../helpers/hosts.js';
import { startServer, uniquePrefix } from '../helpers/redis.js';
import { refused } from '../helpers/refused.js';
import { bulk, startScriptedServer } from '../helpers/scripted-server.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_CACHE');

let server: Awaited<ReturnType<typeof startServer>>;
let other: Client;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  other = await ready(ioredis6.create(server.url));
});
afterEach(() => other.flushall());

const MODES: readonly (readonly [string, true | CacheOptions])[] = [
  ['every key', true],
  ['keys of a prefix', { prefixes: ['limit:', 'other:'] }],
];
const k = uniquePrefix('limit');

it.each(['are too old', 'were revoked in the turn'])('maxPending bounds reads whose answers %s', async (why) => {
  const client = await cached(server.url, { ttl: 300 }, {}, { maxPending: 10 });
  const keys = Array.from({ length: 30 }, (_, index) => `${k}${index}`);
  await Promise.all(keys.map((key) => other.set(key, 'v')));
  for (const key of keys) await client.get(key);
  expect(await fromMemory(client, () => client.get(k.concat('0')))).toBe(true);
  if (why === 'are too old') await sleep(350);
  const calls = keys.map((key) => client.get(key));
  if (why !== 'are too old') client.coalescer.cache?.clear();
  const outcomes = refused(calls);
  await turn();
  // The last one may have CLIENT CACHING and PTTL with it.
  expect(client.commandQueue.length).toBeLessThanOrEqual(12);
  const { answered } = await outcomes;
  expect(answered).toBeGreaterThan(0);
  expect(client.coalescer.stats().refusedCalls).toBe(keys.length - answered);
});

describe('Redis tracks', () => {
  const tracked = async () => Number(/tracking_total_keys:(\d+)/.exec(String(await other.info('stats')))?.[1]);

  it.each<[string, (client: CoalescedClient, keys: string[]) => Promise<unknown>]>([
    ['mget', (client, keys) => client.mget(keys)],
    ['a pipeline', (client, keys) => client.pipeline(keys.map((key) => ['get', key])).exec()],
    ['a transaction', (client, keys) => client.multi(keys.map((key) => ['get', key])).exec() as Promise<unknown>],
    ['reads of the host’s', (client, keys) => Promise.all(keys.map((key) => cold(client, 'GET', key)))],
  ])('no key of %s, whose answers are not kept', async (_, read) => {
    const client = await cached(server.url, true);
    const before = await tracked();
    const keys = Array.from({ length: 100 }, (__, index) => `${k}${index}`);
    await other.mset(keys.flatMap((key) => [key, 'v']));
    await read(client, keys);
    expect(await tracked()).toBe(before);
    await client.get(keys[0] as string);
    expect(await tracked()).toBe(before + 1);
  });

  it('a key once: another read of it asks for no more', async () => {
    const client = await cached(server.url, true);
    await client.get(k);
    const spy = spyOnSocket(client);
    await client.strlen(k);
    expect(commandNames(spy.text())).not.toContain('client');
    expect(client.coalescer.stats().cache?.entries).toBeGreaterThanOrEqual(2);
  });

  it('no key that is read once while the cache is full', async () => {
    const client = await cached(server.url, { maxEntries: 10 });
    const keys = Array.from({ length: 500 }, (_, index) => `${k}${index}`);
    await other.mset(keys.flatMap((key) => [key, 'v']));
    await Promise.all(keys.map((key) => client.get(key)));
    expect(await tracked()).toBeLessThan(20);
  });
});

it.each([
  ['7.0.9', true],
  ['7.0.10', true],
  ['7.2', true],
  ['10.0.0-rc1', true],
  ['7.0.7', false],
  ['7', false],
  ['6.2.99', false],
  ['unstable', false],
])('a server of version %s is asked to track keys: %s', async (version, isAsked) => {
  const sendCommand = ({ name, resolve }: InternalEntry) => resolve(name === 'HELLO' ? { version, proto: 3 } : 'OK');
  const context = { client: { sendCommand }, commandClass: Command } as unknown as EntryContext;
  const tracking = new Tracking(context, [], new TransactionState());
  await tracking.arm();
  expect(tracking.on).toBe(isAsked);
});

describe.each(MODES)('permissions, %s', (_, cache) => {
  const bob = async () => {
    await other.call('ACL', 'SETUSER', 'bob', 'on', '>pw', '~*', '&*', '+@all');
    await other.set(k, 'secret');
    const client = await cached(server.url, cache, { username: 'bob', password: 'pw' });
    await keep(client, () => client.get(k));
    return client;
  };

  it('of the client’s own ACL SETUSER hold at once', async () => {
    const client = await bob();
    const set = client.call('ACL', 'SETUSER', 'bob', '-get');
    await expect(client.get(k)).rejects.toThrow('NOPERM');
    await set;
  });

  it('that were refused once are not forgotten: no answer from memory follows', async () => {
    const client = await bob();
    await keep(client, () => client.strlen(k));
    await other.call('ACL', 'SETUSER', 'bob', '-get', '-strlen');
    await expect(client.getBuffer(k)).rejects.toThrow('NOPERM');
    for (let round = 0; round < 5; round += 1) {
      await expect(client.get(k)).rejects.toThrow('NOPERM');
      await expect(client.strlen(k)).rejects.toThrow('NOPERM');
    }
  });

  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['a read', (client) => client.hget(k, 'f')],
    ['a read whose answer is not kept', (client) => client.hget(Buffer.from(k), 'f')],
    ['a read of the host’s', (client) => cold(client, 'HGET', k, 'f')],
  ])('an error of one key, as the reply to %s, drops the answers of that key', async (_, fails) => {
    const client = await cached(server.url, cache);
    await other.set(k, 'v');
    await keep(
      client,
      () => client.get(k),
      () => client.get(`${k}other`),
    );
    await fails(client).catch(() => {});
    expect(await fromMemory(client, () => client.get(`${k}other`))).toBe(true);
    expect(await fromMemory(client, () => client.get(k))).toBe(false);
  });
});

describe('memory', () => {
  it('does not hold the text that a key was cut out of', async () => {
    const client = await cached(server.url, true);
    const before = heapNow();
    for (let index = 0; index < 200; index += 1) {
      const body = `${'x'.repeat(100_000)}${k}:a sufficiently long key ${index}`;
      await client.get(body.slice(100_000));
      await client.hget(`${k}h`, body.slice(100_000));
    }
    expect(client.coalescer.stats().cache?.entries).toBeGreaterThanOrEqual(400);
    expect(heapNow() - before).toBeLessThan(4e6);
  });

  it('does not hold Node’s pool for a small Buffer', async () => {
    const client = await cached(server.url, true);
    await other.mset(Array.from({ length: 500 }, (_, index) => [`${k}${index}`, 'x'.repeat(40)]).flat());
    const before = arrayBuffersNow();
    const kept: unknown[] = [];
    for (let index = 0; index < 500; index += 1) {
      await client.getBuffer(`${k}${index}`);
      for (let others = 0; others < 40; others += 1) kept[0] = Buffer.from('x'.repeat(100));
    }
    expect(client.coalescer.stats().cache?.entries).toBeGreaterThanOrEqual(500);
    expect(arrayBuffersNow() - before).toBeLessThan(1e6);
  });
});

it.each<[string, (client: Client, index: number) => Promise<unknown>]>([
  ['keys', (client, index) => client.get(`${k}${index}`)],
  ['fields of one hash', (client, index) => client.hget(`${k}big`, `f${index}`)],
  ['ranges of one list', (client, index) => client.lrange(`${k}list`, index, index + 1)],
])('a scan over %s leaves the hot keys where they are', async (_, read) => {
  const client = await cached(server.url, { maxEntries: 200 });
  await other.rpush(`${k}list`, 'a', 'b');
  const fast = Array.from({ length: 100 }, (__, index) => `${k}fast:${index}`);
  const readFast = () => Promise.all(fast.map((key) => client.get(key)));
  await readFast();
  await client.ping();
  await readFast();
  for (let index = 0; index < 5_000; index += 500) {
    await Promise.all(Array.from({ length: 500 }, (__, more) => read(client, index + more)));
  }
  const before = hitsOf(client);
  await readFast();
  expect(hitsOf(client) - before).toBeGreaterThan(90);
});

describe('while a command is on its way that', () => {
  const held = (client: CoalescedClient) => client.coalescer.stats().cache?.held ?? 0;
  const fastDuring = async (cache: true | CacheOptions, send: (client: Client) => Promise<unknown>) => {
    const client = await cached(server.url, cache);
    await other.set(k, 'v');
    await keep(client, () => client.get(k));
    const before = held(client);
    const sent = send(client).catch(() => {});
    const fast = await fromMemory(client, () => client.get(k));
    await sent;
    return { fast, held: held(client) - before };
  };

  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['BITFIELD_RO', (client) => client.call('BITFIELD_RO', `${k}x`, 'GET', 'u8', '0')],
    ['XINFO', (client) => client.call('XINFO', 'STREAM', `${k}x`)],
    ['OBJECT', (client) => client.object('ENCODING', `${k}x`)],
    ['BITOP', (client) => client.bitop('AND', `${k}dest`, `${k}x`)],
    ['ZINTERSTORE', (client) => client.zinterstore(`${k}dest`, 1, `${k}x`)],
    ['LMPOP', (client) => client.lmpop(1, `${k}x`, 'LEFT')],
    [
      'GEOSEARCHSTORE',
      (client) => client.call('GEOSEARCHSTORE', `${k}dest`, `${k}x`, 'FROMLONLAT', '1', '1', 'BYRADIUS', '1', 'm'),
    ],
    ['XREAD', (client) => client.call('XREAD', 'STREAMS', `${k}x`, '0')],
    ['XREADGROUP', (client) => client.call('XREADGROUP', 'GROUP', 'g', 'c', 'STREAMS', `${k}x`, '>')],
    ['INFO', (client) => client.info()],
  ])('does not change the key, as %s, reads are answered from memory', async (_, send) => {
    expect(await fastDuring(true, send)).toEqual({ fast: true, held: 0 });
  });

  it.each<[string, (client: Client, key: string) => Promise<unknown>]>([
    ['BITOP', (client, key) => client.bitop('NOT', key, `${k}src`)],
    ['SORT … STORE', (client, key) => client.sort(`${k}src2`, 'STORE', key)],
    ['ZUNIONSTORE', (client, key) => client.zunionstore(key, 1, `${k}src3`)],
    ['LMPOP', (client, key) => client.lmpop(2, `${k}none`, key, 'LEFT')],
  ])('changes the key, as %s, the read sees it', async (_, write) => {
    const client = await cached(server.url, true);
    await other.rpush(k, 'a', 'b');
    await keep(
      client,
      () => client.type(k),
      () => client.llen(k).catch(() => 'wrong type'),
    );
    const [, length] = await Promise.all([write(client, k), client.llen(k).catch(() => 'wrong type')]);
    expect(length).not.toBe(2);
  });

  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['EVAL', (client) => client.eval("return redis.call('SET', KEYS[1], 'x')", 1, `${k}x`)],
    ['EVAL_RO', (client) => client.call('EVAL_RO', 'return 1', '1', `${k}x`)],
    ['SORT', (client) => client.sort(`${k}x`)],
    ['KEYS', (client) => client.keys('none')],
  ])('may change or show anything, as %s, reads are sent, and counted as held', async (_, send) => {
    expect(await fastDuring(true, send)).toEqual({ fast: false, held: 1 });
  });

  it('shows anything, but changes nothing, reads are answered again once its reply has come', async () => {
    const client = await cached(server.url, true);
    await other.set(k, 'v');
    await keep(client, () => client.get(k));
    await client.keys('none');
    expect(await fromMemory(client, () => client.get(k))).toBe(true);
  });

  it('is a script that changes only its declared keys, as the option scripts says, other reads are answered', async () => {
    const evals = (client: Client) => client.eval("return redis.call('SET', KEYS[1], 'x')", 1, `${k}x`);
    expect(await fastDuring({ scripts: 'keys' }, evals)).toEqual({ fast: true, held: 0 });
    const client = await cached(server.url, { scripts: 'keys' });
    client.defineCommand('put', { numberOfKeys: 1, lua: "return redis.call('SET', KEYS[1], ARGV[1])" });
    const put = (client as unknown as { put(key: string, value: string): Promise<unknown> }).put.bind(client);
    await other.set(k, 'old');
    await keep(client, () => client.get(k));
    const [, value] = await Promise.all([put(k, 'new'), client.get(k)]);
    expect(value).toBe('new');
  });
});

describe('nothing is cached, and a warning says why, with a server', () => {
  const start = async (fields: Record<string, string>) => {
    const sent: string[] = [];
    const scripted = await startScriptedServer((command) => {
      const [name = '', ...args] = command;
      if (name.toLowerCase() === 'hello') {
        const entries = Object.entries({ server: bulk('redis'), ...fields });
        return `%${entries.length}\r\n${entries.map(([field, value]) => bulk(field) + value).join('')}`;
      }
      if (name === 'info') return bulk('redis_version:7.0.0\r\nloading:0\r\n');
      if (name === 'pttl') return ':-1\r\n';
      if (args[0] !== 'TRACKING') return bulk('v');
      sent.push(args.join(' '));
      return '+OK\r\n';
    });
    return { url: scripted.url, sent };
  };

  it.each([
    ['older than 7.0.9', { version: bulk('7.0.8'), proto: ':3\r\n' }, '7.0.8'],
    ['that has refused RESP3', { version: bulk('7.2.0'), proto: ':2\r\n' }, 'RESP3'],
  ])('%s', async (_, hello, why) => {
    const warning = once(process, 'warning');
    const { url, sent } = await start(hello);
    const client = await ready(ioredis6.createCoalesced(url, {}, { cache: true }));
    expect(((await warning)[0] as Error).message).toContain(why);
    for (let round = 0; round < 3; round += 1) expect(await fromMemory(client, () => client.get('k'))).toBe(false);
    expect(sent).toEqual([]);
  });

  it('on which the user tracks the same prefix, with invalidations that go elsewhere', async () => {
    const warning = once(process, 'warning');
    const client = await ready(ioredis6.create(server.url));
    const target = await ready(ioredis6.create(server.url));
    const id = String(await target.client('ID'));
    await client.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, 'BCAST', 'PREFIX', 'limit:');
    const coalesced = coalesce(client, { cache: { prefixes: ['limit:'] } }) as CoalescedClient;
    await coalesced.set(k, 'old');
    expect(((await warning)[0] as Error).message).toContain("overlaps with an existing prefix 'limit:'");
    for (let round = 0; round < 3; round += 1) expect(await coalesced.get(k)).toBe('old');
    await other.set(k, 'new');
    await sleep(20);
    expect(await coalesced.get(k)).toBe('new');
  });

  it('that refuses CLIENT CACHING', async () => {
    await other.call('ACL', 'SETUSER', 'uncached', 'on', '>pw', '~*', '+@all', '-client|caching');
    const client = await ready(
      ioredis6.createCoalesced(server.url, { username: 'uncached', password: 'pw' }, { cache: true }),
    );
    await other.set(k, 'old');
    await sleep(50);
    for (let round = 0; round < 3; round += 1) expect(await client.get(k)).toBe('old');
    await other.set(k, 'new');
    await sleep(20);
    expect(await client.get(k)).toBe('new');
    expect(client.coalescer.stats().cache).toMatchObject({ hits: 0, entries: 0 });
  });

  it('that refuses PTTL only: answers are kept, and reconnectOnError is not called for commands of the cache', async () => {
    await other.call('ACL', 'SETUSER', 'timeless', 'on', '>pw', '~*', '+@all', '-pttl');
    const asked: Error[] = [];
    const reconnectOnError = (error: Error) => asked.push(error) > 0;
    const client = await cached(server.url, true, { username: 'timeless', password: 'pw', reconnectOnError });
    await other.set(k, 'v');
    await keep(client, () => client.get(k));
    await sleep(150);
    expect(await fromMemory(client, () => client.get(k))).toBe(true);
    expect(asked).toEqual([]);
  });
});

it('a Cluster sends explicit pipelines and transactions on the light path, and forgets what a redirection revokes', {
  timeout: 60_000,
}, async () => {
  const nodes = await startCluster({ masters: 2, replicas: 0 });
  try {
    const cluster = await warm(clusters.createCoalesced(nodes, {}, { cache: true }));
    const { fallbacks } = cluster.coalescer.stats();
    await cluster.pipeline().get('{a}1').get('{a}2').exec();
    await cluster.multi().set('{a}1', 'v').exec();
    expect(cluster.coalescer.stats().fallbacks).toEqual(fallbacks);
    await until(() => {
      void cluster.get('{a}1');
      return (cluster.coalescer.stats().cache?.hits ?? 0) > 0;
    }, 'a read is answered from memory');
    expect(await cluster.get('{a}1')).toBe('v');
    void cluster.set('{a}1', 'own');
    expect(await cluster.get('{a}1')).toBe('own');
  } finally {
    await nodes.stop();
  }
});
