/** Reads of a key whose identical read is in flight since an earlier turn: they share its reply, and are not sent. */
import { setImmediate as turn } from 'node:timers/promises';
import { Command } from 'ioredis';
import type { CacheOptions, CallOptions } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Client, type CoalescedClient, ioredis6, outcomes, ready, until } from '../helpers/hosts.js';
import { type FaultyProxy, startProxy } from '../helpers/proxy.js';
import { startServer, uniquePrefix } from '../helpers/redis.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('followed');
const KEY = `${prefix}key`;
const HASH = `${prefix}hash`;

let server: Awaited<ReturnType<typeof startServer>>;
let other: Client;

beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

interface Scene {
  readonly client: CoalescedClient;
  readonly proxy: FaultyProxy;
  /** The names of the commands sent since, but for the cache's own. */
  sent(): string[];
}

/** A client whose server is tracking its keys, and a proxy that holds everything back from now on. */
async function scene(cache: boolean | CacheOptions, options: object = {}): Promise<Scene> {
  other = ioredis6.create(server.url);
  await other.set(KEY, 'old');
  await other.hset(HASH, { f: 'v' });
  const proxy = await startProxy(server.url);
  const client = await ready(ioredis6.createCoalesced(proxy.url, options, { cache }));
  await until(async () => {
    await client.get(`${prefix}none`);
    return (client.coalescer.stats().cache?.hits ?? 0) > 0;
  }, 'a read to be answered from memory');
  const spy = spyOnSocket(client);
  proxy.stall();
  const sent = () => commandNames(spy.text()).filter((name) => name !== 'client' && name !== 'pttl');
  return { client, proxy, sent };
}

/** Issues each call in a turn of its own. */
async function inTurns<T>(...calls: readonly (() => Promise<T>)[]): Promise<Promise<T>[]> {
  const replies: Promise<T>[] = [];
  for (const call of calls) {
    replies.push(call());
    await turn();
    await turn();
  }
  return replies;
}

