import { describe, expect, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { cold } from '../helpers/cold.js';
import { HOSTS, type Host, ioredis6, outcomes, ready, until } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('pubsub');

type Protocol = { protocol?: 2 | 3 };

const SETUPS: readonly (readonly [string, Host, Protocol])[] = [
  ...HOSTS.map((host): [string, Host, Protocol] => [
    `${host.name}, RESP2`,
    host,
    host === ioredis6 ? { protocol: 2 } : {},
  ]),
  ['ioredis 6, RESP3', ioredis6, { protocol: 3 }],
];

describe.each(SETUPS)('%s: subscriptions', (_, host, options) => {
  it('subscribe works with fast commands before and after it in one tick', async () => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), options);
      return outcomes([
        client.echo('before'),
        client.subscribe(`${prefix}a`, `${prefix}b`),
        client.echo('behind'),
        cold(client, 'ECHO', 'cold'),
        client.ping(),
      ]);
    });
  });

  it('commands of a subscriber are refused or answered as on a plain client', async () => {
    const settled = await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), options);
      await client.subscribe(`${prefix}a`);
      return outcomes([client.get(`${prefix}none`), cold(client, 'ECHO', 'cold'), client.ping(), client.echo('x')]);
    });
    if (options.protocol !== 3) {
      expect((settled as object[])[0]).toMatchObject({ error: expect.stringContaining('subscriber mode') });
    }
  });

  it('messages arrive, unsubscribe ends it, and the client is fast again', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), options, { schedule: 'immediate' }));
    const publisher = await ready(host.createCoalesced(redisUrl(), options));
    const messages: string[] = [];
    client.on('message', (channel: string, message: string) =>
      messages.push(`${channel.slice(prefix.length)}=${message}`),
    );
    client.on('pmessage', (_pattern: string, _channel: string, message: string) => messages.push(`p=${message}`));
    client.on('messageBuffer', (_channel: Buffer, message: Buffer) => messages.push(`buffer=${message}`));
    await client.subscribe(`${prefix}a`);
    await client.psubscribe(`${prefix}b*`);
    expect(
      await Promise.all([
        publisher.publish(`${prefix}a`, '1'),
        publisher.publish(`${prefix}b1`, '2'),
        publisher.publish(`${prefix}a`, '\r\n$1\r\né'),
      ]),
    ).toEqual([1, 1, 1]);
    await until(() => messages.length === 5, 'five messages');
    expect(messages).toEqual(['a=1', 'buffer=1', 'p=2', 'a=\r\n$1\r\né', 'buffer=\r\n$1\r\né']);
    await client.unsubscribe(`${prefix}a`);
    await client.punsubscribe();
    const { fastCommands } = client.coalescer.stats();
    const spy = spyOnSocket(client);
    expect(await Promise.all([client.echo('fast'), client.echo('again')])).toEqual(['fast', 'again']);
    expect(client.coalescer.stats().fastCommands).toBe(fastCommands + 2);
    expect(spy.writes).toHaveLength(1);
  });

  it('is subscribed again after a reconnect', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), { ...options, retryStrategy: () => 5 }));
    const admin = await ready(host.createCoalesced(redisUrl()));
    await client.subscribe(`${prefix}again`);
    const received = new Promise((resolve) => client.on('message', (_channel, message) => resolve(message)));
    client.stream.destroy();
    await ready(client);
    while ((await admin.publish(`${prefix}again`, 'back')) === 0);
    expect(await received).toBe('back');
  });
});

describe('RESP3', () => {
  it('messages between the replies of fast commands answer none of them', async () => {
    const client = await connectAs('coalesced', ioredis6, redisUrl(), { protocol: 3 });
    const publisher = await connectAs('coalesced', ioredis6, redisUrl());
    const messages: string[] = [];
    client.on('message', (_channel: string, message: string) => messages.push(message));
    await client.subscribe(`${prefix}flood`, `${prefix}self`);
    const texts = Array.from({ length: 3_000 }, (_, index) => `text ${index}`);
    const flood = texts.map((text) => publisher.publish(`${prefix}flood`, text));
    const own = texts.map((text, index) => {
      if (index % 100 === 0) void client.publish(`${prefix}self`, `self ${index}`);
      return index % 50 === 0 ? cold(client, 'ECHO', text) : client.echo(text);
    });
    expect(await Promise.all(own)).toEqual(texts);
    await Promise.all(flood);
    await until(() => messages.length === 3_030, 'every message');
    expect(messages.filter((message) => message.startsWith('text'))).toEqual(texts);
  });

  it('a fast command that a message listener issues is answered', async () => {
    const client = await connectAs('coalesced', ioredis6, redisUrl(), { protocol: 3 });
    const echoes: Promise<string>[] = [];
    client.on('message', (_channel: string, message: string) => echoes.push(client.echo(message)));
    await client.subscribe(`${prefix}listener`);
    const replies = ['1', '2', '3'].map((text) => client.publish(`${prefix}listener`, text));
    expect(await Promise.all([...replies, client.echo('own')])).toEqual([1, 1, 1, 'own']);
    expect(await Promise.all(echoes)).toEqual(['1', '2', '3']);
  });
});

describe.each(HOSTS)('$name: blocking commands', (host) => {
  it('BLPOP with fast and cold commands behind it: the same order as on a plain client', async () => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      const other = await connectAs(kind, host, redisUrl());
      const order: string[] = [];
      const note = <T>(name: string, reply: Promise<T>) => reply.finally(() => order.push(name));
      const replies = [
        note('before', client.echo('before')),
        note('blpop', client.blpop(`${prefix}list`, 5)),
        note('fast', client.echo('fast')),
        note('cold', cold(client, 'ECHO', 'cold')),
      ];
      await until(() => order.length === 1, 'the command before it');
      await other.rpush(`${prefix}list`, 'item');
      const values = await Promise.all(replies);
      return [order, values.map((value) => String(value).replace(prefix, ''))];
    });
  });

  it('BLPOP that times out answers null, and the commands behind it get their own replies', async () => {
    const client = await connectAs('coalesced', host, redisUrl());
    expect(await Promise.all([client.blpop(`${prefix}never`, 0.05), client.echo('behind')])).toEqual([null, 'behind']);
  });
});
