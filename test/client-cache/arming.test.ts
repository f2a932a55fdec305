/** A connection that is lost while CLIENT TRACKING is on its way. No warning is expected here: see no-warnings.ts. */
import { coalesce } from 'ioredis-coalesce/coalesce';
import { expect, it, onTestFinished } from 'vitest';
import { type Client, type CoalescedClient, ioredis6, ready, sleep, until } from '../helpers/hosts.js';
import { redisUrl, startServer } from '../helpers/redis.js';
import { bulk, startScriptedServer } from '../helpers/scripted-server.js';
import { collectUncaught } from '../helpers/uncaught.js';

const REFUSAL = "ERR Prefix 'a:' overlaps with an existing prefix 'a:'. Prefixes for a single client must not overlap.";

it.each([
  ['before it was ready', true, false],
  ['when it was ready: the host would send the command again', false, false],
  ['with the reply to HELLO, whose second one tells nothing', false, false, 'hello'],
  // What an asynchronous layer returns, the host drops: an error would be an unhandled rejection.
  ['when it was ready, below an asynchronous layer', false, true],
])(
  'a connection whose predecessor was lost %s has a cache',
  async (_, enableReadyCheck, isLayered, lostWith = 'client') => {
    const tracked: number[] = [];
    let connections = 0;
    const server = await startScriptedServer(([name = '', ...args], connection) => {
      connections = connection;
      const isOurs = name === 'hello' ? args.length === 0 : args[0] === 'TRACKING';
      if (connection === 1 && name === lostWith && isOurs) return 'close';
      if (name.toLowerCase() === 'hello')
        return `%3\r\n${bulk('server')}${bulk('redis')}${bulk('version')}${bulk('7.0.9')}${bulk('proto')}:3\r\n`;
      if (name === 'info') return bulk('redis_version:7.0.0\r\nloading:0\r\n');
      if (name === 'get') return bulk('v');
      if (name === 'pttl') return ':-1\r\n';
      if (args[0] !== 'TRACKING') return '+OK\r\n';
      tracked.push(connection);
      return tracked.filter((each) => each === connection).length > 1 ? `-${REFUSAL}\r\n` : '+OK\r\n';
    });
    const cache = { prefixes: ['a:'] };
    const plain = ioredis6.create(server.url, { retryStrategy: () => 1, enableReadyCheck });
    const { sendCommand } = plain;
    const layer = async (...args: Parameters<typeof sendCommand>) => sendCommand.apply(plain, args);
    if (isLayered) plain.sendCommand = layer;
    const unhandled = collectUncaught('unhandledRejection');
    const client = coalesce(plain, { cache });
    await until(() => connections > 1, 'the first connection is lost');
    await ready(client);
    // The cache leaves the reads of a layered client alone.
    if (isLayered) plain.sendCommand = sendCommand;
    await until(() => {
      void client.get('a:key').catch(() => {});
      return (client.coalescer.stats().cache?.hits ?? 0) > 0;
    }, 'a read is answered from memory');
    expect(unhandled).toEqual([]);
    expect(tracked).toEqual([2]);
  },
);

it('tracking is switched off, and on again, for a client that is detached while it asks whether Redis is loading', async () => {
  let isLoading = true;
  const tracked: unknown[] = [];
  const server = await startScriptedServer(([name = '', ...args]) => {
    if (name.toLowerCase() === 'hello') return `%2\r\n${bulk('version')}${bulk('7.0.9')}${bulk('proto')}:3\r\n`;
    if (name === 'info') return bulk(`loading:${isLoading ? 1 : 0}\r\nloading_eta_seconds:0.01\r\n`);
    if (args[0] === 'TRACKING') tracked.push(args[1]);
    return '+OK\r\n';
  });
  const client = ioredis6.createCoalesced(server.url, {}, { cache: { prefixes: ['a:'] } });
  await until(() => tracked.length > 0, 'tracking to be switched on');
  client.coalescer.detach();
  coalesce(client, { cache: { prefixes: ['a:'] } });
  isLoading = false;
  await ready(client);
  await until(() => tracked.length > 2, 'tracking to be switched on again');
  expect(tracked).toEqual(['ON', 'OFF', 'ON']);
});

