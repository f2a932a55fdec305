import type { RedisOptions } from 'ioredis';
import { type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectAs, createAs, expectAsPlain, type Kind } from '../helpers/beside.js';
import { cold } from '../helpers/cold.js';
import { HOSTS, type Host, ioredis6, outcomes, outcomesWithin, ready, sleep, until } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { type RedisServer, redisUrl, startServer, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('reconnect');

async function ownServer(port?: number): Promise<RedisServer> {
  const server = await startServer(port === undefined ? {} : { port });
  onTestFinished(() => server.stop());
  return server;
}

/** Connected, and again soon after the connection is lost. */
const connect = (host: Host, kind: Kind, url: string, options: RedisOptions = {}, own: CoalesceOptions = {}) =>
  connectAs(kind, host, url, { retryStrategy: () => 10, ...options }, own);

describe.each(HOSTS)('$name: a lost connection', (host) => {
  it('the server is killed in the middle of a batch and comes back', async () => {
    const server = await ownServer();
    const client = await connect(host, 'coalesced', server.url);
    const replies = [
      client.call('DEBUG', 'SLEEP', '0.4'),
      ...Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? cold(client, 'INCR', 'counter') : client.incr('counter'))),
      client.pipeline().incr('counter').echo('piped').exec(),
      client.echo('last'),
    ];
    await sleep(50);
    await server.kill();
    await ownServer(server.port);
    expect(await Promise.all(replies)).toEqual([
      'OK',
      ...Array.from({ length: 60 }, (_, n) => n + 1),
      [
        [null, 61],
        [null, 'piped'],
      ],
      'last',
    ]);
    expect(await client.get('counter')).toBe('61');
  });

  it('CLIENT KILL: commands that were not executed are sent again, and executed once', async () => {
    const server = await ownServer();
    const client = await connect(host, 'coalesced', server.url);
    const admin = await ready(host.create(server.url));
    const id = await client.client('ID');
    await admin.client('PAUSE', 60_000, 'WRITE');
    const replies = Array.from({ length: 50 }, () => client.incr('counter'));
    await sleep(20);
    await admin.client('KILL', 'ID', id);
    await until(() => client.status === 'ready', 'a new connection');
    await admin.client('UNPAUSE');
    expect(await Promise.all(replies)).toEqual(Array.from({ length: 50 }, (_, n) => n + 1));
  });

  it('after removeAllListeners(), once: the connection is coalesced when it has answered, the next ones at once', async () => {
    const client = coalesce(await connect(host, 'plain', redisUrl()));
    client.removeAllListeners();
    const missed: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const again = new Promise((resolve) => client.once('ready', resolve));
      client.stream.destroy();
      await again;
      const before = client.coalescer.stats();
      expect(await client.echo('first')).toBe('first');
      const texts = Array.from({ length: 20 }, (_, index) => `${round}/${index}`);
      expect(await Promise.all(texts.map((text) => client.echo(text)))).toEqual(texts);
      const after = client.coalescer.stats();
      missed.push(after.fallbacks.connection - before.fallbacks.connection);
      expect(after.fastCommands - before.fastCommands).toBe(21 - (missed[round] as number));
    }
    expect(missed).toEqual([1, 0, 0]);
  });

  it('after removeAllListeners() before the first connection: it is coalesced when it has answered', async () => {
    const client = coalesce(host.create(redisUrl(), { lazyConnect: true }));
    client.removeAllListeners();
    await client.connect();
    for (const text of ['first', 'second', 'third']) expect(await client.echo(text)).toBe(text);
    expect(client.coalescer.stats()).toMatchObject({ fastCommands: 2, fallbacks: { connection: 1 } });
  });

  it('a listener of connect that sends before ours has run: the connection is fast', async () => {
    const client = host.create(redisUrl(), { enableReadyCheck: false, retryStrategy: () => 1 });
    const sent: Promise<string | null>[] = [];
    client.on('connect', () => void sent.push(client.get(`${prefix}none`)));
    const { coalescer } = coalesce(await ready(client));
    const again = new Promise((resolve) => client.once('ready', resolve));
    client.stream.destroy();
    await again;
    const before = coalescer.stats().fastCommands;
    await Promise.all(Array.from({ length: 20 }, () => client.get(`${prefix}none`)));
    expect(coalescer.stats().fastCommands - before).toBe(20);
    await Promise.all(sent);
  });

  it('a reset after any byte of the replies: every value is right, answered commands are not sent again', async () => {
    for (const bytes of [1, 2, 4, 5, 17, 40, 41, 42, 43, 99, 250, 251]) {
      const proxy = await startProxy(redisUrl());
      const client = await connect(host, 'coalesced', proxy.url);
      const texts = Array.from({ length: 40 }, (_, n) => `<${bytes}/${n}${n % 7 === 0 ? 'é' : ''}>`);
      proxy.resetAfterReplyBytes(bytes);
      const answered: string[] = [];
      const replies = texts.map((text, n) => {
        const reply = n % 4 === 0 ? (cold(client, 'ECHO', text) as Promise<string>) : client.echo(text);
        return reply.finally(() => {
          if (proxy.connections === 1) answered.push(text);
        });
      });
      expect(await Promise.all(replies)).toEqual(texts);
      expect(proxy.connections).toBe(2);
      const received = proxy.received();
      const times = texts.map((text) => received.split(text).length - 1);
      expect(times).toEqual(texts.map((text) => (answered.includes(text) ? 1 : 2)));
      client.disconnect();
    }
  });

  it('loses nothing when more commands are in the backlog of maxInFlight than on the wire', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await connect(host, 'coalesced', proxy.url, {}, { maxInFlight: 5 });
    proxy.resetAfterReplyBytes(30);
    const texts = Array.from({ length: 60 }, (_, n) => `text ${n}`);
    expect(
      await Promise.all(texts.map((text, n) => (n % 4 === 0 ? cold(client, 'ECHO', text) : client.echo(text)))),
    ).toEqual(texts);
    expect(proxy.connections).toBe(2);
  });

  it('the new connection is fast again, and in the database that was selected', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.createCoalesced(proxy.url, { retryStrategy: () => 10 }));
    await client.select(3);
    await client.set(`${prefix}${host.name}`, 'in 3');
    proxy.stall();
    const inFlight = [client.get(`${prefix}${host.name}`), client.select(4), client.get(`${prefix}${host.name}`)];
    await sleep(20);
    proxy.reset();
    proxy.resume();
    expect(await Promise.all(inFlight)).toEqual(['in 3', 'OK', null]);
    expect(proxy.connections).toBe(2);
    const { fastCommands } = client.coalescer.stats();
    expect(await client.get(`${prefix}${host.name}`)).toBeNull();
    await client.select(3);
    expect(await client.getdel(`${prefix}${host.name}`)).toBe('in 3');
    expect(client.coalescer.stats().fastCommands).toBe(fastCommands + 2);
  });

  it('autoResendUnfulfilledCommands: false settles what a plain client settles, and leaves open what it leaves', async () => {
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      const client = await connect(host, kind, proxy.url, { autoResendUnfulfilledCommands: false });
      proxy.stall();
      const replies = [client.get('a'), cold(client, 'ECHO', 'b'), client.echo('c')];
      await sleep(20);
      proxy.reset();
      proxy.resume();
      const settled = await outcomesWithin(200, replies);
      return [settled, await client.echo('next')];
    });
  });

  it('maxRetriesPerRequest rejects as on a plain client', async () => {
    const settled = await expectAsPlain(async (kind) => {
      const server = await ownServer();
      const client = await connect(host, kind, server.url, { maxRetriesPerRequest: 2 });
      const replies = [
        client.call('DEBUG', 'SLEEP', '5'),
        client.get('a'),
        cold(client, 'ECHO', 'b'),
        client.echo('c'),
      ];
      await sleep(30);
      await server.kill();
      replies.push(client.get('offline'));
      return outcomes(replies);
    });
    expect(settled[1]).toMatchObject({ error: expect.stringContaining('MaxRetriesPerRequestError') });
  });

  it('a retryStrategy that gives up rejects as on a plain client', async () => {
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      const client = await connect(host, kind, proxy.url, { retryStrategy: () => null });
      proxy.stall();
      const replies = [client.get('a'), cold(client, 'ECHO', 'b'), client.echo('c')];
      await sleep(20);
      proxy.reset();
      const settled = await outcomes(replies);
      return [settled, client.status, await outcomes([client.get('after the end')])];
    });
  });

  it('enableOfflineQueue: false refuses as a plain client does', async () => {
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      const client = createAs(kind, host, proxy.url, { enableOfflineQueue: false, retryStrategy: () => 50 });
      const early = await outcomes([client.get('a'), cold(client, 'ECHO', 'b')]);
      await ready(client);
      const online = await outcomes([client.echo('c')]);
      proxy.reset();
      await until(() => client.status === 'reconnecting', 'the lost connection to be noticed');
      return [early, online, await outcomes([client.get('d')])];
    });
  });

  it.each([1, 2] as const)('reconnectOnError that returns %i works as on a plain client', async (answer) => {
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      let asked = 0;
      const reconnectOnError = (error: Error) =>
        error.message.startsWith('WRONGTYPE') && asked++ === 0 ? answer : false;
      const client = await connect(host, kind, proxy.url, { reconnectOnError });
      const k = `${prefix}list:${kind}`;
      await client.rpush(k, 'x');
      const replies = [client.echo('before'), client.get(k), client.echo('behind'), cold(client, 'ECHO', 'cold')];
      const settled = await outcomesWithin(300, replies);
      const after = await client.echo('after');
      await client.del(k);
      return [JSON.parse(JSON.stringify(settled).replaceAll(k, 'k')) as unknown, after, asked, proxy.connections];
    });
  });
});

it('many reconnects: leave no listener behind and every caller with its value', async () => {
  const proxy = await startProxy(redisUrl());
  const client = await connect(ioredis6, 'coalesced', proxy.url);
  const listeners = () => client.eventNames().map((name) => [name, client.listenerCount(name)]);
  const before = listeners();
  const replies: Promise<string>[] = [];
  for (let round = 0; round < 10; round += 1) {
    for (let n = 0; n < 20; n += 1) replies.push(client.echo(`${round}/${n}`));
    await sleep(round % 3);
    proxy.reset();
    await sleep(15);
  }
  expect(await Promise.all(replies)).toEqual(replies.map((_, index) => `${Math.floor(index / 20)}/${index % 20}`));
  await until(() => listeners().length <= before.length, 'the listeners of reconnecting gone');
  expect(listeners()).toEqual(before);
});
