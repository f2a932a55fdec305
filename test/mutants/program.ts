/**
 * The fixed program that runs on each mutant, first with plain clients and then with coalesced ones, and shows whether
 * they agree in all steps. It runs in a process of its own (run.ts), and keeps to what users can see: nothing here
 * names a private field of the host.
 */
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis';
import { coalesce } from '../../src/coalesce.js';
import { canonical } from '../helpers/fidelity/canonical.js';
import { Admin, Open, Stage, Stopped, startGate, type Transcript } from './arms.js';

/** What run.ts tells this process. */
export interface Orders {
  readonly host: 'ioredis' | 'ioredis5';
  readonly port: number;
  /** Of a Cluster's masters. */
  readonly clusterPorts: readonly number[];
  /** The number of files that the mutant changes. */
  readonly changes: number;
  /** Plain clients beside plain ones: what differs then is no fault of this package. */
  readonly control: boolean;
  /** Whether coalesced clients must have the cork, or the fast path. */
  readonly corked: boolean;
}

export interface Verdict {
  /** `open`: right, and steps stay open on both kinds of clients. */
  readonly verdict: 'right' | 'open' | 'wrong' | 'plain breaks';
  /**
   * How commands went on the coalesced client: by the fast path, corked, or as on a plain client, where there is no
   * `stream` or its `write` was taken before.
   */
  readonly way: 'fast' | 'cork' | 'plain';
  readonly steps: number;
  /** The steps that stay open on both. */
  readonly open: readonly string[];
  readonly arm?: string;
  readonly scene?: string;
  readonly why?: string;
  readonly warnings: readonly string[];
}

const orders = JSON.parse(process.env.MUTANT_ORDERS ?? '{}') as Orders;
const require = createRequire(import.meta.url);
type Call = (...args: unknown[]) => Promise<unknown>;
type Loose<T> = T & { readonly [script in 'twice' | 'fails' | 'readonlyOnce' | 'late']: Call };
const host = require(orders.host) as {
  readonly default: new (options: RedisOptions) => Loose<Redis>;
  readonly Cluster: new (nodes: object[], options: ClusterOptions) => Loose<Cluster>;
  readonly Command: typeof import('ioredis').Command;
};

/** The last one only where commands are fast: of what nobody here has read, nothing but the cork is left. */
const ARMS = ['plain', 'coalesced', 'with features'] as const;
type Arm = (typeof ARMS)[number];

const SCRIPTS = {
  twice: {
    numberOfKeys: 1,
    lua: "redis.call('incrby', KEYS[1], ARGV[1]) return redis.call('incrby', KEYS[1], ARGV[1])",
  },
  fails: { numberOfKeys: 1, lua: "return redis.error_reply('BAD ' .. KEYS[1])" },
  readonlyOnce: {
    numberOfKeys: 1,
    lua: "if redis.call('incr', KEYS[1]) == 1 then return redis.error_reply('READONLY for once') end return 'written'",
  },
};

class Play {
  readonly admin = new Admin(orders.port);
  readonly nodes = orders.clusterPorts.map((port) => new Admin(port));
  readonly #made: (Redis | Cluster)[] = [];
  /** Commands of the coalesced clients: all, and by the fast path. */
  commands = 0;
  fast = 0;

  constructor(
    readonly stage: Stage,
    readonly arm: Arm,
  ) {}

  get #isCoalesced(): boolean {
    return this.arm !== 'plain' && !orders.control;
  }

  #keep<T extends Redis | Cluster>(client: T, protocol?: unknown): T {
    this.#made.push(client);
    client.on('error', (error: Error & { syscall?: string }) => {
      if (error.syscall === undefined) this.stage.uncaught.push(`error event: ${error.message}`);
    });
    if (!this.#isCoalesced) return client;
    if (this.arm === 'coalesced') return coalesce(client);
    // A single server has no slots, and RESP2 no invalidations.
    return coalesce(client, { splitKeys: client.isCluster, cache: protocol !== 2 });
  }

  /** A client that is not ready yet. */
  make(options: RedisOptions = {}): Loose<Redis> {
    const { port } = orders;
    const made = new host.default({ port, retryStrategy: () => 20, scripts: SCRIPTS, ...options });
    return this.#keep(made, orders.host === 'ioredis' ? options.protocol : 2);
  }

  async client(options: RedisOptions = {}): Promise<Loose<Redis>> {
    const client = this.make(options);
    await once(client, 'ready');
    return client;
  }

  makeCluster(options: ClusterOptions = {}): Loose<Cluster> {
    const nodes = orders.clusterPorts.map((port) => ({ host: '127.0.0.1', port }));
    const delays = { retryDelayOnFailover: 20, retryDelayOnTryAgain: 20, retryDelayOnClusterDown: 20 };
    const more = { ...delays, scripts: SCRIPTS, slotsRefreshTimeout: 5_000, ...options };
    return this.#keep(new host.Cluster(nodes, more), orders.host === 'ioredis' ? 3 : 2);
  }

  async cluster(options: ClusterOptions = {}): Promise<Loose<Cluster>> {
    const cluster = this.makeCluster(options);
    await once(cluster, 'ready');
    return cluster;
  }

  /** Others have changed something: what a cache has of it is invalid when this has been answered. */
  async others(client: Redis, ...args: (string | number)[]): Promise<void> {
    await this.admin.send(...args);
    await this.stage.step('after others', () => client.echo('seen'));
  }

  async kill(kind = 'normal'): Promise<void> {
    await this.admin.send('CLIENT', 'KILL', 'TYPE', kind, 'SKIPME', 'yes');
  }

  /** The end of a scene: all of its clients are ended, and nothing is left. */
  async finish(): Promise<void> {
    for (const client of this.#made.splice(0)) {
      if (this.#isCoalesced) {
        const { commands, fastCommands } = (client as ReturnType<typeof coalesce<Redis>>).coalescer.stats();
        this.commands += commands;
        this.fast += fastCommands;
      }
      const ended = client.status === 'end' ? undefined : once(client, 'end');
      client.disconnect();
      await Promise.race([ended, sleep(1_000)]);
    }
    await sleep(2);
    this.stage.record('uncaught', [...new Set(this.stage.uncaught.splice(0))].sort().join(' | '));
  }

  async clear(): Promise<void> {
    for (const admin of [this.admin, ...this.nodes]) await admin.send('FLUSHALL');
    await this.admin.send('SCRIPT', 'FLUSH');
  }

  end(): void {
    for (const admin of [this.admin, ...this.nodes]) admin.end();
  }
}

