/** Reads that are asked for before a caller wants them (`cache.prefetch`), and how their answers are given. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import type { CacheOptions } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Batch } from '../../src/core/batch.js';
import { cached, elsewhere, hitsOf } from '../helpers/client-cache/cached.js';
import { Flow, learned, predictions } from '../helpers/client-cache/prefetching.js';
import { cold } from '../helpers/cold.js';
import { heapNow } from '../helpers/hostile/heap.js';
import { type Client, type CoalescedClient, ioredis6, ready, sleep, until } from '../helpers/hosts.js';
import { assumeFar } from '../helpers/predicting.js';
import { startProxy } from '../helpers/proxy.js';
import { startServer, uniquePrefix } from '../helpers/redis.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

assumeFar();

let server: Awaited<ReturnType<typeof startServer>>;
let other: Client;
let prefix: string;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  other = await ready(ioredis6.create(server.url));
  prefix = uniquePrefix('prefetch');
});

const learn = (cache: CacheOptions = {}, options = {}, coalesceOptions = {}) =>
  learned(server.url, other, prefix, cache, options, coalesceOptions);

/** Whether a read is answered although none is sent. */
async function wasPredicted(client: CoalescedClient, read: () => Promise<unknown>): Promise<boolean> {
  const before = predictions(client).predictionsUsed;
  await read();
  return predictions(client).predictionsUsed === before + 1;
}

describe('reads that follow another one', () => {
  it('are requested in the same write as that, and not sent when they are issued', async () => {
    const flow = await learn();
    const { client } = flow;
    const id = await flow.newUser();
    const spy = spyOnSocket(client);
    expect(await flow.run(id)).toEqual([
      `user ${id}`,
      { name: `name ${id}`, mail: 'm' },
      `cart ${id}`,
      `flags ${id}`,
      `plan ${id}`,
    ]);
    expect(spy.writes).toHaveLength(1);
    const reads = commandNames(spy.text()).filter((name) => /^h?get/.test(name));
    expect(reads).toEqual(['get', 'hgetall', 'get', 'get', 'get']);
  });

  it('are requested with an answer from memory, too', async () => {
    const flow = await learn();
    const { client } = flow;
    const id = await flow.newUser();
    await client.get(flow.key('user', id));
    for (const kind of ['cart', 'flags', 'plan']) await other.set(flow.key(kind, id), 'changed');
    await client.ping();
    const hits = hitsOf(client);
    const spy = spyOnSocket(client);
    expect((await flow.run(id)).slice(2)).toEqual(['changed', 'changed', 'changed']);
    expect(spy.writes).toHaveLength(1);
    expect(hitsOf(client) - hits).toBe(5);
  });

  it('share the reply that is on its way', async () => {
    const flow = await learn();
    const { client } = flow;
    const id = await flow.newUser();
    const spy = spyOnSocket(client);
    const all = [
      client.get(flow.key('user', id)),
      client.hgetall(flow.key('profile', id)),
      client.get(flow.key('cart', id)),
    ];
    expect(await Promise.all(all)).toEqual([`user ${id}`, { name: `name ${id}`, mail: 'm' }, `cart ${id}`]);
    expect(commandNames(spy.text()).filter((name) => /^h?get/.test(name))).toHaveLength(5);
  });

  it('give each caller its own value', async () => {
    const flow = await learn();
    const id = await flow.newUser();
    const { client } = flow;
    const [, a, b] = await Promise.all([
      client.get(flow.key('user', id)),
      client.hgetall(flow.key('profile', id)),
      client.hgetall(flow.key('profile', id)),
    ]);
    a.name = 'changed';
    expect(b.name).toBe(`name ${id}`);
  });

  it.each([
    ['numbers as text', { stringNumbers: true }],
    ['values as in RESP3', { replyMapping: 'resp3' as const }],
    ['a prefix of keys', { keyPrefix: 'tenant:' }],
  ])('have the values of a plain client: %s', async (_, options) => {
    const client = await cached(server.url, { prefetch: true }, options);
    const plain = await ready(ioredis6.create(server.url, options));
    const run = async (
      of: Pick<Client, 'get' | 'zrange' | 'hgetall' | 'getBuffer' | 'strlen' | 'zscore'>,
      id: number,
    ) => [
      await of.get(`${prefix}:name:${id}`),
      await of.zrange(`${prefix}:scores:${id}`, '0', '-1', 'WITHSCORES'),
      await of.hgetall(`${prefix}:hash:${id}`),
      await of.getBuffer(`${prefix}:name:${id}`),
      await of.strlen(`${prefix}:name:${id}`),
      await of.zscore(`${prefix}:scores:${id}`, 'b'),
    ];
    const write = async (id: number) => {
      await plain.set(`${prefix}:name:${id}`, 'é');
      await plain.zadd(`${prefix}:scores:${id}`, 1, 'a', 2.5, 'b');
      await plain.hset(`${prefix}:hash:${id}`, { a: '1' });
    };
    for (let id = 0; id < 100; id += 1) {
      await write(id);
      expect(await run(client, id)).toEqual(await run(plain, id));
    }
    const before = predictions(client).predictionsUsed;
    await write(1_000);
    expect(await run(client, 1_000)).toEqual(await run(plain, 1_000));
    expect(predictions(client).predictionsUsed - before).toBe(5);
  });
});

