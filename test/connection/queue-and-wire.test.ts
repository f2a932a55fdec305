/**
 * A host that does not answer, or queue, when it is expected to: no caller gets the value of another one (invariant 3).
 */
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { expect, it } from 'vitest';
import { type Client, HOSTS, type Host, outcomesWithin } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const MS = 10_000;
type Listener = (chunk: Buffer) => void;
interface Internals {
  readonly status: string;
  readonly stream: Duplex;
  readonly commandQueue: { push(item: object): unknown };
}

/** A coalesced client, whose internals are changed each time that it connects, before `coalesce()` sees them. */
async function changed(host: Host, change: (internals: Internals) => void): Promise<Client> {
  const client = host.create(redisUrl());
  client.on('connect', () => change(client as unknown as Internals));
  coalesce(client);
  await once(client, 'ready');
  return client;
}

for (const host of HOSTS) {
  it(`${host.name}: replies that the client decodes later go to their own callers`, async () => {
    const client = await changed(host, ({ stream }) => {
      const [listener] = stream.listeners('data') as [Listener];
      stream.removeListener('data', listener);
      stream.on('data', (chunk: Buffer) => setImmediate(() => listener.call(stream, chunk)));
    });
    const [text, other] = [uniquePrefix('late'), uniquePrefix('late')];
    await outcomesWithin(MS, [client.set(text, 'of text'), client.set(other, 'of other')]);
    const [error, ...values] = await outcomesWithin(MS, [client.incr(text), client.get(text), client.get(other)]);
    expect(error).toMatchObject({ error: expect.stringContaining('not an integer') });
    expect(values).toEqual([{ value: 'of text' }, { value: 'of other' }]);
    expect(await client.get(other)).toBe('of other');
  });

  it(`${host.name}: a connection ends when a command was written that is not in the queue`, async () => {
    let connections = 0;
    const client = await changed(host, (internals) => {
      connections += 1;
      if (connections > 1) return;
      const { commandQueue } = internals;
      const { push } = commandQueue;
      commandQueue.push = (item) => {
        // The host's own; what is put there by the fast path is a command itself.
        if (!('promise' in item) && internals.status === 'ready') queueMicrotask(() => push.call(commandQueue, item));
        else push.call(commandQueue, item);
      };
    });
    const errors: string[] = [];
    client.on('error', (error: Error & { code?: string }) => errors.push(String(error.code)));
    const key = uniquePrefix('unqueued');
    await client.set(key, 'a value');
    expect(await outcomesWithin(MS, [client.client('GETNAME'), client.get(key), client.client('GETNAME')])).toEqual([
      { value: null },
      { value: 'a value' },
      { value: null },
    ]);
    expect([errors, connections]).toEqual([['COALESCE_ERR_REPLY'], 2]);
  });
}
