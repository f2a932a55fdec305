import { type RedisOptions as HostOptions, Redis as IORedis, type NodeRole } from 'ioredis';
import DropIn, {
  Cluster,
  type ClusterOptions,
  type CoalesceSetting,
  coalesce,
  Redis,
  type RedisOptions,
  ReplyError,
} from 'ioredis-coalesce';
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest';
import { cold } from '../helpers/cold.js';
import { endWithTest, HOSTS, ready, sleep } from '../helpers/hosts.js';
import { redisUrl, startServer, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('drop-in');
const url = redisUrl();
const port = Number(new URL(url).port);
/** Host: its type takes no arguments, being made of the last overload of the constructor. */
const createClient = Redis.createClient as (...args: unknown[]) => Redis;
const host = '127.0.0.1';

async function expectCoalesced(redis: Redis): Promise<void> {
  await ready(endWithTest(redis));
  const before = redis.coalescer.stats().fastCommands;
  expect(await redis.echo('here')).toBe('here');
  expect(redis.coalescer.stats().fastCommands).toBe(before + 1);
}

describe('the class', () => {
  it('is ioredis’s own, extended', async () => {
    const redis = endWithTest(new Redis(url));
    expect(DropIn).toBe(Redis);
    expect(redis).toBeInstanceOf(IORedis);
    expect(redis).toBeInstanceOf(Redis);
    const error: unknown = await redis.call('NO-SUCH-COMMAND').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ReplyError);
  });

  it.each<[string, () => Redis]>([
    ['port', () => new Redis(port)],
    ['port, host', () => new Redis(port, host)],
    ['port, options', () => new Redis(port, { host, coalesce: { maxBatchSize: 9 } })],
    ['port, host, options', () => new Redis(port, host, { coalesce: { maxBatchSize: 9 } })],
    ['url', () => new Redis(url)],
    ['url, options', () => new Redis(url, { coalesce: { maxBatchSize: 9 } })],
    ['options', () => new Redis({ port, host, coalesce: { maxBatchSize: 9 } })],
    ['createClient(port, host)', () => createClient(port, host)],
    ['createClient(options)', () => createClient({ port, host, coalesce: { maxBatchSize: 9 } })],
  ])('new Redis(%s)', async (signature, make) => {
    const redis = make();
    expect(redis).toBeInstanceOf(Redis);
    expect(redis.coalescer.options.maxBatchSize).toBe(signature.includes('options') ? 9 : 1_000);
    expect(redis.options).not.toHaveProperty('coalesce');
    await expectCoalesced(redis);
  });

  it('takes ioredis’s defaults', () => {
    const redis = endWithTest(new Redis({ lazyConnect: true }));
    const plain = new IORedis({ lazyConnect: true });
    expect({ ...redis.options }).toEqual({ ...plain.options });
  });

  it('takes options that the caller’s object inherits, as ioredis does', () => {
    const options = Object.create({ host: 'inherited', keyPrefix: 'p:', lazyConnect: true }) as RedisOptions;
    options.coalesce = { maxBatchSize: 9 };
    const redis = endWithTest(new Redis(options));
    expect(redis.options).toMatchObject({ host: 'inherited', keyPrefix: 'p:' });
    expect(redis.options).not.toHaveProperty('coalesce');
    expect(redis.coalescer.options.maxBatchSize).toBe(9);
    const clusterOptions = Object.create({ keyPrefix: 'p:', lazyConnect: true, coalesce: { maxBatchSize: 9 } });
    const cluster = new Cluster([], clusterOptions as ClusterOptions);
    expect(cluster.options).toMatchObject({ keyPrefix: 'p:', lazyConnect: true });
    expect(cluster.options).not.toHaveProperty('coalesce');
    expect(cluster.coalescer.options.maxBatchSize).toBe(9);
  });

  it('leaves the options object of the caller alone, and names a bad option before it connects', () => {
    const options: RedisOptions = Object.freeze({ lazyConnect: true, coalesce: Object.freeze({ maxBatchSize: 3 }) });
    expect(endWithTest(new Redis(options)).coalescer.options.maxBatchSize).toBe(3);
    expect(() => new Redis({ lazyConnect: true, coalesce: { maxBatchSize: 0 } })).toThrow(
      /option coalesce\.maxBatchSize/,
    );
  });

  it.each([{}, { fastPath: false }])(
    'a subclass may override on() and nodes() with fields of its own: %j',
    async (coalesce) => {
      class Counted extends Redis {
        readonly #events: string[] = [];
        override on(...[event, listener]: Parameters<Redis['on']>) {
          this.#events.push(String(event));
          return super.on(event as 'error', listener as () => void);
        }
        get events() {
          return this.#events.slice();
        }
      }
      const redis = endWithTest(new Counted(url, { coalesce }));
      expect(await redis.echo('here')).toBe('here');
      expect(redis.events).not.toContain('connect');
      redis.coalescer.detach();
      expect(redis.listenerCount('connect')).toBe(0);
      class CountedCluster extends Cluster {
        #calls = 0;
        override on(...[event, listener]: Parameters<Cluster['on']>) {
          this.#calls += 1;
          return super.on(event, listener);
        }
        override nodes(role?: NodeRole) {
          this.#calls += 1;
          return super.nodes(role);
        }
      }
      const cluster = new CountedCluster([], { lazyConnect: true, coalesce });
      expect(cluster.coalescer.enabled).toBe(true);
      cluster.coalescer.detach();
      expect(cluster.listenerCount('+node')).toBe(0);
    },
  );

  it('has ioredis’s types', () => {
    expectTypeOf<HostOptions>().toExtend<RedisOptions>();
    expectTypeOf<Redis>().toExtend<IORedis>();
  });
});