describe('the elements of a list', () => {
  const list = (id: number) => `${prefix}:list:${id}`;
  const product = (id: string) => `${prefix}:product:${id}`;
  const kinds: readonly (readonly [
    string,
    (id: number, ids: string[]) => Promise<unknown>,
    (of: Client, id: number) => Promise<string[]>,
  ])[] = [
    ['smembers', (id, ids) => other.sadd(list(id), ...ids), (of, id) => of.smembers(list(id))],
    ['lrange', (id, ids) => other.rpush(list(id), ...ids), (of, id) => of.lrange(list(id), 0, -1)],
    [
      'zrange with scores',
      (id, ids) => other.zadd(list(id), ...ids.flatMap((each) => [1, each])),
      async (of, id) => (await of.zrange(list(id), '0', '-1', 'WITHSCORES')).filter((_, index) => index % 2 === 0),
    ],
    [
      'hkeys',
      (id, ids) => other.hset(list(id), Object.fromEntries(ids.map((each) => [each, 'x']))),
      (of, id) => of.hkeys(list(id)),
    ],
    [
      'hgetall',
      (id, ids) => other.hset(list(id), Object.fromEntries(ids.map((each) => [each, 'x']))),
      async (of, id) => Object.keys(await of.hgetall(list(id))),
    ],
    [
      'hmget',
      (id, ids) => other.hset(list(id), Object.fromEntries(ids.map((each, index) => [`f${index}`, each]))),
      async (of, id) => (await of.hmget(list(id), 'f0', 'f1', 'f2', 'f3', 'f4')).map(String),
    ],
  ];

  it.each(kinds)('%s: are requested when the reply has come', async (_, write, read) => {
    const client = await cached(server.url, { prefetch: true });
    const run = async (id: number) => {
      const ids = Array.from({ length: 5 }, (_, index) => String(1_000 + id * 5 + index));
      await write(id, ids);
      for (const each of ids) await other.set(product(each), `product ${each}`);
      const names: (string | null)[] = [];
      for (const each of await read(client, id)) names.push(await client.get(product(each)));
      expect(names.sort()).toEqual(ids.map((each) => `product ${each}`));
    };
    for (let id = 0; id < 60; id += 1) await run(id);
    const before = predictions(client).predictionsUsed;
    const spy = spyOnSocket(client);
    await run(1_000);
    expect(predictions(client).predictionsUsed - before).toBe(5);
    expect(spy.writes).toHaveLength(2);
  });
});

