import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { cold } from '../helpers/cold.js';
import { coalescedFake, disconnectFake, type FakeConnection, type FakeOptions } from '../helpers/fake-connection.js';
import { type CoalescedClient, HOSTS, ioredis6, ready, until } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { bulk, handshake, startScriptedServer } from '../helpers/scripted-server.js';

const prefix = uniquePrefix('aborts');
const reason = new Error('the caller has gone');

/** A command on the wire, a character per byte. */
function request(...args: (string | Buffer)[]): string {
  const texts = args.map((arg) => Buffer.from(arg).toString('latin1'));
  return `*${args.length}\r\n${texts.map((text) => `$${text.length}\r\n${text}\r\n`).join('')}`;
}

/** What a promise has come to by now. */
const stateOf = async (promise: Promise<unknown>): Promise<unknown> =>
  Promise.race([
    promise.then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    ),
    turn('open'),
  ]);

/** A client whose bytes the test reads and answers, and a view of it that the test can abort. */
class Scene {
  static #opened: FakeConnection[] = [];
  readonly #controller = new AbortController();
  readonly view: CoalescedClient;

  private constructor(readonly fake: FakeConnection & { readonly client: CoalescedClient }) {
    this.view = fake.client.coalescer.withOptions({ signal: this.signal });
  }

  static async open(options: CoalesceOptions = {}, rest: FakeOptions = {}): Promise<Scene> {
    const fake = await coalescedFake(options, rest);
    Scene.#opened.push(fake);
    return new Scene(fake as never);
  }

