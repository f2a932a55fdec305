import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import type { RedisOptions } from 'ioredis';
import { type CallOptions, CODES, type Coalesced, coalesce, Redis as DropIn } from 'ioredis-coalesce';
import { cork } from 'ioredis-coalesce/cork';
import IORedisMock from 'ioredis-mock';
import { describe, expect, it, vi } from 'vitest';
import { cold } from '../helpers/cold.js';
import { coalescedFake, disconnectFake } from '../helpers/fake-connection.js';
import {
  type Client,
  type CoalescedClient,
  endWithTest,
  HOSTS,
  type Host,
  ioredis6,
  outcomes,
  ready,
  sleep,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { collectUncaught } from '../helpers/uncaught.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings(CODES.TEST_DOUBLE, CODES.AUTO_PIPELINING);

const prefix = uniquePrefix('views');
const reason = new Error('the caller has gone');
const TIMED_OUT = 'Command timed out';

async function connected(host: Host = ioredis6, options: RedisOptions = {}): Promise<CoalescedClient> {
  return ready(host.createCoalesced(redisUrl(), options));
}

/** A client whose server does not answer any more. */
async function silenced(host: Host, options: RedisOptions = {}) {
  const proxy = await startProxy(redisUrl());
  const client = await ready(host.createCoalesced(proxy.url));
  Object.assign(client.options, options);
  proxy.stall();
  return { client, proxy };
}

function aborting(client: Coalesced, options: CallOptions = {}) {
  const controller = new AbortController();
  return {
    view: client.coalescer.withOptions({ ...options, signal: controller.signal }) as CoalescedClient,
    abort: () => controller.abort(reason),
    signal: controller.signal,
  };
}

/** The message of the error that a callback gets. */
function errorOf(call: (callback: (error?: Error | null) => void) => void): Promise<string | undefined> {
  return new Promise((resolve) => call((error) => resolve(error?.message)));
}

const fastCommands = ({ coalescer }: Coalesced) => coalescer.stats().fastCommands;

describe.each(HOSTS)('$name: a view', (host) => {
  it('has the members of its client, and is one for instanceof', async () => {
    const client = await connected(host);
    const view = client.coalescer.withOptions({});
    expect(view).toBeInstanceOf(host.Redis);
    expect(Object.getPrototypeOf(client)).not.toBe(host.Redis.prototype);
    expect(view.status).toBe('ready');
    expect(view.options).toBe(client.options);
    expect('status' in view && 'get' in view && 'coalescer' in view && !('nothing' in view)).toBe(true);
    expect((view as { nothing?: unknown }).nothing).toBeUndefined();
    expect(view.constructor).toBe(client.constructor);
    expect(view.coalescer.options).toBe(client.coalescer.options);
    expect(view.coalescer.enabled).toBe(true);
    expect(coalesce(view)).toBe(view);
    await expect(Promise.resolve(view)).resolves.toBe(view);
  });

  it('of a plain client, given to coalesce(): the client is coalesced', async () => {
    const client = coalesce(await ready(host.create(redisUrl())), false);
    const view = client.coalescer.withOptions({ timeout: 60_000 }) as CoalescedClient;
    expect(coalesce(view, { maxBatchSize: 7 })).toBe(view);
    expect(Reflect.ownKeys(view)).toEqual([]);
    expect(coalesce(client).coalescer.options.maxBatchSize).toBe(7);
    expect(client.listenerCount('connect')).toBe(1);
    await view.ping();
    expect(await Promise.all([view.echo('a'), client.echo('b')])).toEqual(['a', 'b']);
    expect(fastCommands(client)).toBe(2);
    client.coalescer.detach();
    expect(client.listenerCount('connect')).toBe(0);
    expect(cork(view)).toBe(cork(client));
    expect(Reflect.ownKeys(view)).toEqual([]);
    expect(coalesce(view).coalescer.options.maxBatchSize).toBe(7);
    expect(client.coalescer.enabled).toBe(true);
  });

  it('runs the client’s other methods on the client, and nothing is written onto it', async () => {
    const client = await connected(host);
    const view = client.coalescer.withOptions({ timeout: 60_000 });
    const keys = Reflect.ownKeys(view);
    const listener = () => {};
    expect(view.on('custom', listener)).toBe(client);
    expect(client.listeners('custom')).toEqual([listener]);
    view.defineCommand('twice', { numberOfKeys: 1, lua: 'return {KEYS[1], KEYS[1]}' });
    const copy = endWithTest(view.duplicate());
    await view.select(1);
    await view.subscribe('channel').catch(() => {});
    expect(copy).toBeInstanceOf(host.Redis);
    expect(client).toHaveProperty('twice');
    expect(Reflect.ownKeys(view)).toEqual(keys);
  });

  it('sends fast commands on the fast path: methods, call(), scripts, added commands, with a callback too', async () => {
    const client = await connected(host, { keyPrefix: prefix });
    client.defineCommand('read', { numberOfKeys: 1, lua: "return redis.call('get', KEYS[1])" });
    client.addBuiltinCommand('strlen');
    const view = client.coalescer.withOptions({ timeout: 60_000 }) as CoalescedClient & {
      read(key: string): Promise<unknown>;
    };
    await view.set('k', 'value');
    await view.read('k');
    const called = await client.call('GET', `${prefix}k`);
    const before = fastCommands(client);
    expect(await view.get('k')).toBe('value');
    expect(await view.getBuffer('k')).toEqual(Buffer.from('value'));
    expect(await view.call('GET', `${prefix}k`)).toBe(called);
    expect(await view.read('k')).toBe('value');
    expect(await view.strlen('k')).toBe(5);
    expect(await view.mget(['k', 'none'])).toEqual(['value', null]);
    expect(await new Promise((resolve) => view.get('k', (error, value) => resolve([error, value])))).toEqual([
      null,
      'value',
    ]);
    expect(fastCommands(client) - before).toBe(7);
  });

  it('sends other commands as the client does', async () => {
    const client = await connected(host);
    const { view } = aborting(client, { timeout: 60_000 });
    const key = `${prefix}list:${host.name}`;
    expect(await view.config('GET', 'maxmemory')).toEqual(await client.config('GET', 'maxmemory'));
    expect(await cold(view, 'ECHO', 'a')).toBe('a');
    await view.rpush(key, '1');
    expect(await view.blpop(key, 0)).toEqual([key, '1']);
    const [refused, asByTheClient] = await outcomes([view.lpush(`${key}x`), client.lpush(`${key}x`)]);
    expect(refused).toEqual(asByTheClient);
    expect(await new Promise((resolve) => view.ping((_, value) => resolve(value)))).toBe('PONG');
  });

  it('calls a wrapper that has copied all that is on a method, not the method itself', async () => {
    const client = await connected();
    const { get } = client;
    const calls: unknown[][] = [];
    const wrapper = function (this: CoalescedClient, ...args: [string]) {
      calls.push(args);
      return get.apply(this, args);
    };
    Object.assign(client, { get: Object.defineProperties(wrapper, Object.getOwnPropertyDescriptors(get)) });
    expect(await client.coalescer.withOptions({}).get(`${prefix}none`)).toBeNull();
    expect(calls).toEqual([[`${prefix}none`]]);
  });

  it('asks for what the client has at the moment: stubs, patched methods, detach() and coalesce()', async () => {
    const client = await connected(host);
    const { view, abort } = aborting(client, { timeout: 60_000 });
    const key = `${prefix}changing:${host.name}`;
    await view.set(key, 'value');
    const stub = vi.fn(() => Promise.resolve('stubbed'));
    (client as { get: unknown }).get = stub;
    expect(await view.get(key)).toBe('stubbed');
    expect(stub.mock.contexts).toEqual([client]);
    Reflect.deleteProperty(client, 'get');
    client.coalescer.detach();
    expect(view.coalescer.enabled).toBe(false);
    expect(await view.get(key)).toBe('value');
    coalesce(client);
    expect(view.coalescer.enabled).toBe(true);
    await client.get(key);
    const before = fastCommands(client);
    expect(await view.get(key)).toBe('value');
    expect(fastCommands(client)).toBe(before + 1);
    client.coalescer.detach();
    const aborted = [view.get(key), view.blpop(`${key}:none`, 1)];
    abort();
    for (const promise of aborted) await expect(promise).rejects.toBe(reason);
    await expect(view.get(key)).rejects.toBe(reason);
  });

  it('keeps for itself what is written onto it, such as a stub', async () => {
    const client = await connected(host);
    const view = client.coalescer.withOptions({});
    const stub = vi.spyOn(view, 'get').mockResolvedValue('stubbed');
    expect([await view.get(`${prefix}none`), await client.get(`${prefix}none`)]).toEqual(['stubbed', null]);
    stub.mockRestore();
    expect('marked' in Object.assign(view, { marked: true })).toBe(true);
    expect(client).not.toHaveProperty('marked');
    expect(await view.get(`${prefix}none`)).toBeNull();
  });

  it('works behind a Proxy', async () => {
    const client = await connected(host);
    const view = new Proxy(client.coalescer.withOptions({}), {});
    expect(await view.echo('a')).toBe('a');
    expect(await view.ping()).toBe('PONG');
    expect(await view.pipeline().echo('b').exec()).toEqual([[null, 'b']]);
    expect(view.coalescer.enabled).toBe(true);
    expect(JSON.stringify(view)).toBe('{}');
  });

  it('runs methods of a subclass with private members on the client', async () => {
    class Mine extends host.Redis {
      readonly #greeting = 'hello';
      greet(): Promise<unknown> {
        return this.echo(this.#greeting);
      }
    }
    const client = await ready(coalesce(endWithTest(new Mine(redisUrl(), {}))));
    const view = client.coalescer.withOptions({});
    expect(view).toBeInstanceOf(Mine);
    expect(await view.greet()).toBe('hello');
  });

  it('runs a command of a subclass that has its own form of it on the client', async () => {
    class Mine extends host.Redis {
      readonly #prefix = `${prefix}mine:`;
      override get(key: string) {
        return super.get(this.#prefix + key);
      }
    }
    const client = await ready(coalesce(endWithTest(new Mine(redisUrl(), {}))));
    const { view, abort } = aborting(client, { timeout: 60_000 });
    await client.set(`${prefix}mine:a`, 'value');
    expect(await view.get('a')).toBe('value');
    const aborted = view.get('a');
    abort();
    await expect(aborted).rejects.toBe(reason);
    await expect(view.get('a')).rejects.toBe(reason);
  });

  it('a call with a callback leaves no rejection unhandled, also of a method that is not the host’s', async () => {
    const unhandled = collectUncaught('unhandledRejection');
    const client = await connected(host);
    const lost = endWithTest(new host.Redis('redis://127.0.0.1:1', { lazyConnect: true, retryStrategy: () => null }));
    const { lpush } = client;
    client.lpush = function (this: unknown, ...args: Parameters<typeof lpush>) {
      return lpush.apply(client, args);
    } as typeof lpush;
    await client.set(`${prefix}text`, 'value');
    const errorsOf = async (some: Client, other: Client) => [
      await errorOf((callback) => void some.lpush(`${prefix}text`, '1', callback)),
      await errorOf((callback) => void other.connect(callback)),
    ];
    const expected = await errorsOf(client, lost);
    const call = { timeout: 60_000 };
    expect(await errorsOf(client.coalescer.withOptions(call), coalesce(lost).coalescer.withOptions(call))).toEqual(
      expected,
    );
    await turn();
    expect(unhandled).toEqual([]);
  });

  it('calls back if a stub of sendCommand returns no promise, too', async () => {
    const client = await connected(host);
    const { sendCommand } = client;
    client.sendCommand = function (this: unknown, ...args: Parameters<typeof sendCommand>) {
      sendCommand.apply(client, args);
    };
    const view = client.coalescer.withOptions({});
    const answer = (method: 'get' | 'blpop', ...args: (string | number)[]) =>
      new Promise((resolve) =>
        (view[method] as (...given: unknown[]) => void)(...args, (...outcome: unknown[]) => resolve(outcome)),
      );
    await client.rpush(`${prefix}stubbed`, '1');
    expect(await answer('get', `${prefix}none`)).toEqual([null, null]);
    expect(await answer('blpop', `${prefix}stubbed`, 0)).toEqual([null, [`${prefix}stubbed`, '1']]);
  });
});

describe.each(HOSTS)('$name: timeout', (host) => {
  const callsOf = (client: CoalescedClient) => [client.get('k'), cold(client, 'ECHO', 'a'), client.ping()];
  const timedOut = ['get', 'ECHO', 'ping'].map(() => ({ error: `Error/Error: ${TIMED_OUT}` }));

  it('is kept instead of commandTimeout, a longer and a shorter one, fast or cold', async () => {
    const { client, proxy } = await silenced(host, { commandTimeout: 50 });
    const patient = callsOf(client.coalescer.withOptions({ timeout: 60_000 }));
    expect(await outcomes(callsOf(client))).toMatchObject(timedOut);
    client.options.commandTimeout = 60_000;
    expect(await outcomes(callsOf(client.coalescer.withOptions({ timeout: 1 })))).toMatchObject(timedOut);
    proxy.resume();
    expect(await Promise.all(patient)).toEqual([null, 'a', 'PONG']);
  });

  it('goes on over a lost connection', async () => {
    const { client, proxy } = await silenced(host);
    const key = `${prefix}timeout`;
    const late = client.coalescer.withOptions({ timeout: 300 }).get(key);
    await proxy.loseReplies(key);
    proxy.stall();
    await expect(late).rejects.toThrow(TIMED_OUT);
  });

  it('applies without coalescing, too', async () => {
    const { client } = await silenced(host);
    client.coalescer.detach();
    expect(await outcomes(callsOf(client.coalescer.withOptions({ timeout: 1 })))).toMatchObject(timedOut);
  });
});

describe.each(HOSTS)('$name: an argument that cannot become text', (host) => {
  type Calling = (client: CoalescedClient, argument: string) => Promise<unknown>;
  const calls: readonly Calling[] = [
    (client, argument) => client.set('k', argument),
    (client, argument) => client.call('set', 'k', argument) as Promise<unknown>,
    (client, argument) => (client as unknown as { noted(key: string): Promise<unknown> }).noted(argument),
    (client, argument) => client.hset('k', { field: argument }),
  ];
  const outcomesOf = (client: CoalescedClient) => {
    client.defineCommand('noted', { numberOfKeys: 1, lua: 'return 1' });
    const made = [Object.create(null), JSON.parse('{"toString":1}')] as string[];
    return made.flatMap((argument) => calls.map((call) => (async () => call(client, argument))()));
  };
  const offline = () => host.createCoalesced(redisUrl(), { lazyConnect: true, retryStrategy: null as never });

  /**
   * Calls of a client, or of its view with options, and what surfaced as uncaught until it had answered a PING behind
   * them.
   */
  async function callWith(state: string, options?: CallOptions) {
    const uncaught = collectUncaught();
    const client = offline();
    if (state === 'ready') await client.connect();
    const calling = outcomesOf(options === undefined ? client : client.coalescer.withOptions(options));
    const rejected = await outcomes(calling);
    // Host: it would fail to write what it has queued, and hang.
    if (options === undefined) (client as unknown as { offlineQueue: { clear(): void } }).offlineQueue.clear();
    if (options === undefined) return { rejected, uncaught: [] };
    await ready(client);
    await sleep(5);
    expect(await client.ping()).toBe('PONG');
    return { rejected, uncaught };
  }

  it.each(['offline', 'ready'])(
    '%s: the call is rejected as without options, and nothing fails later',
    async (state) => {
      // Host: what a call throws when its command is written is not what has rejected the command's promise.
      collectUncaught('unhandledRejection');
      const plain = await callWith(state);
      expect(plain.rejected).toHaveLength(8);
      for (const outcome of plain.rejected)
        expect(outcome).toMatchObject({ error: expect.stringMatching(/^TypeError/) });
      expect(await callWith(state, { timeout: 1 })).toEqual(plain);
      expect(await callWith(state, { signal: new AbortController().signal })).toEqual(plain);
    },
  );

  it('offline, aborted in the same turn: the call is rejected as without options', async () => {
    const uncaught = collectUncaught();
    const client = offline();
    const { view, abort } = aborting(client, { timeout: 1 });
    const calling = outcomesOf(view);
    abort();
    for (const outcome of await outcomes(calling))
      expect(outcome).toMatchObject({ error: expect.stringMatching(/^TypeError/) });
    await ready(client);
    expect(await client.ping()).toBe('PONG');
    expect(uncaught).toEqual([]);
  });
});

describe.each(HOSTS)('$name: pipelines and transactions of a view', (host) => {
  it.each<[string, (made: object) => object]>([
    ['derived from it', (made) => Object.create(made) as object],
    ['a Proxy of it', (made) => new Proxy(made, {})],
  ])(
    'a transaction within a pipeline, on an object %s: it is closed, and the next caller gets its own reply',
    async (_, wrap) => {
      const client = await connected(host);
      const key = `${prefix}wrapped:${host.name}`;
      const plain = await ready(host.create(redisUrl()));
      const run = async (some: { pipeline(): object }) => {
        const made = wrap(some.pipeline()) as ReturnType<CoalescedClient['multi']> & { multi(): unknown };
        made.multi();
        made.set(key, 1);
        void made.exec();
        return made.exec();
      };
      expect(await run(client.coalescer.withOptions({}))).toEqual(await run(plain));
      expect(await client.get(key)).toBe('1');
    },
  );

  it.each(['pipeline', 'multi'] as const)('%s: the options are those of exec()', async (kind) => {
    const client = await connected(host);
    const { view, abort, signal } = aborting(client, { timeout: 60_000 });
    const key = `${prefix}${kind}:${host.name}`;
    const expected = [
      [null, 'OK'],
      [null, 'v'],
    ];
    expect(await view[kind]().set(key, 'v').get(key).exec()).toEqual(expected);
    expect(
      await new Promise((resolve) =>
        view[kind]([['set', key, 'v']])
          .get(key)
          .exec((_, all) => resolve(all)),
      ),
    ).toEqual(expected);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const sent = view[kind]().set(key, 'sent').exec();
    const unsent = view[kind]().set(key, 'unsent');
    abort();
    await expect(sent).rejects.toBe(reason);
    await expect(unsent.exec()).rejects.toBe(reason);
    expect(await client.get(key)).toBe('sent');
  });

  describe.each(['pipeline', 'multi'] as const)('a second exec() of %s()', (kind) => {
    it.each([
      ['was answered', undefined],
      ['was refused by maxPending', { maxPending: 3 }],
    ])('sends nothing if it is aborted when the first %s', async (_, options) => {
      const client = await ready(host.createCoalesced(redisUrl(), {}, options));
      const { view, abort } = aborting(client);
      const key = `${prefix}again:${kind}:${host.name}`;
      await client.del(key);
      const made = view[kind]().incr(key);
      const busy = options && [client.ping(), client.ping(), client.ping()];
      await outcomes([made.exec()]);
      await Promise.all(busy ?? []);
      const before = await client.get(key);
      expect(before).toBe(options ? null : '1');
      abort();
      await expect(made.exec()).rejects.toBe(reason);
      await client.ping();
      expect(await client.get(key)).toBe(before);
    });

    it('leaves a rejection unhandled if its caller does', async () => {
      const unhandled = collectUncaught('unhandledRejection');
      const { view, abort } = aborting(await connected(host));
      const made = view[kind]().ping();
      await made.exec();
      abort();
      void made.exec();
      await until(() => unhandled.length > 0, 'an unhandled rejection');
      expect(unhandled).toEqual([reason]);
    });
  });

  it('the timeout applies to a whole exec(), also where the host sends it', async () => {
    const { client } = await silenced(host);
    const view = client.coalescer.withOptions({ timeout: 1 });
    await expect(view.pipeline().get('k').exec()).rejects.toThrow(TIMED_OUT);
    await expect(view.multi().get('k').exec()).rejects.toThrow(TIMED_OUT);
    await expect(view.multi().blpop('k', 0).exec()).rejects.toThrow(TIMED_OUT);
    await expect(view.multi({ pipeline: false })).rejects.toThrow(TIMED_OUT);
  });
});

describe('clients that are not coalesced', () => {
  it.each([
    ['a client with coalesce: false', () => new DropIn(redisUrl(), { coalesce: false })],
    ['ioredis-mock', () => coalesce(new IORedisMock() as unknown as CoalescedClient)],
    [
      'a client with enableAutoPipelining',
      () => coalesce(endWithTest(new ioredis6.Redis(redisUrl(), { enableAutoPipelining: true }))),
    ],
  ])('%s: signal and timeout hold for the promises', async (_, create) => {
    const client = create() as unknown as CoalescedClient;
    await client.get('warm');
    const { view, abort } = aborting(client, { timeout: 60_000, cache: false });
    const key = `${prefix}plain`;
    await view.set(key, 'value');
    expect(await view.get(key)).toBe('value');
    const neighbours = [client.get(key)];
    const aborted = view.get(key);
    neighbours.push(client.get(key));
    abort();
    await expect(aborted).rejects.toBe(reason);
    expect(await Promise.all(neighbours)).toEqual(['value', 'value']);
    await expect(view.set(key, 'late')).rejects.toBe(reason);
    expect(await client.get(key)).toBe('value');
    client.disconnect();
  });

  it('a silent mock has the timeout', async () => {
    const mock = { get: () => new Promise(() => {}), set: () => {}, quit: () => {} };
    const client = coalesce(mock) as unknown as CoalescedClient;
    await expect(client.coalescer.withOptions({ timeout: 1 }).get('k')).rejects.toThrow(TIMED_OUT);
  });
});

describe('cache: false', () => {
  it('asks the server, and keeps its answer', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { cache: true }));
    const key = `${prefix}cached`;
    const view = client.coalescer.withOptions({ cache: false });
    await client.set(key, 'value');
    for (let round = 0; round < 3; round += 1) {
      await client.get(key);
      await turn();
    }
    const hits = () => client.coalescer.stats().cache?.hits ?? 0;
    const before = hits();
    expect(await view.get(key)).toBe('value');
    expect(hits()).toBe(before);
    expect(await client.get(key)).toBe('value');
    expect(hits()).toBe(before + 1);
  });

  it('keeps an answer that was not there before', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { cache: true }));
    const key = `${prefix}filled`;
    const view = client.coalescer.withOptions({ cache: false });
    await client.set(key, 'value');
    // Nothing is kept until Redis has agreed to announce changes.
    for (let attempt = 0; client.coalescer.stats().cache?.entries === 0 && attempt < 10; attempt += 1) {
      expect(await view.get(key)).toBe('value');
    }
    const { hits = 0, misses = 0 } = client.coalescer.stats().cache ?? {};
    expect(await client.get(key)).toBe('value');
    expect(client.coalescer.stats().cache).toMatchObject({ hits: hits + 1, misses });
  });
});