describe('nothing is predicted', () => {
  it('while a wrapper over the stream holds back what the client writes', async () => {
    const client = await cached(server.url, { prefetch: true });
    const run = async (id: number) => {
      await other.rpush(`${prefix}:list:${id}`, id, id + 1_000);
      for (const each of [id, id + 1_000]) await other.set(`${prefix}:product:${each}`, 'product');
      for (const each of await client.lrange(`${prefix}:list:${id}`, 0, -1))
        await client.get(`${prefix}:product:${each}`);
    };
    for (let id = 0; id < 100; id += 1) await run(id);
    const { predicted } = predictions(client);
    expect(predicted).toBeGreaterThan(50);
    await other.rpush(`${prefix}:list:7000`, 7_001, 7_002);
    const list = client.lrange(`${prefix}:list:7000`, 0, -1);
    client.coalescer.flush();
    const { stream } = client as unknown as { stream: Socket };
    const write = stream.write;
    stream.write = (...args: unknown[]) => {
      setTimeout(() => write.apply(stream, args as never), 20);
      return true;
    };
    const behind = cold(client, 'echo', 'held back');
    expect(await list).toEqual(['7001', '7002']);
    expect(await behind).toBe('held back');
    expect(predictions(client).predicted).toBe(predicted);
  });

  it('without the option, nor for other clients', async () => {
    const client = await cached(server.url, true);
    const flow = new Flow(client, other, prefix);
    for (let index = 0; index < 60; index += 1) await flow.run(await flow.newUser());
    expect(predictions(client)).toEqual({ predicted: 0, predictionsUsed: 0 });
    expect(client.coalescer.cache?.patterns()).toEqual([]);
  });

  it('for a view with cache: false, which uses no prediction either', async () => {
    const flow = await learn();
    const { client } = flow;
    const id = await flow.newUser();
    const before = predictions(client);
    const past = client.coalescer.withOptions({ cache: false });
    await past.get(flow.key('user', id));
    expect(predictions(client)).toEqual(before);
    await client.get(flow.key('user', id));
    await past.get(flow.key('cart', id));
    expect(predictions(client)).toEqual({ ...before, predicted: before.predicted + 4 });
  });

  it('within a transaction, or while keys are watched', async () => {
    const flow = await learn();
    const { client } = flow;
    const id = await flow.newUser();
    const { predicted } = predictions(client);
    await client.watch(`${prefix}:watched`);
    await flow.run(id);
    await client.multi({ pipeline: false });
    await client.get(flow.key('user', id));
    await client.exec();
    expect(predictions(client).predicted).toBe(predicted);
    await client.ping();
    await flow.run(await flow.newUser());
    expect(predictions(client).predicted).toBe(predicted + 4);
  });

  it('in the seconds after one in which the event loop was busy', async () => {
    const flow = await learn();
    const utilization = vi.mocked(performance.eventLoopUtilization);
    const { predicted } = predictions(flow.client);
    utilization.mockReturnValue({ idle: 0, active: 0, utilization: 0.8 });
    await sleep(1_000);
    await flow.run(await flow.newUser());
    expect(predictions(flow.client).predicted).toBe(predicted);
    utilization.mockReturnValue({ idle: 0, active: 0, utilization: 0.5 });
    await sleep(1_000);
    await flow.run(await flow.newUser());
    expect(predictions(flow.client).predicted).toBe(predicted + 4);
  });

  it('while the server is near', async () => {
    const flow = await learn();
    const isNear = vi.spyOn(Batch.prototype, 'serverIsNear', 'get').mockReturnValue(true);
    onTestFinished(() => void isNear.mockReturnValue(false));
    const { predicted } = predictions(flow.client);
    await flow.run(await flow.newUser());
    expect(predictions(flow.client).predicted).toBe(predicted);
    isNear.mockReturnValue(false);
    await flow.run(await flow.newUser());
    expect(predictions(flow.client).predicted).toBe(predicted + 4);
  });

  it.each([['maxInFlight'], ['maxPending']])('where it would take what %s leaves to callers', async (option) => {
    const flow = await learn({}, {}, { [option]: 60 });
    const { client } = flow;
    const id = await flow.newUser();
    const { predicted } = predictions(client);
    const others = Array.from({ length: 40 }, () => cold(client, 'ping'));
    const read = client.get(flow.key('user', id));
    expect(predictions(client).predicted).toBe(predicted);
    await Promise.all([...others, read]);
    expect(client.coalescer.stats().refusedCalls).toBe(0);
  });

  it.each([['maxInFlight'], ['maxPending']])(
    'that would leave callers less than half of a small %s',
    async (option) => {
      const client = await cached(server.url, { prefetch: true }, {}, { [option]: 10 });
      const flow = new Flow(client, other, prefix);
      for (let index = 0; index < 100; index += 1) await flow.run(await flow.newUser());
      const user = client.get(flow.key('user', await flow.newUser()));
      expect(client.commandQueue).toHaveLength(3);
      const others = Array.from({ length: 5 }, () => client.set(`${prefix}x`, 'x'));
      await Promise.all([user, ...others]);
      expect(client.coalescer.stats().refusedCalls).toBe(0);
    },
  );

  it('while a script of this client may change anything', async () => {
    const flow = await learn();
    const id = await flow.newUser();
    const { predicted } = predictions(flow.client);
    await Promise.all([flow.client.eval('return 1', 0), flow.client.get(flow.key('user', id))]);
    expect(predictions(flow.client).predicted).toBe(predicted);
  });

  it.each([
    ['', Number.POSITIVE_INFINITY],
    [', whose errors come in pieces', 3],
  ])(
    'of a form that is not allowed, on this connection%s; its own reads meet the error, nobody else does',
    async (...row) => {
      const [, bytes] = row;
      const proxy = await startProxy(server.url);
      const user = prefix.replace(/\W/g, '');
      await other.call('ACL', 'SETUSER', user, 'on', '>pw', '~*', '&*', '+@all');
      const asked: string[] = [];
      const reconnectOnError = (error: Error) => {
        asked.push(error.message);
        return false;
      };
      const flow = await learned(proxy.url, other, prefix, {}, { username: user, password: 'pw', reconnectOnError });
      const { client } = flow;
      proxy.cutRepliesInto(bytes);
      await other.call('ACL', 'SETUSER', user, '-hgetall');
      await other.call('ACL', 'LOG', 'RESET');
      for (let index = 0; index < 20; index += 1) {
        const id = await flow.begun();
        expect(await client.get(flow.key('cart', id))).toBe(`cart ${id}`);
      }
      expect(await other.call('ACL', 'LOG')).toHaveLength(1);
      expect(asked).toEqual([]);
      await expect(client.hgetall(flow.key('profile', await flow.begun()))).rejects.toThrow('NOPERM');
      await other.call('ACL', 'SETUSER', user, '+hgetall');
      proxy.cutRepliesInto(Number.POSITIVE_INFINITY);
      const again = once(client, 'ready');
      client.stream.destroy();
      await again;
      await flow.learn();
    },
  );
});

