import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { cold } from '../helpers/cold.js';
import { type Client, HOSTS, ioredis6, outcomes, ready, sleep } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('detach');

/** All that coalescing could leave behind. */
function traces(client: Client) {
  const { stream } = client;
  return {
    prototype: Object.getPrototypeOf(client) as object,
    // But for the handle, by which its options and last counters can be read.
    own: Reflect.ownKeys(client).filter((key) => key !== 'coalescer'),
    streamOwn: Reflect.ownKeys(stream),
    listeners: client.eventNames().map((name) => [name, client.listeners(name)]),
    streamListeners: stream
      .eventNames()
      .map((name) => [name, stream.listeners(name)] as const)
      .filter(([, listeners]) => listeners.length > 0)
      .toSorted(([a], [b]) => String(a).localeCompare(String(b))),
    keys: Object.keys(client),
  };
}

describe.each(HOSTS)('$name: detach()', (host) => {
  it('leaves the client and its stream as they were', async () => {
    const client = await ready(host.create(redisUrl()));
    await client.ping();
    const before = traces(client);
    const coalesced = coalesce(client, { maxInFlight: 7 });
    expect(Object.getPrototypeOf(client)).not.toBe(before.prototype);
    await Promise.all([coalesced.echo('a'), cold(coalesced, 'ECHO', 'b'), coalesced.multi().echo('c').exec()]);
    coalesced.coalescer.detach();
    expect(traces(client)).toEqual(before);
    expect(Object.getPrototypeOf(client)).toBe(before.prototype);
    expect(await client.echo('plain')).toBe('plain');
  });

  it('sends the open batch, and commands in flight settle', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxInFlight: 7 }));
    const texts = Array.from({ length: 50 }, (_, index) => `text ${index}`);
    const replies = texts.map((text, index) => (index % 4 === 0 ? cold(client, 'ECHO', text) : client.echo(text)));
    client.coalescer.detach();
    const own = client.echo('own');
    expect(await Promise.all(replies)).toEqual(texts);
    expect(await own).toBe('own');
  });

  it('settles commands on the wire with a partial reply received', async () => {
    for (const size of [1, 2, 5, 11]) {
      const proxy = await startProxy(redisUrl());
      const client = await ready(host.createCoalesced(proxy.url));
      proxy.cutRepliesInto(size);
      const texts = Array.from({ length: 30 }, (_, index) => `text ${index}`);
      const replies = texts.map((text, index) => (index % 4 === 0 ? cold(client, 'ECHO', text) : client.echo(text)));
      await replies[3];
      client.coalescer.detach();
      expect(await Promise.all([...replies, client.echo('own')])).toEqual([...texts, 'own']);
    }
  });

  it('works inside a callback', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const { coalescer } = client;
    const before = client.echo('before');
    const detached = new Promise<void>((resolve) => {
      cold(client, 'ECHO', 'x', () => {
        coalescer.detach();
        resolve();
      });
    });
    const behind = [client.echo('a'), client.hgetall(`${prefix}none`), cold(client, 'ECHO', 'b'), client.echo('c')];
    await detached;
    expect(await Promise.all([before, ...behind])).toEqual(['before', 'a', {}, 'b', 'c']);
    expect(await client.echo('plain')).toBe('plain');
    expect(client.coalescer.enabled).toBe(false);
  });

  it('and coalesce() again, many times, lose no command', async () => {
    const client = await ready(host.create(redisUrl()));
    const replies: Promise<unknown>[] = [];
    for (let round = 0; round < 40; round += 1) {
      const coalesced = coalesce(client);
      replies.push(coalesced.echo(String(replies.length)), cold(coalesced, 'ECHO', String(replies.length + 1)));
      if (round % 3 === 0) await new Promise(setImmediate);
      coalesced.coalescer.detach();
      replies.push(client.echo(String(replies.length)));
    }
    expect(await Promise.all(replies)).toEqual(replies.map((_, index) => String(index)));
    const coalesced = coalesce(client, { busyPoll: false });
    await coalesced.echo('joined');
    const spy = spyOnSocket(coalesced);
    await Promise.all(Array.from({ length: 100 }, () => coalesced.get(`${prefix}none`)));
    expect(spy.writes).toHaveLength(1);
    expect(coalesced.coalescer.stats().fastCommands).toBeGreaterThanOrEqual(100);
  });

  it('keeps the timeouts of commands in flight', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.createCoalesced(proxy.url));
    // Not for the handshake, which a busy machine may delay.
    client.options.commandTimeout = 60;
    proxy.stall();
    const replies = [client.echo('a'), client.echo('b')];
    client.coalescer.detach();
    const settled = await outcomes(replies);
    expect(settled[0]).toMatchObject({ error: 'Error/Error: Command timed out' });
    client.options.commandTimeout = 60_000;
    proxy.resume();
    expect(await client.echo('own')).toBe('own');
  });

  it('and coalesce() again keep the timeouts of commands that are sent then', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    await client.ping();
    client.options.commandTimeout = 80;
    const { stream } = client;
    stream.pause();
    const before = [client.echo('a'), client.echo('b')];
    client.coalescer.detach();
    const again = coalesce(client);
    const listener = stream.listeners('data')[0] as (chunk: Buffer) => void;
    listener.call(stream, Buffer.from('$1\r\na\r\n'));
    const late = again.echo('late');
    listener.call(stream, Buffer.from('$1\r\nb\r\n'));
    expect(await Promise.all(before)).toEqual(['a', 'b']);
    await expect(late).rejects.toThrow('Command timed out');
    client.disconnect();
  });

  it('lets the plain client re-send commands that were in flight', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.createCoalesced(proxy.url, { retryStrategy: () => 10 }));
    proxy.stall();
    const replies = [client.echo('a'), cold(client, 'ECHO', 'b'), client.echo('é')];
    await sleep(10);
    client.coalescer.detach();
    proxy.reset();
    proxy.resume();
    expect(await Promise.all(replies)).toEqual(['a', 'b', 'é']);
  });
});