/** One command: its name and arguments, as text if these are words. */
type Line = string | readonly [name: string, ...args: unknown[]];

function run(client: object, line: Line): unknown {
  const [name = '', ...args] = typeof line === 'string' ? line.split(' ') : line;
  return (client as Record<string, Call>)[name]?.(...args);
}

/** Steps of many commands: first all at once, then awaited one at a time. */
async function lines(stage: Stage, client: object, all: readonly Line[], order = true): Promise<void> {
  const named = all.map(
    (line, index) => [`${index} ${typeof line === 'string' ? line : line[0]}`, () => run(client, line)] as const,
  );
  await stage.steps('burst', Object.fromEntries(named), order);
  for (const [name, call] of named) await stage.step(name, call);
}

function fill<T extends object>(chain: T, all: readonly Line[]): T {
  for (const line of all) run(chain, line);
  return chain;
}

/** Not `once` of node:events, which an `error` event rejects. */
function once(client: Redis | Cluster, event: string): Promise<void> {
  return new Promise((resolve) => void client.once(event as 'ready', resolve));
}

/** The outcome of a callback as a promise. */
const called = (call: (callback: (...results: unknown[]) => void) => unknown): Promise<unknown> =>
  new Promise((resolve) => {
    (call((...results) => resolve(results)) as Promise<unknown> | undefined)?.catch?.(() => {});
  });

const B = (text: string) => Buffer.from(text, 'latin1');

const STRINGS: readonly Line[] = [
  'set a 1',
  'get a',
  'getBuffer a',
  ['setBuffer', 'a', B('\xff\xfe raw ')],
  'get a',
  'getBuffer a',
  ['set', 'umlaut', 'äöü € 𝄞 '],
  'get umlaut',
  'strlen umlaut',
  ['set', 'number', 12.5],
  'get number',
  ['set', 'big', 2 ** 60],
  'get big',
  'incr big',
  ['set', 'true', true],
  'get true',
  ['set', 'null', null],
  'get null',
  ['set', 'date', new Date(0)],
  'get date',
  'get none',
  ['get', ''],
  ['mset', { m1: 'x', m2: 2 }],
  ['mset', new Map([['m3', 'y']])],
  'mget m1 none m3',
  ['mget', ['m1', 'm2']],
  'mgetBuffer m1 none',
  'exists m1 none',
  'del m1',
  ['setex', 'ttl', 100, 'v'],
  'ttl ttl',
  ['append', 'text', 'end '],
  ['getrange', 'text', 0, 1],
  'type text',
  'call GET text',
  'call set called yes',
  ['echo', 'back '],
  'ping',
  'bitcount text',
];

const COLLECTIONS: readonly Line[] = [
  'del h l s z x',
  ['hset', 'h', 'f', 'v', 'g', 'w '],
  ['hset', 'h', { o: 1, p: undefined }],
  'hget h f',
  'hgetall h',
  'hgetallBuffer h',
  'hgetall none',
  'hmget h f none',
  ['hincrby', 'h', 'n', 5],
  'hkeys h',
  ['rpush', 'l', 'one', 'two', 'three '],
  ['lrange', 'l', 0, -1],
  ['lindex', 'l', 0],
  'lpop l',
  'llen l',
  'sadd s x',
  'smembers s',
  'sismember s x',
  ['zadd', 'z', 1.5, 'a', 2, 'b'],
  'zscore z a',
  ['zrange', 'z', 0, -1],
  ['zrange', 'z', 0, -1, 'WITHSCORES'],
  ['zincrby', 'z', 0.25, 'a'],
  'zrank z none',
  'xadd x 1-1 k v',
  'xrange x - +',
  'xread STREAMS x 0',
];

