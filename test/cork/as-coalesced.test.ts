/** A client that has the cork is a coalesced one in every respect: events, copies, what is left of it afterwards. */
import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { CHANNELS, type CoalesceOptions, type ConnectionEvent, coalesce } from 'ioredis-coalesce/coalesce';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Client, type CoalescedClient, endWithTest, HOSTS, ioredis6, ready, until } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_FUSE');

const MODES = [
  ['fast', {}],
  ['cork', { fastPath: false }],
] as const;

/** The events of connections to an address, as `mode change`, until the running test ends. */
function watchConnections(to: string): string[] {
  const events: string[] = [];
  const listener = (event: unknown) => {
    const { mode, change, address } = event as ConnectionEvent;
    if (to.endsWith(address)) events.push(`${mode} ${change}`);
  };
  const start = channel(`tracing:${CHANNELS.CONNECTION}:start`);
  start.subscribe(listener);
  onTestFinished(() => void start.unsubscribe(listener));
  return events;
}

/** Listeners of a client and its stream, own properties of both, and what the process does when it exits. */
function traces(client: Client) {
  const drains = (globalThis as Record<symbol, unknown>)[Symbol.for('ioredis-coalesce.exit-drains')];
  const { stream } = client;
  const listeners = (of: NodeJS.EventEmitter) => of.eventNames().map((name) => [name, of.listenerCount(name)]);
  return {
    client: listeners(client),
    stream: [
      listeners(stream),
      Reflect.ownKeys(stream).filter((key) => typeof key === 'symbol' || !key.startsWith('_')),
    ],
    exit: drains === undefined ? 0 : [...(drains as Iterable<unknown>)].length,
  };
}

async function reconnect(client: Client): Promise<void> {
  client.stream.destroy();
  await once(client, 'ready');
}

describe.each(MODES)('%s', (mode, options) => {
  it('what is attached is detached: by detach(), a lost connection, quit()', async () => {
    const { url } = await startProxy(redisUrl());
    const events = watchConnections(url);
    const client = await ready(ioredis6.create(url, { retryStrategy: () => 1 }));
    const attached = `${mode} attached`;
    const detached = 'detached detached';
    const expectEvents = async (expected: readonly string[]) => {
      await until(() => events.length >= expected.length, `${expected.length} events`);
      expect(events.splice(0)).toEqual(expected);
    };
    for (let cycle = 0; cycle < 3; cycle += 1) {
      coalesce(client, options);
      await client.ping();
      (client as CoalescedClient).coalescer.detach();
      await expectEvents([attached, detached]);
    }
    coalesce(client, options);
    await reconnect(client);
    await expectEvents([attached, detached, attached]);
    // Destroyed, and not closed yet.
    client.stream.destroy();
    (client as CoalescedClient).coalescer.detach();
    await once(client, 'ready');
    await expectEvents([detached]);
    coalesce(client, options);
    await client.quit();
    await expectEvents([attached, detached]);
  });

  it('nothing is left behind by detach(), however often', async () => {
    const client = await ready(ioredis6.create(redisUrl()));
    // What the first time leaves for good: the handle, which has the options.
    coalesce(client, options).coalescer.detach();
    const before = traces(client);
    for (let cycle = 0; cycle < 20; cycle += 1) {
      const { coalescer } = coalesce(client, options);
      await client.ping();
      coalescer.detach();
    }
    expect(traces(client)).toEqual(before);
    expect(Object.hasOwn(client, 'duplicate')).toBe(false);
  });

  it('after many reconnects there are as many listeners and exit hooks as after one', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), { retryStrategy: () => 1 }, options));
    await reconnect(client);
    const before = traces(client);
    for (let time = 0; time < 50; time += 1) await reconnect(client);
    expect(traces(client)).toEqual(before);
  });
});

describe.each(HOSTS)('copies of a corked client of $name', (host) => {
  async function copyOf(overrides: unknown, options: CoalesceOptions = { fastPath: false }) {
    const client = host.createCoalesced(redisUrl(), {}, options);
    const copy = endWithTest((client.duplicate as (overrides: unknown) => Client)(overrides));
    await (await ready(copy)).ping();
    return copy as CoalescedClient;
  }

  it.each([undefined, null, {}])('duplicate(%j) has its options', async (overrides) => {
    const copy = await copyOf(overrides, { fastPath: false, maxBatchBytes: 5_000 });
    expect(copy.coalescer.stats().mode).toBe('cork');
    expect(copy.coalescer.options.maxBatchBytes).toBe(5_000);
  });

  it('with coalesce: false the copy stays plain, and has a handle', async () => {
    const copy = await copyOf({ coalesce: false });
    expect(copy.coalescer).toMatchObject({ enabled: false });
    expect(Object.hasOwn(copy.stream, 'write')).toBe(false);
  });

  it('a copy with its own options has these, and the fast path if it may', async () => {
    const copy = await copyOf({ coalesce: { fastPath: true, maxInFlight: 5 } });
    expect(copy.coalescer.options).toMatchObject({ fastPath: true, maxInFlight: 5 });
    expect(copy.coalescer.stats().mode).toBe('fast');
    expect((await copyOf({ coalesce: true })).coalescer.stats().mode).toBe('fast');
    await expect(copyOf({ coalesce: { maxInFlight: 0 } })).rejects.toMatchObject({ code: 'COALESCE_ERR_OPTION' });
  });

  it('a copy of a copy is corked, too', async () => {
    const copy = await copyOf({});
    const next = await ready(endWithTest(copy.duplicate() as CoalescedClient));
    expect(next.coalescer.stats().mode).toBe('cork');
  });

  it("a user's own duplicate() is left alone, put there before or after", async () => {
    const own = () => 'own' as never;
    const before = host.create(redisUrl());
    before.duplicate = own;
    const { coalescer } = coalesce(before, { fastPath: false });
    expect(before.duplicate).toBe(own);
    coalescer.detach();
    expect(before.duplicate).toBe(own);
    const after = host.createCoalesced(redisUrl(), {}, { fastPath: false });
    after.duplicate = own;
    after.coalescer.detach();
    expect(after.duplicate).toBe(own);
  });
});

it('a copy of a corked Cluster has its options', async () => {
  const { Cluster } = await import('ioredis');
  const plain = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
  const cluster = coalesce(plain, { fastPath: false, maxBatchBytes: 5_000 });
  const copy = cluster.duplicate([{ host: '127.0.0.1', port: 2 }]) as typeof cluster;
  expect(copy.coalescer.stats().mode).toBe('cork');
  expect(copy.coalescer.options.maxBatchBytes).toBe(5_000);
  for (const each of [cluster, copy]) each.disconnect();
});

it('fuseReads with cache warns once', async () => {
  const warnings: Error[] = [];
  const listener = (warning: Error) => void warnings.push(warning);
  process.on('warning', listener);
  onTestFinished(() => void process.off('warning', listener));
  for (let time = 0; time < 2; time += 1) {
    ioredis6.createCoalesced(redisUrl(), { lazyConnect: true }, { fuseReads: true, cache: true });
  }
  await new Promise(setImmediate);
  expect(warnings.map(({ message }) => message)).toEqual([
    'ioredis-coalesce: options.fuseReads has no effect on a client with options.cache; leave one of them out',
  ]);
});
