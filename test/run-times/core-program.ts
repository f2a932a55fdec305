/**
 * The core's checks as a program of its own, for run times that Vitest does not run on: the built package against a
 * real Redis, a plain client beside a coalesced one.
 *
 *     bun core-program.ts redis://127.0.0.1:6379 prefix:
 *     deno run -A core-program.ts redis://127.0.0.1:6379 prefix:
 *
 * Prints one line of JSON: a {@link Report}.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import process from 'node:process';
import type { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { inspect, isDeepStrictEqual } from 'node:util';
import { Redis as Redis6, type RedisOptions } from 'ioredis';
import { type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { cork } from 'ioredis-coalesce/cork';
import Redis5 from 'ioredis5';
import { Redis as Valkey } from 'iovalkey';

export interface Report {
  readonly passed: readonly string[];
  readonly failed: readonly { readonly name: string; readonly reason: string }[];
  /** What differs between run times. */
  readonly facts: { readonly readsInPlace: boolean };
}

type Client = Redis6;
type ClientClass = new (url: string, options: RedisOptions) => Client;

/** What a check uses: clients of one kind, and keys that no other check has. */
interface Scene {
  readonly key: string;
  connect(options?: RedisOptions, coalesceOptions?: CoalesceOptions): Promise<Client>;
}

const [url = '', prefix = ''] = process.argv.slice(2);
const HOSTS = { 'ioredis 6': Redis6, 'ioredis 5': Redis5, iovalkey: Valkey } as unknown as Record<string, ClientClass>;

const told = (error: unknown): string => String(error);
const settled = async (replies: readonly Promise<unknown>[]): Promise<unknown[]> =>
  (await Promise.allSettled(replies)).map((reply) => (reply.status === 'fulfilled' ? reply.value : told(reply.reason)));
const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

