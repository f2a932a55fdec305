/** Switching coalescing off by `detach()`, and on again by `coalesce()`, as an operator does at run time. */
import { Cluster as IOCluster } from 'ioredis';
import { Cluster, type Coalesced, type CoalesceOptions, coalesce, Redis } from 'ioredis-coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type CoalescedClient, endWithTest, HOSTS, ioredis6, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const url = redisUrl();
const OPTIONS: CoalesceOptions = { maxInFlight: 77, schedule: 'immediate', shareReads: true };
const nowhere = [{ host: '127.0.0.1', port: 1 }];

type Copyable = Coalesced & { duplicate(): object; disconnect(): void };

/** Whether it is coalesced now, and with the options above. */
function stateOf(client: object): [enabled: boolean, own: boolean] {
  const { coalescer } = client as Partial<Coalesced>;
  return [coalescer?.enabled === true, coalescer?.options.maxInFlight === 77];
}

const MAKERS: Readonly<Record<string, () => Copyable>> = {
  'the drop-in class': () => new Redis(url, { coalesce: OPTIONS }) as Copyable,
  'the drop-in Cluster': () => new Cluster(nowhere, { lazyConnect: true, coalesce: OPTIONS }) as unknown as Copyable,
  'coalesce() of a Cluster': () =>
    coalesce(new IOCluster(nowhere, { lazyConnect: true }), OPTIONS) as unknown as Copyable,
  ...Object.fromEntries(
    HOSTS.map((host) => [`coalesce() of ${host.name}`, () => host.createCoalesced(url, {}, OPTIONS) as Copyable]),
  ),
};

const make = (title: string): Copyable => endAfterTest((MAKERS[title] as () => Copyable)());

function endAfterTest<T extends object>(client: T): T {
  const { on, disconnect } = client as unknown as { on(event: string, listener: () => void): void; disconnect(): void };
  on.call(client, 'error', () => {});
  onTestFinished(() => disconnect.call(client));
  return client;
}

describe.each(Object.keys(MAKERS))('after detach(), %s', (title) => {
  it('keeps its handle, with the options and the last counters', () => {
    const client = make(title);
    const { coalescer } = client;
    coalescer.detach();
    expect(client.coalescer).toBe(coalescer);
    expect(stateOf(client)).toEqual([false, true]);
    expect(client.coalescer.stats()).toMatchObject({ batches: 0, queued: 0 });
    client.coalescer.flush();
    client.coalescer.detach();
    expect(Object.keys(client)).not.toContain('coalescer');
  });

  it('makes plain copies by duplicate(), as BullMQ does for each worker', () => {
    const client = make(title);
    expect(stateOf(endAfterTest(client.duplicate()))).toEqual([true, true]);
    client.coalescer.detach();
    expect(stateOf(endAfterTest(client.duplicate()))[0]).toBe(false);
    coalesce(client);
    expect(stateOf(endAfterTest(client.duplicate()))).toEqual([true, true]);
  });

  it('gets its options back by coalesce() without options, time and again', () => {
    const client = make(title);
    for (let round = 0; round < 3; round += 1) {
      client.coalescer.detach();
      expect(stateOf(client)).toEqual([false, true]);
      expect(stateOf(coalesce(client))).toEqual([true, true]);
      expect(client.coalescer.options).toMatchObject(OPTIONS);
    }
    expect(client.coalescer.stats().commands).toBe(0);
  });

  it('gets the options that coalesce() is given: true for the defaults, false to stay plain', () => {
    const client = make(title);
    client.coalescer.detach();
    expect(coalesce(client, { maxInFlight: 5 }).coalescer.options.maxInFlight).toBe(5);
    client.coalescer.detach();
    expect(coalesce(client).coalescer.options.maxInFlight).toBe(5);
    client.coalescer.detach();
    expect(stateOf(coalesce(client, false))[0]).toBe(false);
    expect(coalesce(client, true).coalescer.options.maxInFlight).toBe(10_000);
  });
});

it('toggled under load, as by a signal, no command is lost and the cache comes back', async () => {
  const key = `${uniquePrefix('toggled')}k`;
  const client = await ready(ioredis6.createCoalesced(url, {}, { cache: { ttl: 5_000 } }));
  const toggle = () => {
    if (client.coalescer?.enabled) client.coalescer.detach();
    else coalesce(client);
  };
  await client.set(key, 'v');
  const replies: Promise<unknown>[] = [];
  for (let round = 0; round < 40; round += 1) {
    replies.push(client.get(key), client.call('GET', key));
    toggle();
    if (round % 5 === 0) await replies.at(-1);
  }
  expect(new Set(await Promise.all(replies))).toEqual(new Set(['v']));
  expect(client.coalescer.enabled).toBe(true);
  expect(client.coalescer.options.cache).toMatchObject({ ttl: 5_000 });
  await client.del(key);
});

it('a client that another copy of the package has detached is found with its options', () => {
  const client = endWithTest(ioredis6.create(url)) as CoalescedClient;
  const handle = { enabled: false, options: coalesce(endWithTest(ioredis6.create(url)), OPTIONS).coalescer.options };
  Object.defineProperty(client, 'coalescer', { value: handle, configurable: true });
  expect(stateOf(coalesce(client))).toEqual([true, true]);
});
