import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, vi } from 'vitest';
import { connectAs, expectAsPlain, KINDS, type Kind } from '../helpers/beside.js';
import { type CoalescedClient, HOSTS, until } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('socket-timeout');
/** Longer than any test; only a fake clock comes to its end. */
const MS = 600_000;

describe.each(HOSTS.filter(({ features }) => features.socketTimeout))('$name: socketTimeout', (host) => {
  /** What a client says that hears nothing after `commands` were issued. */
  async function silence(kind: Kind, issue: (client: CoalescedClient) => Promise<unknown>): Promise<unknown> {
    const proxy = await startProxy(redisUrl());
    const client = (await connectAs(kind, host, proxy.url, { retryStrategy: () => 10 })) as CoalescedClient;
    const errors: string[] = [];
    client.on('error', (error: Error) => errors.push(error.message));
    await client.set(`${prefix}k`, 'v');
    proxy.stall();
    // Only now, and not for the next connection: a busy machine may take longer for an answer.
    const options = client.options as { socketTimeout?: number | undefined };
    options.socketTimeout = 30;
    const reply = issue(client);
    // The error names what it is by then.
    options.socketTimeout = 31;
    await until(() => errors.length > 0, 'the socket timeout');
    options.socketTimeout = undefined;
    proxy.resume();
    return { error: errors[0], reply: await reply };
  }

  it.each([
    ['a command', (client: CoalescedClient) => client.get(`${prefix}k`)],
    ['a pipeline', (client: CoalescedClient) => client.pipeline().get(`${prefix}k`).strlen(`${prefix}k`).exec()],
    ['a transaction', (client: CoalescedClient) => client.multi().get(`${prefix}k`).exec()],
  ] as const)('%s that hears nothing ends the connection, and is sent again', async (_, issue) => {
    await expectAsPlain((kind) => silence(kind, issue));
  });

  it('keeps commands on the fast path', async () => {
    const client = (await connectAs('coalesced', host, redisUrl(), { socketTimeout: MS })) as CoalescedClient;
    const before = client.coalescer.stats();
    await Promise.all([
      client.set(`${prefix}k`, 'v'),
      client.get(`${prefix}k`),
      client.pipeline().get(`${prefix}k`).exec(),
    ]);
    const after = client.coalescer.stats();
    expect(after.fastCommands - before.fastCommands).toBe(3);
    expect(after.fallbacks.options).toBe(0);
  });

  it.each(KINDS)('%s: runs only while a command awaits its reply, from the last bytes on', async (kind) => {
    const client = (await connectAs(kind, host, redisUrl(), { socketTimeout: MS })) as CoalescedClient;
    const ended = vi.fn();
    client.stream.once('close', ended);
    const clock = vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      for (let round = 0; round < 3; round += 1) {
        const reply = client.get(`${prefix}none`);
        expect(clock.getTimerCount()).toBe(1);
        clock.advanceTimersByTime(MS - 1);
        expect(await reply).toBe(null);
        await new Promise(setImmediate);
        expect(clock.getTimerCount()).toBe(0);
        clock.advanceTimersByTime(2 * MS);
      }
      expect(ended).not.toHaveBeenCalled();
      const late = client.get(`${prefix}none`).catch(String);
      clock.advanceTimersByTime(MS);
      expect(client.stream.destroyed).toBe(true);
      client.disconnect();
      await late;
    } finally {
      clock.useRealTimers();
    }
  });

  it.each(['detach', 'detach and coalesce'])(
    'its time goes on over %s, while a command awaits its reply',
    async (how) => {
      const client = (await connectAs('coalesced', host, redisUrl(), { socketTimeout: MS })) as CoalescedClient;
      const clock = vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      try {
        const late = client.get(`${prefix}none`).catch(String);
        await new Promise(setImmediate);
        clock.advanceTimersByTime(MS / 2);
        client.coalescer.detach();
        if (how !== 'detach') coalesce(client);
        clock.advanceTimersByTime(MS / 2 - 1);
        expect(client.stream.destroyed).toBe(false);
        clock.advanceTimersByTime(1);
        expect(client.stream.destroyed).toBe(true);
        client.disconnect();
        await late;
      } finally {
        clock.useRealTimers();
      }
    },
  );

  it('goes on when the client is made plain while a command awaits its reply', async () => {
    const proxy = await startProxy(redisUrl());
    const client = (await connectAs('coalesced', host, proxy.url, { retryStrategy: () => 10 })) as CoalescedClient;
    const options = client.options as { socketTimeout?: number | undefined };
    const errors: string[] = [];
    client.on('error', (error: Error) => errors.push(error.message));
    await client.ping();
    proxy.stall();
    options.socketTimeout = 30;
    const reply = client.get(`${prefix}none`);
    client.coalescer.detach();
    await until(() => errors.length > 0, 'the socket timeout');
    options.socketTimeout = undefined;
    expect(errors[0]).toContain('Socket timeout');
    proxy.resume();
    expect(await reply).toBe(null);
  });
});
