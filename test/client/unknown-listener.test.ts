/**
 * A connection whose `data` listener cannot be found: what leaves is corked, and its replies are read by the host
 * alone.
 */
import { coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { HOSTS, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { spyOnSocket } from '../helpers/sockets.js';

const key = uniquePrefix('unknown-listener');

describe.each(HOSTS)('$name: other code has wrapped the listener of the stream', (host) => {
  it('commands of every kind are sent in one write and answered, and none takes the fast path', async () => {
    const plain = await ready(host.create(redisUrl()));
    const { stream } = plain;
    const [listener] = stream.listeners('data') as ((chunk: Buffer) => void)[];
    stream.removeAllListeners('data');
    stream.on('data', (chunk) => listener?.call(stream, chunk));
    stream.on('data', () => {});
    const client = coalesce(plain, { schedule: 'immediate' });
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
});