describe('detach() in other states', () => {
  it('works in a listener, while the rest of the chunk is unread', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), { protocol: 3 }));
    const { coalescer } = client;
    await client.subscribe(`${prefix}channel`);
    let unread = -1;
    client.on('message', () => {
      unread = client.commandQueue.length;
      coalescer.detach();
    });
    const replies = [
      client.echo('a'),
      client.publish(`${prefix}channel`, 'message'),
      client.echo('b'),
      cold(client, 'ECHO', 'c'),
      client.echo('d'),
    ];
    expect(await Promise.all(replies)).toEqual(['a', 1, 'b', 'c', 'd']);
    expect(unread).toBeGreaterThan(2);
    expect(await client.echo('plain')).toBe('plain');
  });

  it('does nothing when it is called twice, or on an old handle', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl()));
    const first = client.coalescer;
    first.detach();
    first.detach();
    const again = coalesce(client, { maxBatchSize: 5 });
    first.detach();
    expect(again.coalescer.options.maxBatchSize).toBe(5);
    expect(await again.echo('a')).toBe('a');
  });

  it('works before the client has connected', async () => {
    const client = ioredis6.create(redisUrl(), { lazyConnect: true });
    const own = Reflect.ownKeys(client);
    const reply = coalesce(client).echo('a');
    (client as unknown as ReturnType<typeof ioredis6.createCoalesced>).coalescer.detach();
    expect(Reflect.ownKeys(client)).toEqual(expect.arrayContaining(own));
    expect(await reply).toBe('a');
    expect(
      Reflect.ownKeys(client).filter((key) => typeof key === 'symbol' && String(key).includes('coalesce')),
    ).toEqual([]);
  });

  it('works in a listener of `connect` that was there before coalesce()', async () => {
    const plain = await ready(ioredis6.create(redisUrl()));
    const client = ioredis6.create(redisUrl());
    client.once('connect', () => coalesced.coalescer.detach());
    const coalesced = coalesce(client);
    expect(await client.echo('a')).toBe('a');
    expect(coalesced.coalescer.enabled).toBe(false);
    expect(traces(client).streamOwn).toEqual(traces(plain).streamOwn);
    expect(await client.echo('plain')).toBe('plain');
  });

  it('and coalesce() work in a listener of `connect` that was there before', async () => {
    const client = ioredis6.create(redisUrl());
    client.once('connect', () => {
      coalesced.coalescer.detach();
      coalesce(client);
    });
    const coalesced = coalesce(client);
    expect(await Promise.all([client.echo('a'), cold(client, 'ECHO', 'b')])).toEqual(['a', 'b']);
    expect(await client.echo('fast')).toBe('fast');
    expect(coalesced.coalescer.enabled).toBe(true);
    expect(coalesced.coalescer.stats()).toMatchObject({ fastCommands: 1, inFlight: 0 });
  });

  it('what is in flight is decoded here again after the next coalesce()', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl()));
    const sent = [cold(client, 'ECHO', "the host's"), ...['a', 'b', 'c'].map((text) => client.echo(text))];
    client.coalescer.detach();
    const again = coalesce(client);
    expect(await Promise.all(sent)).toEqual(["the host's", 'a', 'b', 'c']);
    expect(again.coalescer.stats().replies).toMatchObject({ fast: 3 });
  });

  it('leaves a wrapper that a user put over the stream’s write where it is', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl()));
    const { write } = client.stream;
    let written = 0;
    client.stream.write = function counted(this: unknown, ...args: unknown[]): boolean {
      written += 1;
      return Reflect.apply(write, this, args) as boolean;
    } as typeof write;
    await cold(client, 'ECHO', 'a');
    client.coalescer.detach();
    const { commands } = client.coalescer.stats();
    expect(await client.echo('b')).toBe('b');
    expect(written).toBe(2);
    // Our hook below it passes writes on, and counts nothing any more.
    expect(client.coalescer.stats().commands).toBe(commands);
  });
});
