import { tracingChannel } from 'node:diagnostics_channel';
import { type BatchEvent, CHANNELS, coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cold } from '../helpers/cold.js';
import { type CoalescedClient, HOSTS, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('watchers');

/** Does something when a batch is about to be written, once, in the middle of the flush. */
function atNextBatch(act: (event: BatchEvent) => void): void {
  const { start } = tracingChannel<string, BatchEvent>(CHANNELS.BATCH);
  const once = (event: unknown): void => {
    start.unsubscribe(once);
    act(event as BatchEvent);
  };
  start.subscribe(once);
  onTestFinished(() => void start.unsubscribe(once));
}

/** A subscriber runs in the middle of a send; whatever it does must not disturb the send. */
describe.each(HOSTS)('$name: a subscriber of batches that', (host) => {
  const create = (): Promise<CoalescedClient> => ready(host.createCoalesced(redisUrl(), {}, { schedule: 'immediate' }));

  it('disconnects has the pending bytes written before the end', async () => {
    const client = await create();
    const other = await create();
    atNextBatch(() => client.disconnect());
    const key = `${prefix}end:${host.name}`;
    const replies = await Promise.allSettled([client.set(key, 'first'), client.append(key, '!')]);
    // Whether the replies still arrive is the race that it is for a plain client.
    for (const { status } of replies) expect(['fulfilled', 'rejected']).toContain(status);
    expect(await other.get(key)).toBe('first!');
    await other.del(key);
  });

  it('sends commands of its own gets their replies, after those of the batch', async () => {
    const client = await create();
    const socket = spyOnSocket(client);
    const own: Promise<unknown>[] = [];
    atNextBatch(() => own.push(client.echo('fast'), cold(client, 'ECHO', 'cold'), client.echo('fast again')));
    expect(await Promise.all([client.echo('a'), client.ping(), client.echo('b')])).toEqual(['a', 'PONG', 'b']);
    expect(await Promise.all(own)).toEqual(['fast', 'cold', 'fast again']);
    const names = commandNames(socket.writes.map(String).join('')).map((name) => name.toLowerCase());
    expect(names).toEqual(['echo', 'ping', 'echo', 'echo', 'echo', 'echo']);
  });

  it('flushes does not send the batch twice', async () => {
    const client = await create();
    const before = client.coalescer.stats();
    atNextBatch(() => client.coalescer.flush());
    expect(await Promise.all([client.echo('a'), client.echo('b')])).toEqual(['a', 'b']);
    expect(client.coalescer.stats().batches).toBe(before.batches + 1);
  });

  it('detaches has the batch sent, and a plain client', async () => {
    const client = await create();
    const { coalescer } = client;
    atNextBatch(() => coalescer.detach());
    expect(await Promise.all([client.echo('a'), client.echo('b')])).toEqual(['a', 'b']);
    expect(client.coalescer.enabled).toBe(false);
    expect(Object.hasOwn(client.stream, 'write')).toBe(false);
  });

  it('counts bytes gets the right count for text that is not ASCII', async () => {
    const client = await create();
    const socket = spyOnSocket(client);
    const { bytesWritten } = client.coalescer.stats();
    let told: BatchEvent | undefined;
    atNextBatch((event) => {
      told = event;
    });
    expect(await Promise.all([client.echo('a'), client.echo('ключ é')])).toEqual(['a', 'ключ é']);
    const written = socket.writes.reduce((sum, bytes) => sum + bytes.length, 0);
    expect(told?.bytes).toBe(written);
    expect(client.coalescer.stats().bytesWritten - bytesWritten).toBe(written);
  });
});

it.each(HOSTS)('$name: a subscriber of connections that detaches at once leaves a plain client', async (host) => {
  const client = await ready(host.create(redisUrl()));
  const { end } = tracingChannel(CHANNELS.CONNECTION);
  const detach = (): void => (client as CoalescedClient).coalescer?.detach();
  end.subscribe(detach);
  try {
    coalesce(client);
  } finally {
    end.unsubscribe(detach);
  }
  expect((client as CoalescedClient).coalescer.enabled).toBe(false);
  for (const method of ['write', 'end', 'destroy']) expect(Object.hasOwn(client.stream, method)).toBe(false);
  expect(await client.echo('plain')).toBe('plain');
});
