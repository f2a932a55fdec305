/** What expires is forgotten when Redis removes it, which takes it up to some tenths of a second. */
import type { CacheOptions } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CoalescedClient, ioredis6, ready, until } from '../helpers/hosts.js';
import { startServer } from '../helpers/redis.js';

const EXPIRES_AFTER = 1_000;
const FORGOTTEN_WITHIN = 5_000;

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const hitsOf = (client: CoalescedClient) => client.coalescer.stats().cache?.hits ?? 0;

/** A client that Redis tells of changes by now. */
async function cached(cache: true | CacheOptions): Promise<CoalescedClient> {
  const client = await ready(ioredis6.createCoalesced(server.url, {}, { cache }));
  await until(() => {
    void client.get('expiring:armed');
    return hitsOf(client) > 0;
  }, 'a read is answered from memory');
  return client;
}

/** Reads, from memory as long as it can be, until the answer is the one expected. */
async function comesTo(expected: unknown, client: CoalescedClient, read: () => Promise<unknown>): Promise<void> {
  const hits = hitsOf(client);
  let answer: unknown;
  await until(
    () => {
      // Of a silent connection a read is sent now and then, whether its answer is kept or not.
      void client.ping();
      void read().then((value) => {
        answer = value;
      });
      return JSON.stringify(answer) === JSON.stringify(expected);
    },
    `what has expired is forgotten, and the answer is ${JSON.stringify(expected)}`,
    FORGOTTEN_WITHIN,
  );
  expect(hitsOf(client)).toBeGreaterThan(hits);
}

describe.each<[string, true | CacheOptions]>([
  ['every key', true],
  ['keys of a prefix', { prefixes: ['expiring:'] }],
])('the cache, %s', (name, cache) => {
  it('forgets a key that expires', async () => {
    const key = `expiring:${name}`;
    const other = await ready(ioredis6.create(server.url));
    const client = await cached(cache);
    await other.set(key, 'value', 'PX', EXPIRES_AFTER);
    expect(await client.get(key)).toBe('value');
    await comesTo(null, client, () => client.get(key));
  });

  it.for(['nobody reads it', 'others read it'])('forgets a field that expires while %s', async (reads, { skip }) => {
    const key = `expiring:${name}:${reads}`;
    const other = await ready(ioredis6.create(server.url));
    const client = await cached(cache);
    await other.hset(key, { brief: '1', lasting: '2' });
    const known = await other.call('HPEXPIRE', key, EXPIRES_AFTER, 'FIELDS', 1, 'brief').catch(String);
    skip(/unknown command/.test(String(known)), 'fields expire from Redis 7.4 and Valkey 9 on');
    expect(await client.hgetall(key)).toEqual({ brief: '1', lasting: '2' });
    await comesTo({ lasting: '2' }, client, () => {
      if (reads === 'others read it') other.hget(key, 'brief').catch(() => {});
      return client.hgetall(key);
    });
  });
});
