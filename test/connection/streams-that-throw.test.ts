/**
 * A stream whose write throws once: the connection ends, its commands are sent again on the next one, no one else
 * notices.
 */
import type { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { connectAs } from '../helpers/beside.js';
import { type Client, HOSTS, LONG_ENOUGH, outcomesWithin } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { collectUncaught } from '../helpers/uncaught.js';

const prefix = uniquePrefix('streams-that-throw');

const SENT: Readonly<Record<string, (client: Client) => Promise<unknown>[]>> = {
  'a fast command': (client) => [client.echo('1')],
  'fast commands in several parts': (client) => [client.echo('1'), client.set(`${prefix}k`, 'x'.repeat(10_000))],
  'commands of the host': (client) => [client.call('COMMAND', 'COUNT'), client.config('GET', 'port')],
  'the host, with a fast command before it': (client) => [client.echo('1'), client.config('GET', 'port')],
  both: (client) => [client.echo('1'), client.config('GET', 'port'), client.echo('2')],
  'a pipeline and a transaction': (client) => [
    client.pipeline().echo('1').exec(),
    client.multi().echo('2').config('GET', 'port').exec(),
  ],
};

describe.each(HOSTS)('$name: the stream throws within the write of', (host) => {
  it.each(Object.keys(SENT))('%s', async (title) => {
    const send = SENT[title] as (typeof SENT)[string];
    const uncaught = collectUncaught();
    const client = await connectAs('coalesced', host, redisUrl(), { retryStrategy: () => 1 });
    const other = await connectAs('coalesced', host, redisUrl());
    const wanted = await Promise.all(send(other));
    const stream = (client as unknown as { stream: Duplex }).stream;
    stream._write = () => {
      throw new Error('thrown by the stream');
    };
    stream._writev = stream._write as never;
    const settled = outcomesWithin(LONG_ENOUGH, [...send(client), other.echo('other')]);
    expect(await settled).toEqual([...wanted, 'other'].map((value) => ({ value })));
    expect(uncaught).toEqual([]);
  });
});