const ERRORS: readonly Line[] = [
  'set text v',
  'incr text',
  'get text',
  'lpush text x',
  'hget text f',
  'get',
  'call NOSUCH x',
  'get text',
  'xgroup CREATE no group $',
  ['evalsha', '0000000000000000000000000000000000000000', 0],
  'get text',
];

type Scene = (play: Play) => Promise<void>;

const SCENES: Record<string, Scene> = {
  async strings(play) {
    await lines(play.stage, await play.client(), STRINGS);
  },
  async collections(play) {
    await lines(play.stage, await play.client(), COLLECTIONS);
  },
  async 'other mappings'(play) {
    await lines(play.stage, await play.client({ stringNumbers: true }), COLLECTIONS.slice(1, 20));
    if (orders.host === 'ioredis') {
      await lines(play.stage, await play.client({ replyMapping: 'resp3' }), COLLECTIONS);
    }
  },
  async errors(play) {
    const client = await play.client();
    await lines(play.stage, client, ERRORS);
    await lines(play.stage, client.pipeline(), ['exec']);
  },
  async callbacks(play) {
    const client = await play.client();
    await play.stage.steps('callback of', {
      set: () => called((done) => client.set('k', 'v', done)),
      get: () => called((done) => client.get('k', done)),
      null: () => called((done) => client.get('none', done)),
      error: () => called((done) => client.incr('k', done)),
      pipeline: () => called((done) => client.pipeline().get('k').incr('k').exec(done)),
      multi: () => called((done) => client.multi().get('k').get('k').exec(done)),
      script: () => called((done) => client.twice('count', 2, done)),
      both: () => client.get('k', () => {}),
    });
    await play.stage.step('a callback that throws', async () => {
      await client.get('k', () => {
        throw new Error('of a callback');
      });
      await sleep(5);
    });
  },
  async pipelines(play) {
    const client = await play.client();
    const { stage } = play;
    await stage.steps('pipeline', {
      strings: () => fill(client.pipeline(), STRINGS).exec(),
      'get behind it': () => client.get('number'),
      collections: () => fill(client.pipeline(), COLLECTIONS).exec(),
      errors: () => fill(client.pipeline(), ERRORS).exec(),
      'of arrays': () =>
        client
          .pipeline([
            ['set', 'p', '1'],
            ['incr', 'p'],
            ['get', 'p'],
          ])
          .exec(),
      length: () => fill(client.pipeline(), STRINGS).length,
      empty: () => client.pipeline().exec(),
      'with a transaction': () => fill(client.pipeline(), [['set', 'p', 1], 'multi', 'incr p', 'exec', 'get p']).exec(),
      scripts: () => {
        return fill(client.pipeline(), [['twice', 'count', 1], 'fails count', 'get count']).exec();
      },
      select: () => client.pipeline().select(1).set('p', 'of 1').select(0).get('p').exec(),
      callbacks: () =>
        called((done) =>
          client
            .pipeline()
            .get('p', (_, value) => done('in a pipeline', value))
            .exec(),
        ),
    });
    const chain = client.pipeline().get('p');
    await stage.step('exec', () => chain.exec());
    await stage.step('exec again', () => chain.exec());
    await stage.step('frozen', async () => Object.isFrozen(await client.pipeline().get('p').exec()));
  },
  async transactions(play) {
    const { stage } = play;
    const client = await play.client();
    await stage.steps('transaction', {
      simple: () => client.multi().set('t', 'v').get('t').hgetall('none').exec(),
      'get behind it': () => client.get('t'),
      errors: () => client.multi().set('t', 'v').incr('t').exec(),
      aborted: () => client.multi().set('t', 'v').call('NOSUCH').exec(),
      discarded: () => client.multi().set('t', 'not this').discard().length,
      'of arrays': () =>
        client
          .multi([
            ['set', 't', 'w '],
            ['get', 't'],
            ['getBuffer', 't'],
          ])
          .exec(),
      buffers: () => client.multi().getBuffer('t').zadd('tz', 1.5, 'm').zscore('tz', 'm').exec(),
    });
    await stage.steps('one by one', {
      multi: () => client.multi({ pipeline: false }),
      set: () => client.set('t', '5'),
      incr: () => client.incr('t'),
      get: () => client.get('t'),
      exec: () => client.exec(),
      'get behind it': () => client.get('t'),
    });
    await stage.step('watch', () => client.watch('t'));
    await stage.step('get', () => client.get('t'));
    await stage.step('not changed', () => client.multi().incr('t').exec());
    await stage.step('watch again', () => client.watch('t'));
    await play.others(client, 'SET', 't', '100');
    await stage.step('changed', () => client.multi().set('t', 'lost').exec());
    await stage.step('kept', () => client.get('t'));
    await stage.step('exec alone', () => client.exec());
    await stage.step('discard alone', () => client.discard());
  },
  async 'lost watch'(play) {
    const { stage } = play;
    const client = await play.client();
    await stage.step('set', () => client.set('w', 'old'));
    await stage.step('watch', () => client.watch('w'));
    const ready = once(client, 'ready');
    await play.kill();
    await ready;
    await play.admin.send('SET', 'w', 'of others');
    await stage.step('exec', () => client.multi().set('w', 'overwritten').exec());
    await stage.step('then', () => client.get('w'));
    await stage.step('in the server', () => play.admin.send('GET', 'w'));
  },
  async scripts(play) {
    const { stage } = play;
    const client = await play.client();
    client.defineCommand('late', { numberOfKeys: 1, lua: "return {KEYS[1], ARGV[1], 7, {'x ', false}}" });
    const calls = {
      first: () => client.twice('count', 1),
      error: () => client.fails('count'),
      again: () => client.twice('count', 2),
      'get behind it': () => client.get('count'),
      late: () => client.late('k', 'v '),
      buffer: () => run(client, ['lateBuffer', 'k', B('\xff')]),
      eval: () => client.eval("return redis.call('get', KEYS[1])", 1, 'count'),
    };
    await stage.steps('script', calls);
    await play.admin.send('SCRIPT', 'FLUSH');
    await stage.steps('flushed', calls);
    for (const [name, call] of Object.entries(calls)) await stage.step(name, call);
    await stage.step('as text', () => play.admin.send('GET', 'count'));
  },
  async databases(play) {
    const { stage } = play;
    const client = await play.client();
    const get = async (db: number, key: string) => {
      await play.admin.send('SELECT', db);
      return play.admin.send('GET', key);
    };
    await stage.steps('select', {
      set: () => client.set('db', 'of 0'),
      one: () => client.select(1),
      'set in it': () => client.set('db', 'of 1'),
      get: () => client.get('db'),
      back: () => client.select(0),
      'get again': () => client.get('db'),
      unknown: () => client.select(99),
      'behind it': () => client.get('db'),
    });
    for (const db of [0, 1]) await stage.step(`database ${db}`, () => get(db, 'db'));
    await stage.step('select 2', () => client.select(2));
    await stage.step('set', () => client.set('db', 'of 2'));
    let ready = once(client, 'ready');
    // What is issued before the client has noticed differs from run to run, with some mutants, on a plain client, too.
    const closed = once(client, 'close');
    await play.kill();
    await closed;
    await stage.steps('while it connects', {
      set: () => client.set('offline', 'x'),
      pipeline: () => client.pipeline().set('offline too', 'y').get('db').exec(),
      select: () => client.select(3),
      'set in 3': () => client.set('offline', 'z'),
    });
    await ready;
    await stage.step('get after it', () => client.get('offline'));
    ready = once(client, 'ready');
    await stage.steps('in flight', {
      blocked: () => client.blpop('nothing', 0.3),
      three: () => client.set('flight', 'in 3'),
      select: () => client.select(2),
      two: () => client.set('flight', 'in 2'),
      kill: () => sleep(50).then(() => play.kill()),
    });
    await ready;
    for (const db of [0, 1, 2, 3]) {
      for (const key of ['offline', 'offline too', 'flight']) await stage.step(`${key} of ${db}`, () => get(db, key));
    }
    const other = await play.client({ db: 4 });
    await stage.step('of 4', () => other.set('k', 'v'));
    await stage.step('in 4', () => get(4, 'k'));
    await play.admin.send('SELECT', 0);
  },
  async reconnect(play) {
    const { stage } = play;
    const client = await play.client();
    const states: string[] = [];
    for (const state of ['close', 'reconnecting', 'connect', 'ready', 'end'])
      client.on(state, () => states.push(state));
    await stage.step('set', () => client.set('n', 0));
    const ready = once(client, 'ready');
    await stage.steps('in flight', {
      blocked: () => client.blpop('nothing', 0.3),
      incr: () => client.incr('n'),
      error: () => client.lpush('n', 'x'),
      pipeline: () => client.pipeline().incr('n').get('n').lpush('n', 'x').exec(),
      multi: () => client.multi().incr('n').get('n').exec(),
      script: () => client.twice('n', 10),
      get: () => client.get('n'),
      hash: () => client.hgetall('none'),
      callback: () => called((done) => client.get('n', done)),
      kill: () => sleep(50).then(() => play.kill()),
    });
    await ready;
    await sleep(5);
    stage.record('states', states.join());
    for (let round = 0; round < 3; round += 1) {
      const again = once(client, 'ready');
      await play.kill();
      await again;
      await lines(stage, client, ['incr n', 'get n', 'lpush n x', 'get n']);
      await stage.step('pipeline', () => client.pipeline().incr('n').get('n').exec());
    }
  },
  async 'partial pipelines'(play) {
    const { stage } = play;
    const client = await play.client();
    const ready = once(client, 'ready');
    await stage.steps('half answered', {
      pipeline: () => client.pipeline().set('p', 1).incr('p').blpop('nothing', 5).incr('p').exec(),
      get: () => client.get('p'),
      'one by one': () => client.multi({ pipeline: false }),
      queued: () => client.incr('p'),
      exec: () => client.exec(),
      kill: () => sleep(50).then(() => play.kill()),
    });
    await ready;
    await stage.step('get', () => client.get('p'));
  },
  async 'server away'(play) {
    const { stage } = play;
    const gate = await startGate(orders.port);
    const client = await play.client({ port: gate.port, maxRetriesPerRequest: 1, retryStrategy: () => 30 });
    await stage.step('set', () => client.set('k', 'v'));
    const closed = once(client, 'close');
    await gate.close();
    await closed;
    await stage.steps('away', {
      get: () => client.get('k'),
      incr: () => client.incr('k'),
      pipeline: () => client.pipeline().get('k').exec(),
      multi: () => client.multi().get('k').exec(),
      script: () => client.twice('n', 1),
    });
    const ready = once(client, 'ready');
    await gate.open();
    await ready;
    await lines(stage, client, ['get k', 'incr n', 'incr k']);
    const gone = once(client, 'close');
    await stage.steps('in flight', {
      blocked: () => client.blpop('nothing', 1),
      get: () => client.get('k'),
      incr: () => client.incr('n'),
      close: () => sleep(50).then(() => gate.close()),
    });
    await gone;
    const never = await play.client();
    never.options.enableOfflineQueue = false;
    never.options.retryStrategy = () => null;
    const ended = once(never, 'end');
    await play.kill();
    await ended;
    await lines(stage, never, ['get k', 'echo x']);
  },
  async offline(play) {
    const { stage } = play;
    const client = play.make({ lazyConnect: true });
    await stage.steps('before it connects', {
      set: () => client.set('o', 'v'),
      get: () => client.get('o'),
      error: () => client.incr('o'),
      pipeline: () => client.pipeline().get('o').getBuffer('o').exec(),
      multi: () => client.multi().get('o').exec(),
      script: () => client.twice('n', 1),
      select: () => client.select(1),
      other: () => client.get('o'),
    });
    const strict = play.make({ lazyConnect: true, enableOfflineQueue: false });
    const ready = once(strict, 'ready');
    await stage.steps('without a queue', {
      get: () => strict.get('o'),
      pipeline: () => strict.pipeline().get('o').exec(),
      connect: () => strict.connect(),
    });
    await ready;
    await stage.step('connected', () => strict.get('o'));
  },
  async timeouts(play) {
    const { stage } = play;
    const client = await play.client();
    client.options.commandTimeout = 60;
    await stage.steps('late', {
      blocked: () => client.blpop('nothing', 0.3),
      get: () => client.get('k'),
      set: () => client.set('k', 'v'),
      pipeline: () => client.pipeline().get('k').incr('n').exec(),
      script: () => client.twice('n', 1),
      multi: () => client.multi().get('k').exec(),
    });
    await sleep(350);
    client.options.commandTimeout = 4_000;
    await lines(stage, client, ['get k', 'get n', 'incr k', 'echo x']);
    const watched = await play.client({ socketTimeout: 3_000 } as RedisOptions);
    await lines(stage, watched, ['get k', 'incr n']);
  },
  async messages(play) {
    const { stage } = play;
    for (const protocol of [3, 2] as const) {
      const client = await play.client({ protocol });
      const got: string[] = [];
      client.on('message', (channel, text) => got.push(`${channel} ${text}`));
      client.on('pmessage', (pattern, channel, text) => got.push(`${pattern} ${channel} ${text}`));
      await stage.steps('subscribe', {
        set: () => client.set('k', 'v'),
        one: () => client.subscribe('c1'),
        two: () => client.subscribe('c2', 'c3'),
        pattern: () => client.psubscribe('p*'),
      });
      for (const channel of ['c1', 'p9', 'c3']) await play.admin.send('PUBLISH', channel, `to ${channel}`);
      await stage.until('messages', () => got.length >= 3);
      stage.record('messages', got.splice(0).join(' | '));
      await stage.step('ping', () => client.ping());
      if (protocol === 2 || orders.host === 'ioredis5') {
        await stage.step('refused', () => client.get('k'));
      } else await lines(stage, client, ['get k', 'incr n', ['lrange', 'none', 0, -1]]);
      const ready = once(client, 'ready');
      await play.kill('pubsub');
      await ready;
      await stage.step('ping again', () => client.ping());
      await play.admin.send('PUBLISH', 'c1', 'again');
      await stage.until('again', () => got.length >= 1);
      stage.record('again', got.splice(0).join(' | '));
      await stage.steps('unsubscribe', {
        channels: () => client.unsubscribe('c1', 'c2', 'c3'),
        patterns: () => client.punsubscribe('p*'),
      });
      await lines(stage, client, ['get k', 'incr k']);
      client.disconnect();
    }
  },
  async 'reconnect on errors'(play) {
    const { stage } = play;
    for (const answer of [1, 2, false] as const) {
      const client = await play.client({
        reconnectOnError: (error) => (error.message.startsWith('READONLY') ? answer : false),
      });
      await stage.step('load', () => client.fails('x'));
      await stage.steps('in one turn', {
        set: () => client.set('k', 'v'),
        script: () => client.readonlyOnce(`seen ${answer}`),
        get: () => client.get('k'),
        error: () => client.incr('k'),
        hash: () => client.hgetall('none'),
      });
      await stage.step('then', () => client.get('k'));
    }
  },
  async prefixes(play) {
    const { stage } = play;
    const reads: Line[] = ['get k', ['getBuffer', B('k')], 'hgetall h', 'call GET k', 'strlen k'];
    const all: Line[] = [
      'set k v',
      ['mset', { a: 1, b: 2 }],
      'mget a b',
      ['hset', 'h', { f: 1 }],
      ...reads,
      ['twice', 'n', 3],
      'get n',
      'del a b',
    ];
    const text = await play.client({ keyPrefix: 'pre:' });
    await lines(stage, text, all, false);
    await stage.step('pipeline', () => text.pipeline().get('k').mget('a', 'k').exec());
    await stage.step('multi', () => text.multi().get('k').set('k2', 'x').exec());
    await stage.step('keys', async () => ((await play.admin.send('KEYS', 'pre:*')) as string[]).sort());
    // Host: what it writes is not RESP if there are other arguments; then the server ends the connection, sooner or
    // later.
    const bytes = await play.client({ keyPrefix: B('buffer:\xff:') as unknown as string });
    await lines(stage, bytes, reads, false);
    await stage.step('pipeline', () => bytes.pipeline().get('k').strlen('k').exec());
    await stage.step('multi', () => bytes.multi().get('k').strlen('k').exec());
  },
  async transformers(play) {
    const { stage } = play;
    const client = await play.client();
    const { Command } = host;
    Command.setReplyTransformer('strlen', (reply: unknown) => ({ length: reply }));
    Command.setArgumentTransformer('getset', (args: unknown[]) => [args[0], `<${String(args[1])}>`]);
    try {
      const all: Line[] = ['set k text', 'strlen k', 'getset k new', 'get k'];
      await lines(stage, client, all);
      await stage.step('pipeline', () => fill(client.pipeline(), all).exec());
      await stage.step('multi', () => fill(client.multi(), all).exec());
    } finally {
      Command.setReplyTransformer('strlen', (reply: unknown) => reply);
      Command.setArgumentTransformer('getset', (args: unknown[]) => args);
    }
  },
  async monitors(play) {
    const { stage } = play;
    const client = await play.client();
    const seen: string[] = [];
    const monitor = await client.monitor();
    monitor.on('monitor', (_time: string, args: string[], _source: string, db: string) => {
      if (args[0]?.toLowerCase() === 'set') seen.push(`${args.join(' ')} in ${db}`);
    });
    await stage.step('set', () => client.set('k', 'v'));
    await stage.until('seen', () => seen.length === 1);
    stage.record('seen', seen.join());
    await stage.step('refused', () => monitor.get('k'));
    await stage.step('get', () => client.get('k'));
    monitor.disconnect();
  },
  async blocking(play) {
    const { stage } = play;
    const client = await play.client();
    await stage.steps('behind one that waits', {
      blpop: () => client.blpop('jobs', 4),
      get: () => client.get('k'),
      incr: () => client.incr('n'),
      move: () => client.brpoplpush('jobs', 'done', 4),
      range: () => client.lrange('done', 0, -1),
      push: () => sleep(30).then(() => play.admin.send('RPUSH', 'jobs', 'one', 'two')),
    });
    await stage.step('stream', () => client.xread('BLOCK', 20, 'STREAMS', 'x', '$'));
    await stage.step('waited in vain', () => client.blpop('nothing', 0.02));
    await stage.step('get', () => client.get('n'));
  },
  async endings(play) {
    const { stage } = play;
    const states: string[] = [];
    const first = await play.client();
    for (const state of ['close', 'reconnecting', 'end']) first.on(state, () => states.push(state));
    await stage.steps('quit', {
      set: () => first.set('k', 'v'),
      quit: () => first.quit(),
      get: () => first.get('k'),
    });
    await stage.until('ended', () => states.includes('end'));
    stage.record('states', states.splice(0).join());
    await lines(stage, first, ['get k', 'set k w']);
    const second = await play.client();
    second.on('end', () => states.push('end'));
    await stage.steps('disconnect', {
      set: () => second.set('last', 'stored'),
      pipeline: () => second.pipeline().set('last too', 'stored').exec(),
      disconnect: () => second.disconnect(),
      get: () => second.get('k'),
    });
    await stage.until('ended again', () => states.includes('end'));
    await sleep(20);
    for (const key of ['last', 'last too']) await stage.step(key, () => play.admin.send('GET', key));
    await stage.step('connect', () => second.connect());
    await stage.step('get', () => second.get('k'));
    const third = play.make();
    await stage.step('quit before ready', () => third.quit());
  },
  async 'many and large'(play) {
    const { stage } = play;
    const client = await play.client();
    const large = 'x'.repeat(200_000);
    await lines(stage, client, [['set', 'large', large], 'strlen large', 'get large', 'mget large large']);
    await stage.step('600', async () => {
      const values = Array.from({ length: 600 }, (_, index) => client.set(`n${index}`, `v${index}`));
      await Promise.all(values);
      return Promise.all(values.map((_, index) => client.get(`n${index}`)));
    });
    await stage.step('loops', () =>
      Promise.all(
        Array.from({ length: 20 }, async (_, loop) => {
          const found: unknown[] = [];
          for (let index = 0; index < 10; index += 1) {
            found.push(await client.get(`n${loop * 10 + index}`), await client.incr(`loop${loop}`));
            if (index === 5) found.push(await client.incr('n1').catch((error: Error) => error.message));
          }
          return found;
        }),
      ),
    );
    await stage.step('pipeline of 300', () =>
      fill(
        client.pipeline(),
        Array.from({ length: 300 }, (_, index): Line => ['get', `n${index}`]),
      ).exec(),
    );
    await stage.step('scan', async () => {
      const keys: string[] = [];
      for await (const some of client.scanStream({ match: 'n1*', count: 50 })) keys.push(...(some as string[]));
      return [...new Set(keys)].sort().length;
    });
  },
  async copies(play) {
    const { stage } = play;
    const client = await play.client({ connectionName: 'named' });
    const copy = client.duplicate();
    await once(copy, 'ready');
    await lines(stage, copy, ['set k v', 'get k', 'client GETNAME', 'incr k']);
    copy.disconnect();
    const automatic = await play.client({ enableAutoPipelining: true });
    await lines(stage, automatic, ['get k', 'incr n', 'incr k', 'hgetall none'], false);
    const friendly = await play.client({ showFriendlyErrorStack: true });
    await lines(stage, friendly, ['get k', 'incr k']);
  },
  async 'cluster commands'(play) {
    const { stage } = play;
    const cluster = play.makeCluster();
    await stage.steps('before it connects', {
      set: () => cluster.set('early', 'v'),
      get: () => cluster.get('early'),
      pipeline: () => cluster.pipeline().get('early').exec(),
    });
    const all = Array.from({ length: 12 }, (_, index): Line[] => [
      ['set', `k${index}`, `v${index}`],
      ['get', `k${index}`],
      ['hset', `h${index}`, { f: index }],
      ['hgetall', `h${index}`],
      ['incr', `k${index}`],
    ]).flat();
    await lines(stage, cluster, all, false);
    await lines(
      stage,
      cluster,
      [
        ['mset', '{t}a', 1, '{t}b', 2],
        'mget {t}a {t}b',
        ['twice', 'n', 5],
        'fails n',
        ['twice', 'other', 1],
        'getBuffer n',
        'call GET n',
        ['zadd', 'z', 1.5, 'm'],
        'zscore z m',
      ],
      false,
    );
    await stage.steps('at once', {
      pipeline: () => cluster.pipeline().set('{t}a', 5).incr('{t}a').lpush('{t}a', 'x').exec(),
      multi: () => cluster.multi().set('{t}a', 7).get('{t}a').incr('{t}b').exec(),
      slots: () => cluster.pipeline().get('k1').get('k2').get('k3').exec(),
      callback: () => called((done) => cluster.get('k1', done)),
      masters: () => cluster.nodes('master').length,
    });
    const prefixed = await play.cluster({ keyPrefix: 'pre:' });
    await lines(stage, prefixed, ['set k v', 'get k', ['twice', 'n', 1], 'incr k'], false);
    await stage.step('quit', () => prefixed.quit());
    await stage.step('after quit', () => prefixed.get('k'));
    cluster.disconnect();
    await stage.step('after disconnect', () => cluster.get('k1'));
  },
  async 'cluster redirections'(play) {
    const { stage } = play;
    const [first = 0, second = 0] = orders.clusterPorts;
    const [source, target] = play.nodes as [Admin, Admin];
    // At first, the client takes the second node for the first one: all that it asks there is moved.
    let wrong = true;
    const natMap = (key: string) => {
      const port = Number(key.split(':')[1]);
      return { host: '127.0.0.1', port: wrong && port === first ? second : port };
    };
    const cluster = await play.cluster({ natMap });
    wrong = false;
    const key = await keyAt(source, 'moved');
    await stage.steps('moved', {
      set: () => cluster.set(key, 'v'),
      get: () => cluster.get(key),
      error: () => cluster.incr(key),
      hash: () => cluster.hgetall(`{${key}}none`),
      pipeline: () => cluster.pipeline().get(key).exec(),
      script: () => cluster.twice(`{${key}}n`, 2),
    });
    await lines(
      stage,
      cluster,
      [
        ['get', key],
        ['incr', `{${key}}n`],
      ],
      false,
    );

    const asked = await keyAt(source, 'asked');
    const slot = Number(await source.send('CLUSTER', 'KEYSLOT', asked));
    const [from, to] = [await source.send('CLUSTER', 'MYID'), await target.send('CLUSTER', 'MYID')].map(String);
    await stage.step('set', () => cluster.set(`{${asked}}here`, 'at home'));
    await target.send('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from ?? '');
    await source.send('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to ?? '');
    try {
      await stage.steps('asked', {
        here: () => cluster.get(`{${asked}}here`),
        set: () => cluster.set(asked, 'far'),
        get: () => cluster.get(asked),
        error: () => cluster.lpush(asked, 'x'),
        pipeline: () => cluster.pipeline().get(asked).strlen(asked).exec(),
        script: () => cluster.twice(`{${asked}}n`, 2),
        multi: () => cluster.multi().get(asked).exec(),
      });
      const both = stage.step('tried again', () => cluster.mget(`{${asked}}here`, asked));
      await sleep(60);
      for (const name of [asked, `{${asked}}n`]) {
        await target.send('ASKING');
        await target.send('DEL', name);
      }
      for (const node of [source, target]) await node.send('CLUSTER', 'SETSLOT', slot, 'STABLE');
      await both;
    } finally {
      for (const node of [source, target]) await node.send('CLUSTER', 'SETSLOT', slot, 'STABLE');
    }
    await stage.step('then', () => cluster.get(`{${asked}}here`));

    const lost = stage.steps('lost', {
      blocked: () => cluster.blpop(`{${key}}nothing`, 0.4),
      get: () => cluster.get(key),
      incr: () => cluster.incr(`{${key}}n`),
      elsewhere: () => cluster.get('k2'),
      pipeline: () => cluster.pipeline().get(key).exec(),
    });
    await sleep(50);
    await source.send('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await lost;
    await lines(stage, cluster, [['get', key], 'get k2', ['incr', `{${key}}n`]], false);
  },
  async 'cluster messages'(play) {
    const { stage } = play;
    const cluster = await play.cluster();
    const got: string[] = [];
    cluster.on('message', (channel: string, text: string) => got.push(`${channel} ${text}`));
    await stage.step('subscribe', () => cluster.subscribe('c1', 'c2'));
    await stage.step('publish', async () => {
      await cluster.publish('c1', 'hello');
    });
    await stage.until('message', () => got.length === 1);
    stage.record('message', got.join());
    await stage.step('unsubscribe', () => cluster.unsubscribe());
    await lines(stage, cluster, ['set k v', 'get k'], false);
  },
};

/** A key that the node serves. */
async function keyAt(node: Admin, base: string): Promise<string> {
  for (let index = 0; ; index += 1) {
    if (!String(await node.send('GET', `${base}${index}`)).startsWith('-MOVED')) return `${base}${index}`;
  }
}

async function main(): Promise<Verdict> {
  const changed = (globalThis as Record<symbol, Set<string> | undefined>)[Symbol.for('ioredis-coalesce mutant files')];
  if ((changed?.size ?? 0) !== orders.changes) {
    throw new Error(`expected ${orders.changes} changed files, got ${[...(changed ?? [])].join()}`);
  }
  let stage: Stage | undefined;
  const plain = new Map<string, Transcript>();
  const counts = { commands: 0, fast: 0 };
  const open: string[] = [];
  const warnings = new Set<string>();
  process.on('warning', ({ name, message, ...rest }) =>
    warnings.add(`${(rest as { code?: string }).code ?? name}: ${message}`),
  );
  process.on('uncaughtException', (error: Error) => stage?.uncaught.push(error.message));
  const conclude = (verdict: Verdict['verdict'], more: Partial<Verdict> = {}): Verdict => ({
    verdict,
    way: counts.fast > 0 ? 'fast' : counts.commands > 0 ? 'cork' : 'plain',
    steps: [...plain.values()].reduce((sum, { length }) => sum + length, 0),
    open,
    warnings: [...warnings],
    ...more,
  });
  const only = process.env.MUTANT_SCENE;
  for (const arm of ARMS) {
    if (arm === 'with features' && counts.fast === 0) continue;
    for (const [scene, play] of Object.entries(SCENES)) {
      if (only !== undefined && only !== scene) continue;
      process.stderr.write(`@${arm}: ${scene}\n`);
      stage = new Stage(plain.get(scene));
      const playing = new Play(stage, arm);
      try {
        await playing.clear();
        try {
          await within(stage, play(playing));
        } catch (error) {
          if (error instanceof Stopped) throw error;
          if (!(error instanceof Open)) stage.record('scene', `threw ${canonical(error)}`);
          else if (arm === 'coalesced') open.push(`${scene}: ${error.message}`);
        }
        await playing.finish();
      } catch (error) {
        const why = error instanceof Stopped ? error.message : String((error as Error).stack);
        return conclude(arm === 'plain' ? 'plain breaks' : 'wrong', { arm, scene, why });
      } finally {
        playing.end();
        if (arm === 'plain') plain.set(scene, stage.transcript);
        if (arm === 'coalesced') {
          counts.commands += playing.commands;
          counts.fast += playing.fast;
        }
      }
    }
  }
  if (orders.corked && counts.commands === 0) {
    return conclude('wrong', { arm: 'coalesced', why: 'clients are not corked' });
  }
  return conclude(open.length > 0 ? 'open' : 'right');
}

/** A scene in which an event never comes stays open. */
async function within(stage: Stage, scene: Promise<void>): Promise<void> {
  const late = new AbortController();
  const waits = sleep(15_000, undefined, { signal: late.signal }).then(() => stage.record('scene', 'open'));
  try {
    await Promise.race([scene, waits]);
  } finally {
    late.abort();
    waits.catch(() => {});
  }
}

const verdict = await main().catch((error: Error): Verdict => {
  return { verdict: 'plain breaks', way: 'plain', steps: 0, open: [], why: String(error.stack), warnings: [] };
});
process.stdout.write(`\n=${JSON.stringify(verdict)}\n`, () => process.exit(0));