describe('withOptions()', () => {
  const wrong: [unknown, string][] = [
    [undefined, 'withOptions() must be an object with signal, timeout or cache, got undefined'],
    [5000, 'withOptions() must be an object with signal, timeout or cache, got 5000 (number)'],
    [{ timout: 5 }, 'withOptions().timout is not an option; the options are signal, timeout, cache'],
    [{ signal: new AbortController() }, 'withOptions().signal must be an AbortSignal, got an object (AbortController)'],
    [{ signal: null }, 'withOptions().signal must be an AbortSignal, got null'],
    [{ timeout: '5' }, 'withOptions().timeout must be a number of milliseconds from 1 to 2147483647, got "5" (string)'],
    [{ timeout: 0 }, 'withOptions().timeout must be a number of milliseconds from 1 to 2147483647, got 0 (number)'],
    [
      { timeout: Number.POSITIVE_INFINITY },
      'withOptions().timeout must be a number of milliseconds from 1 to 2147483647, got Infinity (number)',
    ],
    [{ cache: 'no' }, 'withOptions().cache must be a boolean, got "no" (string)'],
  ];

  it.each(wrong)('refuses %o', (options, message) => {
    const client = coalesce(endWithTest(new ioredis6.Redis(redisUrl(), { lazyConnect: true })));
    expect(() => client.coalescer.withOptions(options as CallOptions)).toThrow(
      expect.objectContaining({ message: `ioredis-coalesce: ${message}`, code: CODES.OPTION }),
    );
  });

  it('of a view adds to its options; undefined leaves one as it is', async () => {
    const fake = await coalescedFake({});
    const { view, abort } = aborting(fake.client as unknown as CoalescedClient);
    const timed = view.coalescer.withOptions({ timeout: 1 });
    const both = timed.coalescer.withOptions({ timeout: undefined, signal: undefined, cache: true });
    await expect(both.get('k')).rejects.toThrow(TIMED_OUT);
    abort();
    await expect(both.get('k')).rejects.toBe(reason);
    await expect(timed.coalescer.withOptions({ signal: new AbortController().signal }).get('k')).rejects.toThrow(
      TIMED_OUT,
    );
    await disconnectFake(fake);
  });
});
