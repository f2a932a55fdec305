/** The invariants 6 and 11 of docs/design.md. */
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { type Client, type CoalescedClient, ioredis6, outcomes, ready, sleep } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('invariants-of-sharing');

const create = (options: CoalesceOptions): Promise<CoalescedClient> =>
  ready(ioredis6.createCoalesced(redisUrl(), {}, options));

describe('Invariant 6: no write between a leader and its followers', () => {
  const k = `${prefix}shared`;

  it('identical reads of one batch are sent once, and each caller gets its own value', async () => {
    const client = await create({ shareReads: true });
    await client.hset(k, 'f', 'v');
    const spy = spyOnSocket(client);
    const buffers = await Promise.all([client.hgetBuffer(k, 'f'), client.hgetBuffer(k, 'f'), client.hget(k, 'f')]);
    expect(buffers).toEqual([Buffer.from('v'), Buffer.from('v'), 'v']);
    expect(buffers[0]).not.toBe(buffers[1]);
    buffers[0]?.fill(0);
    expect(buffers[1]).toEqual(Buffer.from('v'));
    const [one, two] = await Promise.all([client.hgetall(k), client.hgetall(k)]);
    expect(one).toEqual({ f: 'v' });
    expect(one).toEqual(two);
    expect(one).not.toBe(two);
    expect(commandNames(spy.text())).toEqual(['hget', 'hget', 'hgetall']);
    expect(client.coalescer.stats().sharedReads).toBe(2);
    const errors = await outcomes([client.get(k), client.get(k)]);
    expect(errors[0]).toMatchObject({ error: expect.stringContaining('WRONGTYPE') });
    expect(errors[1]).toEqual(errors[0]);
    await client.del(k);
  });

  it.each<[string, (client: Client, value: string) => Promise<unknown>]>([
    ['a fast write', (client, value) => client.set(k, value)],
    ['a fast write of a Buffer', (client, value) => client.set(k, Buffer.from(value))],
    ['a write that falls back', (client, value) => client.mset(new Map([[k, value]]))],
    ['call()', (client, value) => client.call('SET', k, value)],
    ['a script', (client, value) => client.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, k, value)],
    ['a transaction', (client, value) => client.multi().set(k, value).exec()],
    ['a pipeline', (client, value) => client.pipeline().set(k, value).exec()],
  ])('%s ends the sharing', async (_, write) => {
    for (const options of [{ shareReads: true }, { shareReads: true, maxInFlight: 2 }]) {
      const client = await create(options);
      await client.set(k, 'old');
      const replies = [client.get(k), client.get(k), write(client, 'new'), client.get(k), client.get(k)];
      const values = await Promise.all(replies);
      expect([values[0], values[1], values[3], values[4]]).toEqual(['old', 'old', 'new', 'new']);
      expect(client.coalescer.stats().sharedReads).toBe(2);
      await client.del(k);
    }
  });

  it('PFCOUNT, which writes the count into its key, ends the sharing', async () => {
    const client = await create({ shareReads: true });
    await client.pfadd(k, 'a', 'b');
    const [before, count, after] = await Promise.all([client.getBuffer(k), client.pfcount(k), client.getBuffer(k)]);
    expect(count).toBe(2);
    expect(after).not.toEqual(before);
    expect(after).toEqual(await client.getBuffer(k));
    await client.del(k);
  });

  it('a read of a later batch is sent again', async () => {
    const client = await create({ shareReads: true });
    const first = client.get(k);
    client.coalescer.flush();
    const second = client.get(k);
    await Promise.all([first, second]);
    expect(client.coalescer.stats().sharedReads).toBe(0);
  });

  it('followers settle when their leader is re-sent, times out or is flushed', async () => {
    for (const [options, settle] of [
      [{ retryStrategy: () => 5 }, 'reset'],
      [{ commandTimeout: 30 }, 'timeout'],
      [{}, 'disconnect'],
    ] as const) {
      const proxy = await startProxy(redisUrl());
      const client = await ready(ioredis6.createCoalesced(proxy.url, options, { shareReads: true }));
      proxy.stall();
      const replies = [client.get(k), client.get(k), client.getBuffer(k), client.getBuffer(k)];
      await sleep(5);
      if (settle === 'reset') {
        proxy.reset();
        proxy.resume();
      } else if (settle === 'disconnect') client.disconnect();
      const settled = await outcomes(replies);
      expect(settled[1], settle).toEqual(settled[0]);
      expect(settled[3], settle).toEqual(settled[2]);
      expect('value' in (settled[0] as object), settle).toBe(settle === 'reset');
    }
  });
});

describe('Invariant 11: no sharing of reads from MULTI to EXEC or DISCARD, nor of reads whose answer is random', () => {
  const k = `${prefix}shared`;

  const SHARED_OUTSIDE = ['get multi get get exec get multi get get discard get', 3] as const;

  it.each<[CoalesceOptions, sent: string, sharedReads: number]>([
    [{}, ...SHARED_OUTSIDE],
    [{ maxInFlight: 2 }, ...SHARED_OUTSIDE],
  ])('shares nothing in a transaction that is sent command by command, with %o', async (options, sent, shared) => {
    const client = await create({ shareReads: true, ...options });
    await client.set(k, '1');
    const spy = spyOnSocket(client);
    const replies = [
      client.get(k),
      client.get(k),
      client.multi({ pipeline: false }),
      client.get(k),
      client.get(k),
      client.exec(),
      client.get(k),
      client.get(k),
      client.multi({ pipeline: false }),
      client.get(k),
      client.get(k),
      client.discard(),
      client.get(k),
      client.get(k),
    ];
    const result = [null, '1'];
    expect(await Promise.all(replies)).toEqual([
      ...['1', '1', 'OK', 'QUEUED', 'QUEUED', [result, result]],
      ...['1', '1', 'OK', 'QUEUED', 'QUEUED', 'OK', '1', '1'],
    ]);
    expect(commandNames(spy.text()).join(' ')).toBe(sent);
    expect(client.coalescer.stats().sharedReads).toBe(shared);
    await client.del(k);
  });

  it('shares nothing in a transaction that stays open over several batches', async () => {
    const client = await create({ shareReads: true });
    await client.multi({ pipeline: false });
    expect(await Promise.all([client.get(k), client.get(k)])).toEqual(['QUEUED', 'QUEUED']);
    expect(await client.exec()).toEqual([
      [null, null],
      [null, null],
    ]);
    expect(client.coalescer.stats().sharedReads).toBe(0);
  });

  it('sends random reads, cursors and TIME each time', async () => {
    const client = await create({ shareReads: true });
    const spy = spyOnSocket(client);
    await outcomes([
      client.srandmember(k),
      client.srandmember(k),
      client.randomkey(),
      client.randomkey(),
      client.time(),
      client.time(),
      client.hrandfield(k),
      client.hrandfield(k),
      client.scan(0),
      client.scan(0),
    ]);
    expect(commandNames(spy.text()).join(' ')).toBe(
      'srandmember srandmember randomkey randomkey time time hrandfield hrandfield scan scan',
    );
  });
});