describe.each<[string, boolean | CacheOptions]>([
  ['every key', true],
  ['keys of a prefix', { prefixes: [prefix] }],
])('reads in flight, %s', (_, cache) => {
  it('are sent once, however many turns issue them, and the answer is then used from memory', async () => {
    const { client, proxy, sent } = await scene(cache);
    const reads = await inTurns(...Array.from({ length: 10 }, () => () => client.get(KEY)));
    proxy.resume();
    expect(await Promise.all(reads)).toEqual(Array(10).fill('old'));
    expect(await client.get(KEY)).toBe('old');
    expect(sent()).toEqual(['get']);
    expect(client.coalescer.stats().inFlight).toBe(0);
  });

  it('give each caller Buffers and objects of its own', async () => {
    const { client, proxy, sent } = await scene(cache);
    const buffers = await inTurns(
      () => client.getBuffer(KEY),
      () => client.getBuffer(KEY),
    );
    const hashes = await inTurns(
      () => client.hgetall(HASH),
      () => client.hgetall(HASH),
    );
    proxy.resume();
    const [first, second] = await Promise.all(buffers);
    first?.fill(0);
    expect(String(second)).toBe('old');
    const [one, two] = await Promise.all(hashes);
    expect(one).toEqual({ f: 'v' });
    expect(one).not.toBe(two);
    expect(sent()).toEqual(['get', 'hgetall']);
  });

  it.each<[string, (client: CoalescedClient) => Promise<unknown>, string[], unknown]>([
    ['a write of the key', (client) => client.set(KEY, 'new'), ['get', 'set', 'get'], 'new'],
    ['another read of the key', (client) => client.strlen(KEY), ['get', 'strlen', 'get'], 'old'],
    ['a script', (client) => client.eval('return 1', 0) as Promise<unknown>, ['get', 'eval', 'get'], 'old'],
    ['WATCH', (client) => client.watch(HASH), ['get', 'watch', 'get'], 'old'],
    ['SELECT', (client) => client.select(1), ['get', 'select', 'get'], null],
    ['a write of another key', (client) => client.set(`${prefix}other`, 'x'), ['get', 'set'], 'old'],
  ])('%s in between: program order holds', async (_name, between, names, last) => {
    const { client, proxy, sent } = await scene(cache);
    const replies = await inTurns<unknown>(
      () => client.get(KEY),
      () => between(client),
      () => client.get(KEY),
    );
    proxy.resume();
    const [first, , second] = await Promise.all(replies);
    expect([first, second]).toEqual(['old', last]);
    expect(sent()).toEqual(names);
  });

  it('an error rejects each caller with an error of its own', async () => {
    const { client, proxy, sent } = await scene(cache);
    const reads = await inTurns(
      () => client.get(HASH),
      () => client.get(HASH),
    );
    proxy.resume();
    const [first, second] = await Promise.allSettled(reads);
    expect(first).toMatchObject({ status: 'rejected', reason: { message: expect.stringContaining('WRONGTYPE') } });
    expect(second).toMatchObject({ status: 'rejected', reason: { command: { name: 'get', args: [HASH] } } });
    expect((first as PromiseRejectedResult).reason).not.toBe((second as PromiseRejectedResult).reason);
    expect(sent()).toEqual(['get']);
  });

  it('a change by another client in between is seen by the read that is then sent', async () => {
    const { client, proxy } = await scene(cache);
    const [first] = await inTurns(() => client.get(KEY));
    await other.set(KEY, 'new');
    proxy.resume();
    expect(['old', 'new']).toContain(await first);
    await until(async () => (await client.get(KEY)) === 'new', 'the new value');
  });

  it.each<[string, CallOptions & { abort?: true }]>([
    ['times out', { timeout: 20 }],
    ['is aborted', { abort: true }],
  ])('the first caller, which %s, leaves the reply to those who follow', async (_name, { abort, ...options }) => {
    const { client, proxy, sent } = await scene(cache);
    const aborted = new AbortController();
    const view = client.coalescer.withOptions(abort ? { signal: aborted.signal } : options);
    const [first, second] = await inTurns(
      () => view.get(KEY),
      () => client.get(KEY),
    );
    const found = outcomes([first as Promise<unknown>]);
    if (abort) aborted.abort(new Error('gone'));
    expect(await found).toEqual([expect.objectContaining({ error: expect.stringMatching(/gone|timed out/) })]);
    proxy.resume();
    expect(await second).toBe('old');
    expect(sent()).toEqual(['get']);
  });

  it('one that follows has its own timeout', async () => {
    const { client, proxy, sent } = await scene(cache);
    const [first, second] = await inTurns(
      () => client.get(KEY),
      () => client.coalescer.withOptions({ timeout: 20 }).get(KEY),
    );
    await expect(second).rejects.toThrow('Command timed out');
    proxy.resume();
    expect(await first).toBe('old');
    expect(sent()).toEqual(['get']);
  });

  it('commandTimeout rejects each caller, in the order of the calls', async () => {
    const { client } = await scene(cache, { commandTimeout: 500 });
    const order: number[] = [];
    const reads = await inTurns(...[0, 1, 2].map((index) => () => client.get(KEY).finally(() => order.push(index))));
    expect(await outcomes(reads)).toEqual(
      Array(3).fill(expect.objectContaining({ error: expect.stringContaining('Command timed out') })),
    );
    expect(order).toEqual([0, 1, 2]);
  });

  it('a lost connection: all get the reply of the next one', async () => {
    const { client, proxy } = await scene(cache, { retryStrategy: () => 1 });
    const reads = await inTurns(
      () => client.get(KEY),
      () => client.get(KEY),
      () => client.get(KEY),
    );
    client.stream.destroy();
    proxy.resume();
    expect(await Promise.all(reads)).toEqual(['old', 'old', 'old']);
  });

  it('a client that gives up: all get its error', async () => {
    const { client } = await scene(cache, { retryStrategy: null });
    const reads = await inTurns(
      () => client.get(KEY),
      () => client.get(KEY),
    );
    client.disconnect();
    const closed = expect.objectContaining({ error: expect.stringContaining('Connection is closed.') });
    expect(await outcomes(reads)).toEqual([closed, closed]);
  });

  it('a read whose key has expired since is sent', async () => {
    const { client, proxy, sent } = await scene(cache);
    proxy.resume();
    await client.set(KEY, 'short', 'PX', 600);
    const issued = performance.now();
    // Its answer, once it is kept, knows the time of the key.
    await until(async () => (await client.get(KEY)) === 'short' && sent().at(-1) === 'get', 'an answer to be kept');
    await client.get(KEY);
    proxy.stall();
    const [first] = await inTurns(() => client.strlen(KEY));
    await until(() => performance.now() > issued + 650, 'the key to expire');
    const before = sent().length;
    const [second] = await inTurns(() => client.strlen(KEY));
    expect(sent().slice(before)).toEqual(['strlen']);
    proxy.resume();
    expect(await second).toBe(0);
    expect([0, 5]).toContain(await first);
  });

  it('a read that is decided while the host settles the one in flight is sent', async () => {
    const { client, proxy, sent } = await scene(cache, { replyMapping: 'resp3' });
    const zset = `${prefix}zset`;
    await other.del(zset);
    await other.zadd(zset, 1.5, 'm');
    // The host decodes a double. Its transformer sends a command before which all waiting reads are decided.
    let following: Promise<unknown> | undefined;
    const [read] = await inTurns(() => client.zscore(zset, 'm'));
    const transformed = new Promise<void>((resolve) => {
      Command.setReplyTransformer('zscore', (score: unknown) => {
        Command.setReplyTransformer('zscore', (value: unknown) => value);
        client.set(zset, 'x').catch(() => {});
        resolve();
        return score;
      });
    });
    const { reply } = (Command as unknown as { _transformer: { reply: Record<string, unknown> } })._transformer;
    onTestFinished(() => void Reflect.deleteProperty(reply, 'zscore'));
    // In the turn of the reply, which other bytes may precede.
    client.stream.prependListener('data', (chunk: Buffer) => {
      if (chunk.includes(',1.5')) following ??= client.zscore(zset, 'm');
    });
    proxy.resume();
    await transformed;
    expect(await read).toBe(1.5);
    expect(await following).toBe(1.5);
    expect(sent().slice(0, 2)).toEqual(['zscore', 'zscore']);
  });

  it('one in flight for a second is not followed', async () => {
    const { client, proxy, sent } = await scene(cache);
    const [first] = await inTurns(() => client.get(KEY));
    await new Promise((resolve) => setTimeout(resolve, 1_020));
    const [second] = await inTurns(() => client.get(KEY));
    proxy.resume();
    expect(await Promise.all([first, second])).toEqual(['old', 'old']);
    expect(sent()).toEqual(['get', 'get']);
  });
});