  static async closeAll(): Promise<void> {
    for (const fake of Scene.#opened.splice(0)) await disconnectFake(fake);
  }

  get client(): CoalescedClient {
    return this.fake.client;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get listeners(): number {
    return getEventListeners(this.signal, 'abort').length;
  }

  get written(): string {
    return this.fake.socket.written.toString('latin1');
  }

  abort(): void {
    this.#controller.abort(reason);
  }

  feed(replies: string): void {
    this.fake.socket.feed(replies);
  }
}

afterEach(() => Scene.closeAll());

describe('a signal', () => {
  it('that is aborted before the call: nothing is sent, fast or cold, with a promise or a callback', async () => {
    const { client, view, signal, written, abort } = bind(await Scene.open());
    abort();
    const called: unknown[] = [];
    await expect(view.get('a')).rejects.toBe(reason);
    await expect(view.call('GET', 'a')).rejects.toBe(reason);
    await expect(view.blpop('a', 0)).rejects.toBe(reason);
    await expect(view.xadd('a', '*', 'b', 'c')).rejects.toBe(reason);
    await view.get('a', (error) => called.push(error)).catch(() => {});
    await turn();
    expect(called).toEqual([reason]);
    expect(written()).toBe('');
    expect(client.commandQueue.length).toBe(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it.each([
    ['text', 'a', 'b'],
    ['text that is not ASCII', 'é', 'ö'],
    ['Buffers', Buffer.from([0, 255]), Buffer.from([254, 13, 10])],
    ['large arguments', 'x'.repeat(5_000), 'y'.repeat(70_000)],
  ])('in the tick of the call: the caller is rejected, the command is sent, with %s', async (_, own, neighbour) => {
    const { client, view, written, abort, feed } = bind(await Scene.open({ maxBatchBytes: 1_000_000 }));
    const before = client.set('before', neighbour);
    const aborted = [view.set('k', own), view.hget('h', own)];
    const after = client.set('after', neighbour);
    abort();
    for (const promise of aborted) await expect(promise).rejects.toBe(reason);
    await turn();
    expect(written()).toBe(
      [
        request('set', 'before', neighbour),
        request('set', 'k', own),
        request('hget', 'h', own),
        request('set', 'after', neighbour),
      ].join(''),
    );
    feed('+before\r\n+OK\r\n$3\r\nown\r\n+after\r\n');
    expect(await Promise.all([before, after])).toEqual(['before', 'after']);
  });

  it('a Buffer that its caller changes afterwards is sent as it was', async () => {
    const { view, written } = bind(await Scene.open());
    const value = Buffer.from('first');
    void view.set('k', value).catch(() => {});
    value.fill('x');
    await turn();
    expect(written()).toBe(request('set', 'k', 'first'));
  });

  it('in a turn whose batch already holds commands of other kinds', async () => {
    const { client, view, written, abort } = bind(await Scene.open());
    void view.set('text', '1').catch(() => {});
    void client.set('bytes', Buffer.from('2')).catch(() => {});
    void view.set('é', '3').catch(() => {});
    void client.set('ö', '4').catch(() => {});
    abort();
    await turn();
    const sent = [
      ['text', '1'],
      ['bytes', '2'],
      ['é', '3'],
      ['ö', '4'],
    ];
    expect(written()).toBe(sent.map(([key, value]) => request('set', key as string, value as string)).join(''));
  });

  it('of a command behind which the host has written', async () => {
    const { client, view, written, abort, feed } = bind(await Scene.open());
    const aborted = view.set('k', 'v');
    const host = cold(client, 'ECHO', 'cold');
    abort();
    await expect(aborted).rejects.toBe(reason);
    await turn();
    expect(written()).toBe(`${request('set', 'k', 'v')}${request('ECHO', 'cold')}`);
    feed('+OK\r\n$4\r\ncold\r\n');
    expect(await host).toBe('cold');
  });

  it('after the flush, between two replies of a chunk, and within a reply: neighbours get their own', async () => {
    const { client, view, abort, feed } = bind(await Scene.open());
    const [first, aborted, second, third] = [client.get('1'), view.get('a'), client.get('2'), client.get('3')];
    await turn();
    void first.then(abort);
    feed('$1\r\n1\r\n$7\r\nabo');
    expect(await stateOf(aborted)).toEqual({ error: reason });
    feed('rted\r\n$1\r\n2\r\n$1\r\n3\r\n');
    expect(await Promise.all([first, second, third])).toEqual(['1', '2', '3']);
  });

  it('calls a callback once, with the reason, fast or cold', async () => {
    const { view, abort, feed } = bind(await Scene.open());
    const called: unknown[] = [];
    void view.get('a', (...outcome) => called.push(outcome)).catch(() => {});
    void view.ping((...outcome) => called.push(outcome)).catch(() => {});
    void view.xlen('a', (...outcome) => called.push(outcome)).catch(() => {});
    void view.config('RESETSTAT', (...outcome) => called.push(outcome)).catch(() => {});
    await turn();
    abort();
    await turn();
    feed('+x\r\n'.repeat(4));
    await turn();
    expect(called).toEqual([[reason], [reason], [reason], [reason]]);
  });

  it('leaves its other commands alone once they have settled', async () => {
    const scene = await Scene.open();
    const answered = scene.view.get('a');
    await turn();
    scene.feed('$1\r\n1\r\n');
    expect(await answered).toBe('1');
    expect(scene.listeners).toBe(0);
    scene.abort();
    expect(await answered).toBe('1');
  });

  it('with any reason, even one that is not an Error', async () => {
    const { client } = bind(await Scene.open());
    for (const given of [undefined, null, 'gone', 0]) {
      const controller = new AbortController();
      const view = client.coalescer.withOptions({ signal: controller.signal });
      const promises = [view.get('a'), cold(view, 'ECHO', 'a')];
      controller.abort(given);
      for (const promise of promises) await expect(promise).rejects.toBe(controller.signal.reason);
    }
  });

  it('does not reject a command again after it has timed out', async () => {
    const { client, signal, abort, feed } = bind(await Scene.open());
    const view = client.coalescer.withOptions({ signal, timeout: 1 });
    const late = view.get('a');
    await expect(late).rejects.toThrow('Command timed out');
    abort();
    const next = client.get('b');
    await turn();
    feed('$1\r\n1\r\n$1\r\n2\r\n');
    expect(await next).toBe('2');
  });
});

it('in a transaction: an aborted command has its place in the reply to EXEC', async () => {
  const { client, view, written, abort, feed } = bind(await Scene.open());
  const multi = client.multi({ pipeline: false });
  const aborted = view.get('a');
  abort();
  await expect(aborted).rejects.toBe(reason);
  const exec = (client as unknown as { exec(): Promise<unknown> }).exec();
  await turn();
  expect(written()).toContain(request('get', 'a'));
  feed('+OK\r\n+QUEUED\r\n*1\r\n$1\r\na\r\n');
  await multi;
  expect(await exec).toEqual([[null, 'a']]);
});

it('in the backlog: an aborted command is sent when there is room', async () => {
  const { client, view, written, abort, feed } = bind(await Scene.open({ maxInFlight: 1 }));
  const first = client.get('1');
  const aborted = [view.get('a'), view.set('b', Buffer.from('c'))];
  const last = client.get('2');
  await turn();
  abort();
  for (const promise of aborted) await expect(promise).rejects.toBe(reason);
  feed('$1\r\n1\r\n');
  await turn();
  feed('$1\r\na\r\n');
  await turn();
  feed('+OK\r\n');
  await turn();
  feed('$1\r\n2\r\n');
  expect(await Promise.all([first, last])).toEqual(['1', '2']);
  expect(written()).toBe(
    [request('get', '1'), request('get', 'a'), request('set', 'b', 'c'), request('get', '2')].join(''),
  );
});

describe('with shareReads', () => {
  const options = { shareReads: true };

  it('followers of an aborted read get its reply', async () => {
    const { client, view, written, abort, feed } = bind(await Scene.open(options));
    const leader = view.get('k');
    const followers = [client.get('k'), client.get('k')];
    abort();
    await expect(leader).rejects.toBe(reason);
    await turn();
    expect(written()).toBe(request('get', 'k'));
    feed('$1\r\nv\r\n');
    expect(await Promise.all(followers)).toEqual(['v', 'v']);
  });

  it('followers of an aborted read time out, if its reply does not come', async () => {
    const scene = await Scene.open(options, { commandTimeout: 100 });
    const { client, view, abort, feed } = bind(scene);
    const leader = view.get('k');
    const followers = [client.get('k'), client.get('k')];
    abort();
    await expect(leader).rejects.toBe(reason);
    expect(scene.listeners).toBe(0);
    for (const follower of followers) await expect(follower).rejects.toThrow('Command timed out');
    client.options.commandTimeout = 60_000;
    const own = client.get('other');
    await turn();
    feed('$4\r\nlate\r\n'.repeat(3 - client.coalescer.stats().sharedReads));
    feed('$1\r\nv\r\n');
    expect(await own).toBe('v');
  });

  it('an aborted follower does not disturb the others', async () => {
    const scene = await Scene.open(options);
    const { client, view, abort, feed } = bind(scene);
    const leader = client.get('k');
    const aborted = view.get('k');
    const follower = client.get('k');
    abort();
    await expect(aborted).rejects.toBe(reason);
    expect(scene.listeners).toBe(0);
    await turn();
    feed('$1\r\nv\r\n');
    expect(await Promise.all([leader, follower])).toEqual(['v', 'v']);
  });

  it('no later read follows one that was aborted', async () => {
    const { client, view, written, abort, feed } = bind(await Scene.open(options));
    const aborted = view.get('k');
    abort();
    const later = client.get('k');
    await expect(aborted).rejects.toBe(reason);
    await turn();
    expect(written()).toBe(request('get', 'k').repeat(2));
    feed('$1\r\na\r\n$1\r\nv\r\n');
    expect(await later).toBe('v');
  });
});

describe('listeners', () => {
  it('one per signal, however many commands and views, and none when the last has settled', async () => {
    const scene = await Scene.open();
    const other = scene.client.coalescer.withOptions({ signal: scene.signal, timeout: 60_000 });
    const promises = Array.from({ length: 50 }, (_, index) => [
      scene.view.get(`a${index}`),
      other.get(`b${index}`),
      cold(other, 'ECHO', 'c'),
    ]).flat();
    expect(scene.listeners).toBe(1);
    await turn();
    scene.feed('+x\r\n'.repeat(149));
    await turn();
    expect(scene.listeners).toBe(1);
    scene.feed('+x\r\n');
    await Promise.all(promises);
    expect(scene.listeners).toBe(0);
  });

  it('of a signal under which something always waits: it still aborts those that wait, in order', async () => {
    const scene = await Scene.open();
    const order: number[] = [];
    let waiting: Promise<unknown>[] = [];
    for (let index = 0; index < 500; index += 1) {
      waiting.push(scene.view.get(`${index}`).catch(() => order.push(index)));
      if (index === 0) continue;
      await turn();
      scene.feed('+x\r\n');
      waiting = waiting.slice(-1);
    }
    expect(scene.listeners).toBe(1);
    scene.abort();
    await Promise.all(waiting);
    expect(order).toEqual([499]);
    expect(scene.listeners).toBe(0);
  });
});

describe.each(HOSTS)('$name', (host) => {
  it('in the offline queue: the command is not sent, those around it are', async () => {
    const client = host.createCoalesced(redisUrl(), { lazyConnect: true });
    const controller = new AbortController();
    const view = client.coalescer.withOptions({ signal: controller.signal, timeout: 60_000 });
    const key = `${prefix}offline:${host.name}`;
    const before = client.set(key, 'before');
    const aborted = [view.set(key, 'aborted'), cold(view, 'SET', key, 'aborted')];
    controller.abort(reason);
    for (const promise of aborted) await expect(promise).rejects.toBe(reason);
    expect(await before).toBe('OK');
    expect(await client.get(key)).toBe('before');
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });

  it('in a long offline queue: a thousand aborts of one turn take one pass over it', async () => {
    const client = host.createCoalesced(redisUrl(), { lazyConnect: true, retryStrategy: () => null });
    const calls: Promise<unknown>[] = [];
    const controllers = Array.from({ length: 1_000 }, () => new AbortController());
    for (let index = 0; index < 10_000; index += 1) calls.push(client.echo(String(index)));
    const aborted = controllers.map(({ signal }) => client.coalescer.withOptions({ signal }).echo('aborted'));
    const { offlineQueue } = client as unknown as { offlineQueue: Record<'peekAt' | 'shift', () => unknown> };
    const work = (['peekAt', 'shift'] as const).map((method) => vi.spyOn(offlineQueue, method));
    for (const controller of controllers) controller.abort(reason);
    for (const outcome of await Promise.allSettled(aborted)) expect(outcome).toMatchObject({ reason });
    await turn();
    const steps = work.reduce((sum, { mock }) => sum + mock.calls.length, 0);
    expect(steps).toBeLessThan(100_000);
    for (const spy of work) spy.mockRestore();
    expect(await Promise.all(calls)).toEqual(calls.map((_, index) => String(index)));
  });

  /** A command that is aborted before the open transaction was sent is executed, as the others are. */
  async function expectPlaceInExec(client: CoalescedClient): Promise<void> {
    const controller = new AbortController();
    const view = client.coalescer.withOptions({ signal: controller.signal });
    const queued = [client.echo('1'), view.echo('2'), client.echo('3')];
    const exec = (client as unknown as { exec(): Promise<unknown> }).exec();
    controller.abort(reason);
    await expect(queued[1]).rejects.toBe(reason);
    expect(await exec).toEqual(['1', '2', '3'].map((value) => [null, value]));
  }

  it('in the offline queue, in a transaction: the command has its place in the reply to EXEC', async () => {
    const client = host.createCoalesced(redisUrl(), { lazyConnect: true });
    void client.multi({ pipeline: false });
    await expectPlaceInExec(client);
  });

  it('over a lost connection, in a transaction begun before: the command has its place in the reply to EXEC', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.createCoalesced(proxy.url));
    void client.multi({ pipeline: false });
    const closed = new Promise((resolve) => client.once('close', resolve));
    await proxy.loseRequests('multi');
    await closed;
    await expectPlaceInExec(client);
  });

  it('over a lost connection: the time of the other commands goes on', async () => {
    const server = await startScriptedServer((command, connection) => {
      if (command[0] === 'ping') return '+PONG\r\n';
      return command[0] === 'get' && connection === 1 && command[1] === 'b' ? 'close' : handshake(command);
    });
    const client = await ready(host.createCoalesced(server.url));
    const controller = new AbortController();
    const aborted = client.coalescer.withOptions({ signal: controller.signal, timeout: 500 }).get('a');
    const late = client.coalescer.withOptions({ timeout: 500 }).get('b');
    client.once('close', () => controller.abort(reason));
    await expect(aborted).rejects.toBe(reason);
    await expect(late).rejects.toThrow('Command timed out');
  });

  it('over a lost connection: an aborted command is sent again, as those around it are', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.createCoalesced(proxy.url));
    const controller = new AbortController();
    const view = client.coalescer.withOptions({ signal: controller.signal });
    const key = `${prefix}lost:${host.name}`;
    const neighbours = [client.incr(`${key}:n`)];
    const aborted = view.incr(`${key}:a`);
    neighbours.push(client.incr(`${key}:n`));
    client.once('close', () => controller.abort(reason));
    const lost = proxy.loseRequests(`${key}:a`);
    await expect(aborted).rejects.toBe(reason);
    await lost;
    proxy.resume();
    expect(await Promise.all(neighbours)).toEqual([1, 2]);
    expect(await client.get(`${key}:a`)).toBe('1');
  });

  it('scripts: one that loads its script is sent too, so that later ones find it', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const name = `${prefix}${host.name}`;
    client.defineCommand('mark', { numberOfKeys: 1, lua: `return redis.call('incr', KEYS[1]) -- ${name}` });
    const controller = new AbortController();
    type Scripted = { mark(key: string): Promise<unknown> };
    const view = client.coalescer.withOptions({ signal: controller.signal }) as unknown as Scripted;
    const aborted = view.mark(`${name}:a`);
    const next = (client as unknown as Scripted).mark(`${name}:b`);
    const inTransaction = client.multi() as unknown as Scripted & { exec(): Promise<unknown> };
    void inTransaction.mark(`${name}:c`);
    const transaction = inTransaction.exec();
    controller.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect(await next).toBe(1);
    expect(await transaction).toEqual([[null, 1]]);
  });
});

