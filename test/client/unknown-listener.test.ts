/**
 * A connection whose `data` listener cannot be found: what leaves is corked, and its replies are read by the host
 * alone.
 */
import { once } from 'node:events';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { type Client, HOSTS, type Host, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { spyOnSocket } from '../helpers/sockets.js';

const key = uniquePrefix('unknown-listener');

/** A client whose `data` listener somebody has wrapped. */
async function wrapped(host: Host): Promise<Client> {
  const plain = await ready(host.create(redisUrl()));
  const { stream } = plain;
  const [listener] = stream.listeners('data') as ((chunk: Buffer) => void)[];
  stream.removeAllListeners('data');
  stream.on('data', (chunk) => listener?.call(stream, chunk));
  stream.on('data', () => {});
  return plain;
}

describe.each(HOSTS)('$name: other code has wrapped the listener of the stream', (host) => {
  it('commands of every kind are sent in one write and answered, and none takes the fast path', async () => {
    const client = coalesce(await wrapped(host), { schedule: 'immediate' });
    const socket = spyOnSocket(client);
    const replies = [
      client.set(key, 'é'),
      client.get(key),
      client.pipeline().get(key).strlen(key).exec(),
      client.multi().get(key).exec(),
      client.eval('return 7', 0),
      client.call('GET', key),
    ];
    expect(await Promise.all(replies)).toEqual([
      'OK',
      'é',
      [
        [null, 'é'],
        [null, 2],
      ],
      [[null, 'é']],
      7,
      'é',
    ]);
    const { fastCommands, flushReasons } = client.coalescer.stats();
    // What is written in a slow turn leaves sooner.
    expect(socket.writes).toHaveLength(flushReasons.schedule + flushReasons.age);
    expect(fastCommands).toBe(0);
  });

  it('the client is a corked one: its counts, flush(), detach(), and coalesced again', async () => {
    const plain = await wrapped(host);
    const { stream } = plain;
    const listeners = () => [...stream.eventNames()].map((name) => stream.listenerCount(name));
    const before = listeners();
    const held: (() => void)[] = [];
    const schedule = (flush: () => void) => void held.push(flush);
    for (let time = 0; time < 3; time += 1) {
      const client = coalesce(plain, { schedule });
      const { coalescer } = client;
      expect(coalescer.stats().mode).toBe('cork');
      const flushed = client.echo('flushed');
      coalescer.flush();
      expect(await flushed).toBe('flushed');
      expect(coalescer.stats().commands).toBe(1);
      const detached = client.echo('detached');
      coalescer.detach();
      expect(await detached).toBe('detached');
      expect(Object.hasOwn(stream, 'write')).toBe(false);
      expect(listeners()).toEqual(before);
    }
  });

  it('the next connection is fast, if its listener is known', async () => {
    const client = coalesce(await wrapped(host));
    await client.ping();
    expect(client.coalescer.stats().mode).toBe('cork');
    client.stream.destroy();
    await once(client, 'ready');
    const { fastCommands } = client.coalescer.stats();
    await client.get(key);
    expect(client.coalescer.stats()).toMatchObject({ mode: 'fast', fastCommands: fastCommands + 1 });
  });
});