describe('an answer that was predicted', () => {
  it('is given once, if a full cache has no room for it', async () => {
    const flow = await learn({ maxEntries: 10 });
    const { client } = flow;
    const id = await flow.newUser();
    const before = predictions(client).predictionsUsed;
    await flow.run(id);
    expect(predictions(client).predictionsUsed - before).toBe(4);
    expect(client.coalescer.stats().cache?.entries).toBeLessThanOrEqual(10);
    const hits = hitsOf(client);
    await client.get(flow.key('plan', id));
    expect(hitsOf(client)).toBe(hits);
  });

  it('is kept like any other, once it was given and if there is room', async () => {
    const flow = await learn();
    const { client } = flow;
    const id = await flow.newUser();
    await flow.run(id);
    await sleep(1_100);
    await client.ping();
    const hits = hitsOf(client);
    await client.get(flow.key('plan', id));
    expect(hitsOf(client)).toBe(hits + 1);
  });

  it.each([
    ['a second', {}, 1_100],
    ['the ttl', { ttl: 200 }, 300],
  ])('is not given after %s', async (_, cache, ms) => {
    const flow = await learn(cache);
    const { client } = flow;
    const late = await flow.begun();
    const isGiven = async () => {
      const key = flow.key('plan', await flow.begun());
      return wasPredicted(client, () => client.get(key));
    };
    // A slow machine may be late itself.
    while (!(await isGiven()));
    await sleep(ms);
    await client.ping();
    expect(await wasPredicted(client, () => client.get(flow.key('plan', late)))).toBe(false);
  });

  it('is not given later than a second after it was requested, however late its reply comes', async () => {
    const proxy = await startProxy(server.url);
    const flow = await learned(proxy.url, other, prefix);
    const { client } = flow;
    const id = await flow.newUser();
    proxy.stall();
    const user = client.get(flow.key('user', id));
    await sleep(1_100);
    await other.set(flow.key('plan', id), 'changed');
    const plan = client.get(flow.key('plan', id));
    await turn();
    proxy.resume();
    expect(await Promise.all([user, plan])).toEqual([`user ${id}`, 'changed']);
  });

  it.each([
    ['its reply was', (flow: Flow, id: string) => void flow.client.get(flow.key('user', id))],
    ['it was there, and its change', (flow: Flow, id: string) => flow.run(id)],
  ])(
    'is not given when %s read late, because this process was busy, and is older than an awaited write',
    async (...row) => {
      const [, begin] = row;
      const flow = await learn();
      const { client } = flow;
      const id = await flow.newUser();
      await begin(flow, id);
      client.coalescer.flush();
      await turn();
      const key = flow.key('plan', id);
      elsewhere(server.url, `await c.set(${JSON.stringify(key)}, 'new')`);
      // What follows the second is the first again: to ask for it is no reason to answer it before bytes have been
      // read.
      const [plan] = await Promise.all([client.get(key), client.get(flow.key('user', id))]);
      expect(plan).toBe('new');
    },
  );

  it('is not given when its key was changed: by another client, by this one, by a pipeline', async () => {
    const flow = await learn();
    const { client } = flow;
    const key = flow.key('plan', await flow.begun());
    await other.set(key, 'changed');
    await client.ping();
    expect(await client.get(key)).toBe('changed');
    const own = flow.key('plan', await flow.begun());
    void client.set(own, 'changed here');
    expect(await client.get(own)).toBe('changed here');
    const piped = flow.key('plan', await flow.begun());
    void client.pipeline().set(piped, 'changed in a pipeline').exec();
    expect(await client.get(piped)).toBe('changed in a pipeline');
  });

  it('is not given to a read behind an own write, while both are on their way', async () => {
    const flow = await learn();
    const { client } = flow;
    const id = await flow.newUser();
    const key = flow.key('plan', id);
    const [, before, , after] = await Promise.all([
      client.get(flow.key('user', id)),
      client.get(key),
      client.set(key, 'new'),
      client.get(key),
    ]);
    expect([before, after]).toEqual([`plan ${id}`, 'new']);
  });

  it('is not given behind a read of its key in another form, which may show something newer', async () => {
    const flow = await learn();
    const { client } = flow;
    const id = await flow.newUser();
    const key = flow.key('plan', id);
    const user = client.get(flow.key('user', id));
    const values = client.mget(key);
    const { predictionsUsed } = predictions(client);
    const plan = client.get(key);
    expect(predictions(client).predictionsUsed).toBe(predictionsUsed);
    expect(await Promise.all([user, values, plan])).toEqual([`user ${id}`, [`plan ${id}`], `plan ${id}`]);
  });

  it('ends with the time of its key', async () => {
    const flow = await learn();
    const { client } = flow;
    // Redis removes few expired keys by itself.
    const fillers = other.pipeline();
    for (let index = 0; index < 5_000; index += 1) fillers.set(`filler:${index}`, 'x', 'EX', 3_600);
    await fillers.exec();
    const id = await flow.newUser();
    await other.pexpire(flow.key('plan', id), 60);
    await client.get(flow.key('user', id));
    await sleep(90);
    expect(await client.get(flow.key('plan', id))).toBeNull();
  });

  it('ends with its connection, and what follows it there is answered on the next', async () => {
    const proxy = await startProxy(server.url);
    const flow = await learned(proxy.url, other, prefix);
    const { client } = flow;
    const gone = await flow.begun();
    const lost = await flow.newUser();
    const again = new Promise<void>((resolve) => client.once('ready', resolve));
    proxy.stall();
    const reads = [client.get(flow.key('user', lost)), client.get(flow.key('plan', lost))];
    await until(() => proxy.received().includes(flow.key('plan', lost)), 'the prediction to be sent');
    proxy.reset();
    proxy.resume();
    await again;
    expect(await Promise.all(reads)).toEqual([`user ${lost}`, `plan ${lost}`]);
    expect(await wasPredicted(client, () => client.get(flow.key('plan', gone)))).toBe(false);
  });

  it.each([
    ['another database', (client: Client) => client.select(1)],
    ['FLUSHDB', (client: Client) => client.flushdb()],
    [
      'a script that may change anything',
      (client: Client, key: string) => client.eval("redis.call('DEL', ARGV[1])", 0, key),
    ],
  ])('is not given behind %s', async (_, change) => {
    const flow = await learn();
    const { client } = flow;
    const there = flow.key('plan', await flow.begun());
    const id = await flow.newUser();
    const onItsWay = flow.key('plan', id);
    const user = client.get(flow.key('user', id));
    const changes = [change(client, there), change(client, onItsWay)];
    expect(await Promise.all([client.get(there), client.get(onItsWay)])).toEqual([null, null]);
    expect(await user).toBe(`user ${id}`);
    await Promise.all(changes);
  });

  it('reaches no caller if it is an error: waiting reads are sent', async () => {
    const flow = await learn();
    const { client } = flow;
    const id = await flow.newUser();
    await other.del(flow.key('plan', id));
    await other.hset(flow.key('plan', id), 'a', 1);
    const spy = spyOnSocket(client);
    const read = Promise.all([client.get(flow.key('user', id)), client.get(flow.key('cart', id))]);
    const wrong = client.get(flow.key('plan', id));
    await expect(wrong).rejects.toMatchObject({
      message: expect.stringContaining('WRONGTYPE'),
      command: { name: 'get' },
    });
    expect(await read).toEqual([`user ${id}`, `cart ${id}`]);
    // Predicted, then sent; each `get` and `pttl` names the key.
    expect(spy.text().split(`\r\nget\r\n$${flow.key('plan', id).length}\r\n${flow.key('plan', id)}`)).toHaveLength(3);
  });

  it.each<[string, (client: Client, key: string) => Promise<unknown>]>([
    ['a write', (client, key) => client.set(key, 'later')],
    ['a transaction', (client, key) => client.multi().set(key, 'later').exec()],
    ['MULTI', (client) => client.multi({ pipeline: false })],
    ['BLPOP', (client, key) => client.blpop(`${key}:queue`, 0)],
    ['a pipeline of the host’s with BLPOP', (client, key) => client.pipeline().blpop(`${key}:queue`, 0).exec()],
    ['a pipeline with WAIT', (client) => client.pipeline().echo('v').wait(1, 0).exec()],
  ])('is given to waiting reads if it is an error and %s comes behind them', async (_, issue) => {
    const proxy = await startProxy(server.url);
    const flow = await learned(proxy.url, other, prefix);
    const { client } = flow;
    const id = await flow.newUser();
    const key = flow.key('plan', id);
    await other.del(key);
    await other.hset(key, 'a', 1);
    const connection = await client.client('ID');
    proxy.stall();
    const user = client.get(flow.key('user', id));
    const read = client.get(key).catch((error: Error) => error);
    await turn();
    let isAnswered = false;
    const behind = issue(client, key).then(() => {
      isAnswered = true;
    });
    await turn();
    proxy.resume();
    expect(await read).toMatchObject({
      name: 'ReplyError',
      message: expect.stringContaining('WRONGTYPE'),
      command: { name: 'get', args: [key] },
    });
    expect(await user).toBe(`user ${id}`);
    await until(async () => (await other.client('UNBLOCK', connection)) === 1 || isAnswered, 'it to be unblocked');
    await behind;
    await client.discard().catch(() => {});
  });

  it('is given within the timeout of the call, and to no call that was aborted', async () => {
    const proxy = await startProxy(server.url);
    const flow = await learned(proxy.url, other, prefix);
    const { client } = flow;
    const id = await flow.newUser();
    const aborting = new AbortController();
    proxy.stall();
    const user = client.get(flow.key('user', id));
    const late = client.coalescer.withOptions({ timeout: 20 }).get(flow.key('plan', id));
    const aborted = client.coalescer.withOptions({ signal: aborting.signal }).get(flow.key('plan', id));
    const patient = client.get(flow.key('plan', id));
    aborting.abort(new Error('aborted'));
    await expect(aborted).rejects.toThrow('aborted');
    await expect(late).rejects.toThrow('Command timed out');
    proxy.resume();
    expect(await Promise.all([user, patient])).toEqual([`user ${id}`, `plan ${id}`]);
  });
});