describe('duplicate()', () => {
  it('makes a client of the same class with the same setting', async () => {
    const redis = endWithTest(new Redis(url, { coalesce: { maxBatchSize: 7 } }));
    const copy = redis.duplicate();
    expect(copy).toBeInstanceOf(Redis);
    expect(copy.coalescer.options).toEqual(redis.coalescer.options);
    await expectCoalesced(copy);
    const other = redis.duplicate({ db: 5 });
    await expectCoalesced(other);
    expect(other.options.db).toBe(5);
  });

  it('makes a client that speaks RESP2 without a cache', () => {
    const redis = endWithTest(new Redis({ lazyConnect: true, coalesce: { cache: true } }));
    expect(endWithTest(redis.duplicate({ protocol: 2 })).coalescer.options.cache).toBe(false);
    expect(endWithTest(redis.duplicate()).coalescer.options.cache).toEqual(redis.coalescer.options.cache);
    const cluster = new Cluster([], { lazyConnect: true, coalesce: { cache: true } });
    expect(cluster.duplicate([], { redisOptions: { protocol: 2 } }).coalescer.options.cache).toBe(false);
    expect(cluster.duplicate().coalescer.options.cache).toEqual(cluster.coalescer.options.cache);
  });

  it('takes null and undefined as the host does', () => {
    const redis = endWithTest(new Redis({ lazyConnect: true, coalesce: { cache: true } }));
    const copy = endWithTest(redis.duplicate({ protocol: undefined }) as Redis);
    expect(copy.options.protocol).toBe(3);
    const cluster = new Cluster([], { lazyConnect: true, coalesce: { cache: true } });
    for (const one of [copy, cluster.duplicate([], null as never)]) {
      expect(one.coalescer.options).toEqual(redis.coalescer.options);
    }
  });

  it.each(HOSTS.map((entry) => [entry.name, entry] as const))('coalesces a copy on %s', async (_, entry) => {
    const client = entry.createCoalesced(url, {}, { maxBatchSize: 7 });
    const copy = endWithTest(client.duplicate({ db: 2 })) as typeof client;
    expect(copy).toBeInstanceOf(entry.Redis);
    expect(copy.coalescer.options.maxBatchSize).toBe(7);
    expect(copy.coalescer).not.toBe(client.coalescer);
    await ready(copy);
    expect(await copy.echo('copy')).toBe('copy');
    expect(copy.coalescer.stats().fastCommands).toBe(1);
    expect(copy.options.db).toBe(2);
    // As on the drop-in class, whose type a coalesced client can be given to.
    const duplicate = (coalesce: CoalesceSetting) =>
      endWithTest(client.duplicate({ db: 2, ...{ coalesce } })) as typeof client;
    expect(duplicate({ maxBatchSize: 3 }).coalescer.options.maxBatchSize).toBe(3);
    const plain = duplicate(false);
    expect(plain.coalescer.enabled).toBe(false);
  });
});

