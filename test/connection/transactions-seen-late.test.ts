/** `shareReads`: the server counts the commands in a transaction, however the transaction was begun. */
import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { type Client, HOSTS, ioredis6, outcomes, ready, until } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('seen-late');

describe.each(HOSTS)('$name: shareReads in a transaction that', (host) => {
  it.each(['multi', 'MULTI'])('call(%j) in a pipeline has opened: EXEC has a reply for each command', async (name) => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), {}, { shareReads: true });
      const opened = client.pipeline().call(name).exec();
      const reads = [client.get(`${prefix}k`), client.get(`${prefix}k`), client.get(`${prefix}k`)];
      return outcomes([opened, ...reads, client.call('EXEC')]);
    });
  });

  /** What is issued before `coalesce()`, and awaited if that is said. */
  const BEFORE: Record<string, (client: Client) => Promise<unknown>> = {
    'awaited multi()': (c) => c.multi({ pipeline: false }) as never,
    'multi() that awaits its reply': async (c) => void c.multi({ pipeline: false }),
    'multi() behind another command': async (c) => void [c.echo('x'), c.multi({ pipeline: false })],
    'multi() behind a transaction': async (c) => void [c.multi().echo('x').exec(), c.multi({ pipeline: false })],
    'multi() in a pipeline': (c) => c.pipeline().call('MULTI').exec(),
    'a command that was refused in it': async (c) => {
      await c.multi({ pipeline: false });
      await c.call('GET').catch(() => {});
    },
    'nothing: it was closed': (c) => c.multi().echo('x').exec(),
    nothing: async () => {},
  };

  it.each(Object.keys(BEFORE))('was open when the client was coalesced, or not, by %s', async (title) => {
    await expectAsPlain(async (kind) => {
      const client = await ready(host.create(redisUrl()));
      await BEFORE[title]?.(client);
      if (kind === 'coalesced') coalesce(client, { shareReads: true });
      const read = () => client.get(`${prefix}k`);
      // The first reply shows where replies begin; from then on commands are fast.
      const first = await client.echo('1');
      const replies = await outcomes([read(), read(), client.call('EXEC')]);
      return [first, ...replies, ...(await outcomes([read(), read()]))];
    });
  });

  // Without a ready check iovalkey sends commands again before `connect` is emitted.
  it.each([{ shareReads: true }, { fuseReads: true }])('was sent again on a new connection: %j', async (options) => {
    const proxy = await startProxy(redisUrl());
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, proxy.url, { enableReadyCheck: false }, options);
      const losing = proxy.loseRequests(`last ${kind}`);
      const begun = outcomes([client.multi({ pipeline: false }) as never, client.echo(`last ${kind}`)]);
      await losing;
      await begun;
      const read = () => client.get(`${prefix}k`);
      const replies = [...(await outcomes([read(), read()])), ...(await outcomes([read(), read(), client.exec()]))];
      return JSON.stringify(replies).replaceAll(kind, '');
    });
  });

  it('was open behind an error: EXEC has a reply for each command', async () => {
    await expectAsPlain(async (kind) => {
      const client = await ready(host.create(redisUrl()));
      await client.multi({ pipeline: false });
      if (kind === 'coalesced') coalesce(client, { shareReads: true });
      // Refused there, and the transaction goes on.
      const first = await outcomes([client.watch(`${prefix}k`)]);
      const read = () => client.get(`${prefix}k`);
      return [...first, ...(await outcomes([read(), read(), client.exec()]))];
    });
  });

  it.skipIf(host !== ioredis6)('was open, and a message comes: a push does not reveal it', async () => {
    await expectAsPlain(async (kind) => {
      const publisher = await ready(host.create(redisUrl()));
      const client = await ready(host.create(redisUrl(), { protocol: 3 }));
      const messages: string[] = [];
      client.on('message', (_, text) => messages.push(text));
      await client.subscribe(`${prefix}channel`);
      await client.multi({ pipeline: false });
      if (kind === 'coalesced') coalesce(client, { shareReads: true });
      const first = await client.echo('1');
      await publisher.publish(`${prefix}channel`, 'text');
      await until(() => messages.length === 1, 'the message');
      const read = () => client.get(`${prefix}k`);
      return [first, ...(await outcomes([read(), read(), client.exec()]))];
    });
  });

  it('is not open: a client that was coalesced on a connection in use shares its reads', async () => {
    const client = coalesce(await ready(host.create(redisUrl())), { shareReads: true });
    await client.echo('1');
    await Promise.all([client.get(`${prefix}k`), client.get(`${prefix}k`)]);
    expect(client.coalescer.stats().sharedReads).toBe(1);
  });
});
