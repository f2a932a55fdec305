import { AsyncLocalStorage } from 'node:async_hooks';
import { type TracingChannelSubscribers, tracingChannel } from 'node:diagnostics_channel';
import { afterEach, expect, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { cached } from '../helpers/client-cache/cached.js';
import { learned, predictions } from '../helpers/client-cache/prefetching.js';
import { type Client, ioredis6, outcomes, ready, sleep } from '../helpers/hosts.js';
import { assumeFar } from '../helpers/predicting.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('command-channel');
const channel = tracingChannel<string, CommandContext>('ioredis:command');
const REQUESTS = 200;

/** What ioredis 6 publishes, and Node adds. */
interface CommandContext {
  readonly command: string;
  readonly args: readonly string[];
  readonly result?: unknown;
  readonly error?: Error;
}

type Subscribers = TracingChannelSubscribers<CommandContext>;

assumeFar();

let unsubscribe = () => {};

afterEach(() => unsubscribe());

function subscribe(subscribers: Partial<Subscribers>): void {
  const all: Subscribers = { start() {}, end() {}, asyncStart() {}, asyncEnd() {}, error() {}, ...subscribers };
  channel.subscribe(all);
  unsubscribe = () => void channel.unsubscribe(all);
}

type Recorded = { readonly event: string; readonly context: object; readonly error: string | undefined };

/** Every event in a form that compares equal for equal ones, in the order of publishing. */
function recordEvents(): Recorded[] {
  const events: Recorded[] = [];
  const record = (event: string) => (context: CommandContext) => {
    const { error, ...rest } = context;
    events.push({ event, context: structuredClone(rest), error: error && `${error.name}: ${error.message}` });
  };
  subscribe({
    start: record('start'),
    end: record('end'),
    asyncStart: record('asyncStart'),
    asyncEnd: record('asyncEnd'),
    error: record('error'),
  });
  return events;
}

async function everyKind(client: Client): Promise<unknown> {
  const k = `${prefix}key`;
  const results = [
    await outcomes([client.set(k, 'text'), client.get(k), client.getBuffer(k), client.incr(k)]),
    await outcomes([client.hset(`${k}:hash`, { field: 'value' }), client.hgetall(`${k}:hash`), client.mget([k, 'x'])]),
    await outcomes([client.call('GET', k), client.eval('return ARGV[1]', 0, 'argument')]),
    await outcomes([client.pipeline().get(k).incr(k).exec(), client.multi().get(k).exec()]),
    await outcomes([client.del(k, `${k}:hash`)]),
  ];
  return results;
}

it('the events of every command equal those of a plain client', async () => {
  const plain = await ready(ioredis6.create(redisUrl()));
  const client = await ready(ioredis6.createCoalesced(redisUrl()));
  await client.echo('fast');
  const events = recordEvents();
  const results = await everyKind(plain);
  const expected = events.splice(0);
  expect(await everyKind(client)).toEqual(results);
  expect(events).toEqual(expected);
  expect(expected.filter(({ event }) => event === 'start').length).toBeGreaterThan(12);
  const { fastCommands, observedCommands, fallbacks } = client.coalescer.stats();
  expect(observedCommands).toBeGreaterThan(7);
  expect(fastCommands - observedCommands).toBe(1);
  // The pipeline and the transaction.
  expect(fallbacks.traced).toBe(2);
});

it(`${REQUESTS} concurrent requests: each event in the context of its own caller`, async () => {
  const client = await ready(ioredis6.createCoalesced(redisUrl()));
  const request = new AsyncLocalStorage<number>();
  const seen: string[] = [];
  const see = (event: string) => (context: CommandContext) =>
    void seen.push(`${request.getStore()}: ${event} ${context.command} ${context.args[0]}`);
  subscribe({ start: see('start'), asyncEnd: see('asyncEnd') });
  const all = Array.from({ length: REQUESTS }, (_, index) => index);
  await Promise.all(
    all.map((index) =>
      request.run(index, async () => {
        await client.pttl(`${prefix}${index}`);
        await Promise.all([client.get(`${prefix}${index}`), client.exists(`${prefix}${index}`)]);
      }),
    ),
  );
  const expected = all.flatMap((index) =>
    ['pttl', 'get', 'exists'].flatMap((name) => [
      `${index}: start ${name} ${prefix}${index}`,
      `${index}: asyncEnd ${name} ${prefix}${index}`,
    ]),
  );
  expect(seen.toSorted()).toEqual(expected.toSorted());
});

it.each(['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const)(
  'only %s: as on a plain client',
  async (event) => {
    const plain = await ready(ioredis6.create(redisUrl()));
    const client = await ready(ioredis6.createCoalesced(redisUrl()));
    await client.echo('fast');
    const seen: unknown[] = [];
    const see = (context: unknown) => void seen.push((context as CommandContext).command);
    channel[event].subscribe(see);
    unsubscribe = () => void channel[event].unsubscribe(see);
    await everyKind(plain);
    const expected = seen.splice(0);
    await everyKind(client);
    expect(seen).toEqual(expected);
    expect(expected.length).toBeGreaterThan(0);
    unsubscribe();
    await client.echo('fast');
    expect(seen).toHaveLength(expected.length);
    const { fastCommands, observedCommands } = client.coalescer.stats();
    expect(fastCommands - observedCommands).toBe(2);
  },
);

it('a read answered from memory is published as any other, and so is one that is too old', async () => {
  const [plain, client] = await Promise.all([ready(ioredis6.create(redisUrl())), cached(redisUrl(), { ttl: 200 })]);
  const key = `${prefix}kept`;
  await plain.set(key, 'text');
  await client.get(key);
  const events = recordEvents();
  const readThrice = async (of: Client) => {
    const values = [await of.get(key), await of.get(key)];
    await sleep(250);
    return [...values, await of.get(key)];
  };
  const values = await readThrice(plain);
  const expected = events.splice(0);
  const { hits } = client.coalescer.stats().cache ?? {};
  expect(await readThrice(client)).toEqual(values);
  expect(events).toEqual(expected);
  expect(client.coalescer.stats().cache?.hits).toBe(Number(hits) + 1);
});

it('what was written before somebody subscribed is not published when it is sent again', async () => {
  const run = async (kind: 'plain' | 'coalesced') => {
    const proxy = await startProxy(redisUrl());
    const client = await connectAs(kind, ioredis6, proxy.url, { retryStrategy: () => 1 });
    await client.echo('fast');
    const lost = proxy.loseRequests('last');
    const key = `${prefix}again`;
    const before = [client.get(key), client.pipeline().get(key).exec()];
    const events = recordEvents();
    const all = await outcomes([...before, client.get(key), client.echo('last')]);
    await lost;
    unsubscribe();
    const started = events.filter(({ event }) => event === 'start').map(({ context }) => context);
    return [
      all,
      started
        .filter((context) => /get|echo/.test((context as CommandContext).command))
        .map((context) => (context as CommandContext).command),
    ];
  };
  expect((await expectAsPlain(run))[1]).toEqual(['get', 'echo']);
});

it('a predicted read is published when a caller issues it', async () => {
  const other = await ready(ioredis6.create(redisUrl()));
  const flow = await learned(redisUrl(), other, `${prefix}flow`);
  const id = await flow.newUser();
  const events = recordEvents();
  const before = predictions(flow.client);
  await flow.run(id);
  expect(predictions(flow.client)).toEqual({
    predicted: before.predicted + 4,
    predictionsUsed: before.predictionsUsed + 4,
  });
  const started = events.filter(({ event }) => event === 'start').map(({ context }) => context);
  expect(started).toHaveLength(5);
  expect(started).toMatchObject(['get', 'hgetall', 'get', 'get', 'get'].map((command) => ({ command })));
});