describe.each(HOSTS)('$name: a coalesced client stays the same client', (entry) => {
  it('coalesce() returns the same object, and is idempotent', async () => {
    const client = await ready(entry.create(url));
    const { constructor: made } = client;
    const coalesced = coalesce(client, { maxBatchSize: 5 });
    expect(coalesced).toBe(client);
    expect(coalesced.constructor).toBe(made);
    const { coalescer } = coalesced;
    expect(coalesce(client)).toBe(client);
    expect(coalesced.coalescer).toBe(coalescer);
    expect(coalesced.coalescer.options.maxBatchSize).toBe(5);
    expect(client).toBeInstanceOf(entry.Redis);
    expect(Object.keys(client)).not.toContain('coalescer');
    expect((client as { runCommand?: unknown }).runCommand).toBeUndefined();
  });

  it('methods work without their client, on other clients and on a pipeline', async () => {
    const client = await ready(entry.createCoalesced(url));
    const other = await ready(entry.create(url, { db: 1 }));
    const { set, get } = client;
    const k = `${prefix}${entry.name}`;
    await set.call(client, k, 'in 0');
    await set.call(other, k, 'in 1');
    expect(await Promise.all([get.call(client, k), get.call(other, k), client.get(k)])).toEqual([
      'in 0',
      'in 1',
      'in 0',
    ]);
    expect(await client.pipeline().get(k).exec()).toEqual([[null, 'in 0']]);
    expect(await Promise.all([client.del(k), other.del(k)])).toEqual([1, 1]);
  });

  it('the callback of a command is called with its reply', async () => {
    const client = await ready(entry.createCoalesced(url));
    const [error, value] = await new Promise<unknown[]>((resolve) => client.echo('a', (...args) => resolve(args)));
    expect([error, value]).toEqual([null, 'a']);
  });

  it("defineCommand('get') and addBuiltinCommand('get') win, before and after coalesce()", async () => {
    for (const order of ['before', 'after'] as const) {
      const client = await ready(entry.create(url));
      const define = () => client.defineCommand('get', { numberOfKeys: 1, lua: "return 'defined ' .. KEYS[1]" });
      if (order === 'before') define();
      const coalesced = coalesce(client);
      if (order === 'after') define();
      expect(await coalesced.get('k'), order).toBe('defined k');
      expect(await coalesced.echo('fast')).toBe('fast');
    }
    const client = await ready(entry.createCoalesced(url));
    client.addBuiltinCommand('get');
    await client.set(`${prefix}builtin`, 'v');
    expect(await client.get(`${prefix}builtin`)).toBe('v');
    expect(await client.pipeline().get(`${prefix}builtin`).del(`${prefix}builtin`).exec()).toEqual([
      [null, 'v'],
      [null, 1],
    ]);
  });

  it('a user’s subclass that overrides get keeps its method', async () => {
    class Prefixed extends (entry.Redis as unknown as typeof IORedis) {
      override get(...args: unknown[]): Promise<string | null> {
        return (super.get as (...all: unknown[]) => Promise<string>)(...args).then((value) => `own ${value}`);
      }
    }
    const client = coalesce(await ready(endWithTest(new Prefixed(url))));
    await client.set(`${prefix}subclass`, 'v');
    expect(await client.get(`${prefix}subclass`)).toBe('own v');
    expect(await client.getdel(`${prefix}subclass`)).toBe('v');
    expect(client).toBeInstanceOf(Prefixed);
  });

  it('monitor() shows the commands in order', async () => {
    // Host: a plain monitor of ioredis 6 is upset by lines of others that come too early.
    const server = await startServer();
    onTestFinished(() => server.stop());
    const client = await ready(entry.createCoalesced(server.url));
    const monitor = endWithTest(await client.monitor());
    const lines: string[] = [];
    monitor.on('monitor', (_time: string, args: string[]) => lines.push(args.join(' ')));
    await Promise.all([client.echo(`${prefix}1`), cold(client, 'ECHO', `${prefix}2`), client.echo(`${prefix}3`)]);
    for (let wait = 0; wait < 100 && lines.length < 3; wait += 1) await sleep(5);
    expect(lines.filter((line) => line.includes(prefix)).map((line) => line.slice(5))).toEqual([
      `${prefix}1`,
      `${prefix}2`,
      `${prefix}3`,
    ]);
  });
});

describe('a subclass of the drop-in class', () => {
  it('an override of get in a subclass is called', async () => {
    class Own extends Redis {
      override get(...args: unknown[]): Promise<string | null> {
        return (super.get as (...all: unknown[]) => Promise<string>)(...args).then((value) => `own ${value}`);
      }
    }
    const redis = await ready(endWithTest(new Own(url)));
    expect(await redis.get(`${prefix}none`)).toBe('own null');
    expect(redis).toBeInstanceOf(Own);
    expect(await redis.echo('fast')).toBe('fast');
    expect(redis.coalescer.stats().fastCommands).toBeGreaterThan(0);
  });
});