it('holds no text that a key was cut out of', async () => {
  const flow = await learn();
  const before = heapNow();
  const { predicted } = predictions(flow.client);
  for (let index = 0; index < 10; index += 1) {
    const body = `${'x'.repeat(1_000_000)}${flow.key('user', `a sufficiently long identity ${index}`)}`;
    await flow.client.get(body.slice(1_000_000));
  }
  expect(predictions(flow.client).predicted - predicted).toBeGreaterThanOrEqual(10);
  expect(heapNow() - before).toBeLessThan(4e6);
});

it('leaves no timer behind', async () => {
  const [started, cleared] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')];
  try {
    const flow = await learn({}, { commandTimeout: 54_321 });
    await flow.begun();
    await flow.client.ping();
    const timers = () => started.mock.results.filter((_, index) => started.mock.calls[index]?.[1] === 54_321);
    const isCleared = ({ value }: { value: unknown }) => cleared.mock.calls.some(([timer]) => timer === value);
    await until(() => timers().every(isCleared), 'all timers to be cleared');
    expect(timers().length).toBeGreaterThan(0);
  } finally {
    started.mockRestore();
    cleared.mockRestore();
  }
});

it('with shareReads: identical reads share the predicted reply, and those behind an own write are sent and see it', async () => {
  const flow = await learn({}, {}, { shareReads: true });
  const { client } = flow;
  const id = await flow.newUser();
  const key = flow.key('plan', id);
  const spy = spyOnSocket(client);
  const shared = [client.mget(key), client.mget(key)];
  const user = [client.get(flow.key('user', id)), client.get(flow.key('user', id))];
  const before = [client.get(key), client.get(key)];
  const set = client.set(key, 'new');
  const after = [client.get(key), client.get(key)];
  const all = await Promise.all([...shared, ...user, ...before, set, ...after]);
  const plan = `plan ${id}`;
  expect(all).toEqual([[plan], [plan], `user ${id}`, `user ${id}`, plan, plan, 'OK', 'new', 'new']);
  const reads = commandNames(spy.text()).filter((name) => /get|set/.test(name));
  expect(reads).toEqual(['mget', 'get', 'hgetall', 'get', 'get', 'get', 'set', 'get']);
});