describe('a Cluster of scripted nodes', () => {
  it('an aborted command is redirected as its neighbours are, and disturbs none of them', async () => {
    const slots = (port: number) => `*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${bulk('127.0.0.1')}:${port}\r\n`;
    const nodes: { port: number; commands: readonly (readonly string[])[] }[] = [];
    for (const at of [0, 1]) {
      const server = await startScriptedServer((command) => {
        const [name, key = ''] = command;
        if (name === 'cluster') return slots(nodes[0]?.port ?? 0);
        if (name === 'ping') return '+PONG\r\n';
        if (name !== 'get') return handshake(command);
        return at === 0 ? `-MOVED 1 127.0.0.1:${nodes[1]?.port}\r\n` : bulk(`value of ${key}`);
      });
      nodes.push({ port: Number(new URL(server.url).port), commands: server.commands });
    }
    const cluster = coalesce(
      new Cluster([{ host: '127.0.0.1', port: nodes[0]?.port as number }], { redisOptions: { protocol: 2 } }),
    );
    onTestFinished(() => cluster.disconnect());
    await until(() => cluster.status === 'ready', 'the Cluster to be ready');
    expect(await cluster.get('warm')).toBe('value of warm');
    const controller = new AbortController();
    const view = cluster.coalescer.withOptions({ signal: controller.signal });
    const neighbours = [cluster.get('{x}1')];
    const aborted = view.get('{x}a');
    neighbours.push(cluster.get('{x}2'));
    setImmediate(() => controller.abort(reason));
    await expect(aborted).rejects.toBe(reason);
    expect(await Promise.all(neighbours)).toEqual(['value of {x}1', 'value of {x}2']);
    expect(await cluster.get('{x}3')).toBe('value of {x}3');
    expect(nodes[1]?.commands.filter(([, key]) => key === '{x}a')).toEqual([['get', '{x}a']]);
  });
});