/** The transaction holds two reads and nothing else, and after it reads are answered from memory. */
async function endsWithTwoReads(client: CoalescedClient): Promise<void> {
  expect(await client.exec()).toEqual([
    [null, null],
    [null, null],
  ]);
  await until(() => {
    void client.get('armed:key');
    return (client.coalescer.stats().cache?.hits ?? 0) > 0;
  }, 'a read is answered from memory');
}

it('tracking is not switched on within a transaction, which would show its reply to the user', async () => {
  const server = await startServer();
  onTestFinished(() => server.stop());
  const client = coalesce(await ready(ioredis6.create(server.url)), { cache: true });
  // HELLO is on its way. When its reply comes, tracking could be switched on.
  const begun: Promise<unknown> = client.multi({ pipeline: false });
  const queued = [client.get('armed:key'), client.get('armed:key')];
  expect(await Promise.all([begun, ...queued])).toEqual(['OK', 'QUEUED', 'QUEUED']);
  await sleep(20);
  await endsWithTwoReads(client);
});

it.each([
  ['was answered before', true],
  ['is on its way', false],
])('a transaction whose MULTI %s coalesce() contains no command but those of the user', async (_, awaited) => {
  const client = await ready(ioredis6.create(redisUrl()));
  const begun = client.multi({ pipeline: false }) as unknown as Promise<unknown>;
  if (awaited) await begun;
  const coalesced = coalesce(client, { cache: true });
  await sleep(20);
  expect(await Promise.all([coalesced.get('armed:key'), coalesced.get('armed:key')])).toEqual(['QUEUED', 'QUEUED']);
  await sleep(20);
  await endsWithTwoReads(coalesced);
});

it.each<[string, (client: Client) => Promise<unknown>, boolean]>([
  ['a refused WATCH', (client) => client.watch('armed:key'), false],
  ['a command that makes EXEC fail', (client) => client.call('nosuchcommand'), true],
])('%s as the first reply does not show that no transaction is open', async (_, refused, aborts) => {
  const client = await ready(ioredis6.create(redisUrl()));
  await (client.multi({ pipeline: false }) as unknown as Promise<unknown>);
  const first = refused(client).catch(String);
  const coalesced = coalesce(client, { cache: true });
  expect(await first).toContain('ReplyError');
  await sleep(20);
  expect(await coalesced.get('armed:key')).toBe('QUEUED');
  await sleep(20);
  // After a refused WATCH Redis executes the transaction, and Valkey 9.1 aborts it.
  const plain = await ready(ioredis6.create(redisUrl()));
  await (plain.multi({ pipeline: false }) as unknown as Promise<unknown>);
  await refused(plain).catch(String);
  await plain.get('armed:key');
  const executed = await coalesced.exec().catch(String);
  expect(executed).toEqual(await plain.exec().catch(String));
  if (aborts) expect(executed).toContain('EXECABORT');
  await until(() => {
    void coalesced.get('armed:key');
    return (coalesced.coalescer.stats().cache?.hits ?? 0) > 0;
  }, 'a read is answered from memory');
});

it('a connection has a cache although its first reply is an error', async () => {
  const client = await ready(ioredis6.create(redisUrl()));
  const first = client.call('nosuchcommand').catch(String);
  const coalesced = coalesce(client, { cache: true });
  expect(await first).toContain('ReplyError');
  await until(() => {
    void coalesced.get('armed:key');
    return (coalesced.coalescer.stats().cache?.hits ?? 0) > 0;
  }, 'a read is answered from memory');
});

it('a client that is detached within a transaction sends nothing into it', async () => {
  const client = coalesce(await ready(ioredis6.create(redisUrl())), { cache: true });
  await until(() => {
    void client.get('armed:key');
    return (client.coalescer.stats().cache?.hits ?? 0) > 0;
  }, 'a read is answered from memory');
  await client.multi({ pipeline: false });
  client.coalescer.detach();
  await client.get('armed:key');
  expect(await client.exec()).toEqual([[null, null]]);
});

it.each([
  ['at once', false],
  ['before its transaction ends', true],
])('tracking stays off on a client that is detached %s', async (_, inTransaction) => {
  const client = coalesce(await ready(ioredis6.create(redisUrl())), { cache: true });
  if (inTransaction) {
    await client.multi({ pipeline: false });
    await sleep(20);
  }
  client.coalescer.detach();
  if (inTransaction) expect(await client.exec()).toEqual([]);
  await sleep(20);
  expect(await client.call('CLIENT', 'INFO')).toMatch(/ flags=N /);
});