const CHECKS: Record<string, (scene: Scene) => Promise<unknown>> = {
  'values of all kinds': async ({ key, connect }) => {
    const client = await connect();
    const long = 'é'.repeat(150_000);
    const bytes = Buffer.from(times(256, (index) => index));
    return settled([
      client.set(key, 'v'),
      client.get(key),
      client.getBuffer(key),
      client.get(`${key}none`),
      client.set(`${key}bytes`, bytes),
      client.getBuffer(`${key}bytes`),
      client.set(`${key}long`, long),
      client.get(`${key}long`),
      client.getBuffer(`${key}long`),
      client.strlen(`${key}long`),
      client.set(`${key}empty`, ''),
      client.get(`${key}empty`),
      client.mset({ [`${key}1`]: 1, [`${key}2`]: 2.5 }),
      client.mget(`${key}1`, `${key}2`, `${key}none`),
      client.incrby(`${key}n`, '9007199254740993'),
      client.incrbyfloat(`${key}f`, 0.1),
      client.hset(`${key}h`, { é: 'ü', a: '1' }),
      client.hgetall(`${key}h`),
      client.hmget(`${key}h`, 'a', 'b'),
      client.rpush(`${key}l`, ...times(500, String)),
      client.lrange(`${key}l`, 0, -1),
      client.sadd(`${key}s`, 'a'),
      client.smembers(`${key}s`),
      client.zadd(`${key}z`, '1.5', 'a', '2', 'b'),
      client.zrange(`${key}z`, '0', '-1', 'WITHSCORES'),
      client.zscore(`${key}z`, 'a'),
      client.xadd(`${key}x`, '1-1', 'f', 'v'),
      client.xrange(`${key}x`, '-', '+'),
      client.exists(key),
      client.ttl(key),
      client.call('ECHO', 'called'),
    ]);
  },

  errors: async ({ key, connect }) => {
    const client = await connect();
    const replies = [client.set(key, 'v'), client.incr(key), client.lpush(key, 'a'), client.get(key)];
    return settled([...replies, client.call('NO_SUCH_COMMAND'), client.get(key)]);
  },

  'bursts, each caller its own value': async ({ key, connect }) => {
    const client = await connect();
    const values: unknown[] = [];
    for (let round = 0; round < 20; round += 1) {
      await Promise.all(times(200, (index) => client.set(`${key}${index}`, `${round}-${index}`)));
      values.push(await Promise.all(times(200, (index) => client.get(`${key}${index}`))));
    }
    return values;
  },

  'loops at once': async ({ key, connect }) => {
    const client = await connect();
    return Promise.all(
      times(20, async (loop) => {
        const seen: unknown[] = [];
        for (let step = 0; step < 20; step += 1) seen.push(await client.incr(`${key}${loop}`));
        return seen;
      }),
    );
  },

  pipelines: async ({ key, connect }) => {
    const client = await connect();
    const alone = client.pipeline().set(key, '1').incr(key).lpush(key, 'x').get(key).exec();
    const [results, behind] = await Promise.all([alone, client.get(key)]);
    return [results?.map(([error, value]) => (error ? told(error) : value)), behind];
  },

  transactions: async ({ key, connect }) => {
    const client = await connect();
    const other = await connect();
    const done = await client.multi().set(key, '1').incr(key).get(key).exec();
    const aborted = await client.multi().set(key, '1').call('NO_SUCH_COMMAND').exec().catch(told);
    await client.watch(key);
    await other.set(key, 'changed');
    const undone = await client.multi().set(key, 'lost').exec();
    await client.multi({ pipeline: false });
    const queued = await client.set(key, '2');
    return [done, aborted, undone, queued, await client.exec(), await client.get(key)];
  },

  scripts: async ({ key, connect }) => {
    const client = await connect();
    client.defineCommand('addTo', { numberOfKeys: 1, lua: 'return redis.call("incrby", KEYS[1], ARGV[1])' });
    const { addTo } = client as unknown as { addTo(key: string, by: number): Promise<unknown> };
    const first = await Promise.all([addTo.call(client, key, 1), addTo.call(client, key, 2)]);
    await client.script('FLUSH');
    const again = await Promise.all([addTo.call(client, key, 3), addTo.call(client, key, 4), client.get(key)]);
    return [
      first,
      again,
      await client.eval('return {1, "a", ARGV[1]}', 0, 'é'),
      await client.eval('error()', 0).catch(told),
    ];
  },

  'publish and subscribe': async ({ key, connect }) => {
    const client = await connect();
    const subscriber = await connect();
    const messages: unknown[] = [];
    subscriber.on('message', (channel, message) => messages.push([channel, message]));
    const subscribed = await subscriber.subscribe(key);
    const received = await Promise.all(times(20, (index) => client.publish(key, `é${index}`)));
    while (messages.length < 20) await turn();
    await subscriber.unsubscribe(key);
    return [subscribed, received, messages, await subscriber.set(key, 'v')];
  },

  'a lost connection': async ({ key, connect }) => {
    const client = await connect({ retryStrategy: () => 5 });
    const other = await connect();
    await client.set(key, '0');
    const id = await client.client('ID');
    await other.client('KILL', 'ID', String(id));
    const values = await Promise.all(times(20, () => client.get(key)));
    if (client.status !== 'ready') await once(client, 'ready');
    return [values, await Promise.all(times(20, () => client.incr(key)))];
  },

  'commandTimeout, and late replies': async ({ key, connect }) => {
    const client = await connect();
    const other = await connect();
    // Neither for the handshake nor for what is answered: a busy machine may delay both.
    client.options.commandTimeout = 60;
    const late = settled([client.blpop(`${key}list`, 20), client.get(key), client.echo('late')]);
    const errors = await late;
    client.options.commandTimeout = 60_000;
    await other.rpush(`${key}list`, 'x');
    await client.set(key, 'v');
    const next: unknown[] = [];
    for (let round = 0; round < 100; round += 1)
      next.push(await Promise.all([client.get(key), client.echo(`own ${round}`)]));
    return [errors, next];
  },

  'callbacks, keyPrefix, numbers as text': async ({ key, connect }) => {
    const client = await connect({ keyPrefix: `${key}prefix:`, stringNumbers: true });
    const called = new Promise((resolve) => client.set('k', 'v', (...result) => resolve(result)));
    return [await called, await client.incr('n'), await client.get('k'), await client.keys(`${key}*`)];
  },

  'the context of a caller': async ({ key, connect }) => {
    const client = await connect();
    const storage = new AsyncLocalStorage<number>();
    return Promise.all(
      times(20, (index) =>
        storage.run(index, async () => {
          await client.get(key);
          return storage.getStore();
        }),
      ),
    );
  },

  'what is issued before the end': async ({ key, connect }) => {
    const [leaving, quitting] = [await connect(), await connect()];
    const first = leaving.set(key, 'stored').catch(told);
    leaving.disconnect();
    const replies = await settled([quitting.append(`${key}q`, 'x'), quitting.quit(), quitting.get(key)]);
    await first;
    const other = await connect();
    while ((await other.get(key)) === null) await turn();
    return [replies, await other.get(key), await other.get(`${key}q`)];
  },

  'more than maxInFlight': async ({ key, connect }) => {
    const client = await connect({}, { maxInFlight: 10 });
    return Promise.all(times(500, (index) => (index % 50 === 0 ? client.call('INCR', key) : client.incr(key))));
  },
};

const facts = { readsInPlace: false };
const passed: string[] = [];
const failed: { name: string; reason: string }[] = [];
const open: Client[] = [];

async function connectTo(
  Class: ClientClass,
  coalesced: boolean,
  options: RedisOptions,
  coalesceOptions: CoalesceOptions,
) {
  const plain = new Class(url, options);
  plain.on('error', () => {});
  open.push(plain);
  const client = coalesced ? coalesce(plain, coalesceOptions) : plain;
  if (client.status !== 'ready') await once(client, 'ready');
  return client;
}