it('with the cache: the reply to an aborted read is kept as that of any other', async () => {
  const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { cache: true }));
  const key = `${prefix}cached`;
  await client.set(key, 'value');
  const hits = () => client.coalescer.stats().cache?.hits ?? 0;
  for (let round = 0; round < 5; round += 1) expect(await client.get(key)).toBe('value');
  expect(hits()).toBeGreaterThan(0);
  const controller = new AbortController();
  const aborted = client.coalescer.withOptions({ signal: controller.signal, cache: false }).get(key);
  controller.abort(reason);
  await expect(aborted).rejects.toBe(reason);
  await client.echo('its reply has come');
  const before = hits();
  for (let round = 0; round < 5; round += 1) expect(await client.get(key)).toBe('value');
  expect(hits()).toBeGreaterThan(before);
});

/** Its members, so that a test can name those it needs. */
function bind(scene: Scene) {
  const { client, view, signal } = scene;
  return {
    client: client as CoalescedClient & { commandQueue: { length: number } },
    view,
    signal,
    written: () => scene.written,
    abort: () => scene.abort(),
    feed: (replies: string) => scene.feed(replies),
  };
}

it.each(HOSTS)('$name: a pipeline that an aborted signal refused is not sent by a second exec()', async (host) => {
  const client = await ready(host.createCoalesced(redisUrl()));
  const key = `${prefix}refused`;
  const pipeline = client.coalescer
    .withOptions({ signal: AbortSignal.abort(reason) })
    .pipeline()
    .set(key, 'v');
  await expect(pipeline.exec()).rejects.toBe(reason);
  await expect(pipeline.exec()).rejects.toBe(reason);
  expect(await client.get(key)).toBeNull();
});