describe('predictions in vain', () => {
  it('stop, and nothing else is disturbed', async () => {
    const flow = await learn();
    const { client } = flow;
    const before = predictions(client).predicted;
    for (let index = 0; index < 200; index += 1) {
      const id = await flow.newUser();
      // What is learned goes on as before, but the predictions are of no use: their keys change.
      await client.get(flow.key('user', id));
      for (const kind of ['cart', 'flags', 'plan']) {
        void client.set(flow.key(kind, id), 'new');
        expect(await client.get(flow.key(kind, id))).toBe('new');
      }
    }
    // 64 outcomes of each of the pairs, and some more until they are judged; of the hash, which is not read, fewer.
    expect(predictions(client).predicted - before).toBeLessThan(4 * 110);
  });

  it('are never more than what callers have read', async () => {
    const client = await cached(server.url, { prefetch: true });
    const before = predictions(client).predicted;
    let reads = 0;
    for (let index = 0; index < 400; index += 1) {
      const ids = Array.from({ length: 64 }, (_, at) => String(index * 64 + at));
      await other.rpush(`${prefix}:list:${index}`, ...ids);
      await client.lrange(`${prefix}:list:${index}`, 0, -1);
      reads += 1;
      // First all elements are read, then none is.
      for (const id of index < 20 ? ids : []) {
        await client.get(`${prefix}:product:${id}`);
        reads += 1;
      }
      expect(predictions(client).predicted - before).toBeLessThanOrEqual(reads);
    }
    expect(predictions(client).predicted - before).toBeGreaterThan(64);
  });

  it('show what was learned: patterns and shares, no identities', async () => {
    const flow = await learn();
    const patterns = flow.client.coalescer.cache?.patterns() ?? [];
    const user = patterns.find(({ pattern }) => pattern === 'get prefetch:?::user:*');
    expect(user?.followers.map(({ pattern }) => pattern).sort()).toEqual([
      'get prefetch:?::cart:*',
      'get prefetch:?::flags:*',
      'get prefetch:?::plan:*',
      'hgetall prefetch:?::profile:*',
    ]);
    expect(user?.followers.every(({ share, isPredicted }) => share > 0.7 && isPredicted)).toBe(true);
    expect(JSON.stringify(patterns)).not.toMatch(/\b100\d{3}\b/);
  });
});