/** Runs a check, and gives up on one that hangs. */
async function finish(play: Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in 30 s')), 30_000);
  });
  try {
    return await Promise.race([play, late]);
  } finally {
    clearTimeout(timer);
    for (const client of open.splice(0)) client.disconnect();
  }
}

async function check(name: string, run: () => Promise<void>): Promise<void> {
  try {
    await run();
    passed.push(name);
  } catch (error) {
    failed.push({ name, reason: error instanceof Error ? (error.stack ?? error.message) : told(error) });
  }
}

async function compare(hostName: string, name: string): Promise<void> {
  const Class = HOSTS[hostName] as ClientClass;
  const play = async (coalesced: boolean): Promise<unknown> => {
    const key = `${prefix}${hostName}:${name}:`;
    const cleaner = new Class(url, {});
    const keys = await cleaner.keys(`${key}*`);
    if (keys.length > 0) await cleaner.del(...keys);
    cleaner.disconnect();
    const connect: Scene['connect'] = (options = {}, coalesceOptions = {}) =>
      connectTo(Class, coalesced, options, coalesceOptions);
    return finish((CHECKS[name] as (scene: Scene) => Promise<unknown>)({ key, connect }));
  };
  const plain = await play(false);
  const coalesced = await play(true);
  if (isDeepStrictEqual(coalesced, plain)) return;
  const shown = (value: unknown) => inspect(value, { depth: 6, maxArrayLength: 20, maxStringLength: 80, compact: 3 });
  throw new Error(`plain gives ${shown(plain)}, coalesced ${shown(coalesced)}`);
}

function expect(fact: string, isSo: boolean): void {
  if (!isSo) throw new Error(`it is not so that ${fact}`);
}

/** By the field in which Node's sockets have the memory that they are read into. */
function readsInPlace(socket: Record<symbol, unknown>): boolean {
  const field = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'kBuffer');
  return field !== undefined && socket[field] instanceof Uint8Array;
}

async function checkFastPath(hostName: string): Promise<void> {
  const client = (await connectTo(HOSTS[hostName] as ClientClass, true, {}, {})) as ReturnType<typeof coalesce<Client>>;
  await Promise.all(times(200, (index) => client.set(`${prefix}fast${index}`, index)));
  await Promise.all(times(200, (index) => client.get(`${prefix}fast${index}`)));
  const { commands, fastCommands, replies } = client.coalescer.stats();
  facts.readsInPlace = readsInPlace((client as unknown as { stream: Record<symbol, unknown> }).stream);
  client.disconnect();
  expect(
    `all but few of ${commands} commands were fast (${fastCommands})`,
    fastCommands >= 400 && commands - fastCommands < 10,
  );
  expect('their replies were read by the package', replies.fast >= 390);
}

/** A corked client beside a plain one: both get the same, and the corked one in few writes. */
async function checkCork(hostName: string): Promise<void> {
  const client = await connectTo(HOSTS[hostName] as ClientClass, false, {}, {});
  const { stream } = client as unknown as { stream: Duplex };
  const corked = cork(client);
  let writes = 0;
  const { _write, _writev } = stream;
  stream._write = (...args) => {
    writes += 1;
    _write.apply(stream, args);
  };
  stream._writev = (...args) => {
    writes += 1;
    _writev?.apply(stream, args);
  };
  const asked = times(200, String);
  const replies = await Promise.all(asked.map((text) => client.echo(text)));
  expect('each caller has its own reply', isDeepStrictEqual(replies, asked));
  expect(`the commands leave in few writes (${writes})`, writes > 0 && writes < 100);
  const last = client.echo('last');
  corked.undo();
  expect('what was held is answered', (await last) === 'last');
  expect('the stream has its own write() again', !Object.hasOwn(stream, 'write'));
}

async function checkCache(): Promise<void> {
  const client = (await connectTo(Redis6 as ClientClass, true, {}, { cache: true })) as ReturnType<
    typeof coalesce<Client>
  >;
  const writer = await connectTo(Redis6 as ClientClass, false, {}, {});
  const key = `${prefix}cached`;
  for (let round = 0; round < 20; round += 1) {
    await writer.set(key, round);
    // The invalidation may come after the writer's answer: until then the value before is allowed.
    while ((await client.get(key)) !== String(round)) await turn();
    for (let read = 0; read < 20; read += 1) expect('the answer is right', (await client.get(key)) === String(round));
  }
  const { cache } = client.coalescer.stats();
  expect('answers came from memory', (cache?.hits ?? 0) > 100);
}

for (const hostName of Object.keys(HOSTS)) {
  await check(`${hostName}: commands are fast`, () => finish(checkFastPath(hostName)) as Promise<void>);
  await check(`${hostName}: a cork`, () => finish(checkCork(hostName)) as Promise<void>);
  for (const name of Object.keys(CHECKS)) await check(`${hostName}: ${name}`, () => compare(hostName, name));
}
await check('ioredis 6: the cache', () => finish(checkCache()) as Promise<void>);

console.log(JSON.stringify({ passed, failed, facts } satisfies Report));
process.exit(0);
