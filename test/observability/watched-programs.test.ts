import type { Redis } from 'ioredis';
import { Redis as Admin } from 'ioredis';
import { type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { expect, it } from 'vitest';
import { type CopiedHost, copyHost } from '../helpers/changed-hosts.js';
import { difference } from '../helpers/fidelity/canonical.js';
import { describePrograms, programsOf, STEADY_SEED } from '../helpers/fidelity/profiles.js';
import {
  byEvent,
  REWRITINGS,
  runWatched,
  type WatchedProgram,
  watchedPrograms,
} from '../helpers/fidelity/watched-program.js';
import { type Client, type CoalescedClient, HOSTS, type Host, ready } from '../helpers/hosts.js';
import { FaultyProxy } from '../helpers/proxy.js';
import { type RedisServer, startServer } from '../helpers/redis.js';
import { rewrite } from '../helpers/rewriting.js';
import { collectUncaught } from '../helpers/uncaught.js';

const PROGRAMS = programsOf('WATCHED', 4, 300);
const PATIENCE_MS = 10_000;

const OPTIONS: readonly CoalesceOptions[] = [
  {},
  { fastPath: false },
  // Not `maxInFlight`: with it a lost connection has lost less.
  { shareReads: true },
  { fuseReads: true, maxBatchSize: 3 },
  { schedule: 'tick', busyPoll: false },
  { cache: { prefetch: true } },
];

class World {
  constructor(
    readonly server: RedisServer,
    readonly admin: Redis,
    readonly proxies: { readonly plain: FaultyProxy; readonly mine: FaultyProxy },
  ) {}

  static async start(): Promise<World> {
    const server = await startServer();
    const proxies = { plain: new FaultyProxy(server.port), mine: new FaultyProxy(server.port) };
    await Promise.all(Object.values(proxies).map((proxy) => proxy.listen()));
    return new World(server, new Admin(server.url), proxies);
  }

  async reset({ keyPrefix: p }: WatchedProgram): Promise<void> {
    await this.admin.flushall();
    for (const db of [0, 1]) {
      const pipeline = this.admin.pipeline().select(db);
      for (const key of ['a', 'b', 'ключ', '7']) pipeline.set(`${p}${key}`, `${db}/${key}`);
      pipeline.set(`${p}n`, 1).hset(`${p}h`, { f: `${db}`, é: 'ü' });
      await pipeline.exec();
    }
  }

  async stop(): Promise<void> {
    this.admin.disconnect();
    await Promise.all(Object.values(this.proxies).map((proxy) => proxy.close()));
    await this.server.stop();
  }
}

let unhandled: Error[];
const statsOf = (client: Client) =>
  (client as Client & { coalescer?: CoalescedClient['coalescer'] }).coalescer?.stats();

type Classes = Map<WatchedProgram['rewriting'], Host['Redis']>;

async function run(
  world: World,
  classes: Classes,
  options: CoalesceOptions | undefined,
  program: WatchedProgram,
  count: number,
) {
  const proxy = world.proxies[options === undefined ? 'plain' : 'mine'];
  await world.reset(program);
  const { keyPrefix, maxRetriesPerRequest, rewriting } = program;
  const Redis = classes.get(rewriting) as Host['Redis'];
  const client = new Redis(proxy.url, { keyPrefix, maxRetriesPerRequest, retryStrategy: () => 1 });
  client.on('error', () => {});
  const holder = Object.create(Object.getPrototypeOf(client)) as object;
  Object.setPrototypeOf(client, holder);
  client.defineCommand('pair', { numberOfKeys: 1, lua: 'return {KEYS[1], ARGV[1]}' });
  if (options !== undefined) coalesce(client, options);
  await ready(client);
  await client.echo('warm');
  const attachAnew = () => {
    if (options === undefined) return;
    (client as CoalescedClient).coalescer.detach();
    coalesce(client, options);
  };
  const lose = (what: 'requests' | 'replies', sent: string) =>
    what === 'requests' ? proxy.loseRequests(sent) : proxy.loseReplies(sent);
  const found = await runWatched(
    {
      client,
      classes: { class: holder, nodes: {} },
      isPlain: options === undefined,
      attachAnew,
      begin: async (index) => {
        await ready(client);
        // Fewer commands are sent at once after two losses without a reply: the turn's last would wait for replies.
        if (index > 0 && program.turns[index - 1]?.loses !== 'nothing') await client.echo('answered');
      },
      change: () => client.stream.destroy(),
      lose,
      left: () => (client as unknown as { commandQueue: { length: number } }).commandQueue.length,
    },
    program,
    `${count}`,
    PATIENCE_MS,
  );
  const stats = statsOf(client);
  client.disconnect();
  await new Promise((go) => setImmediate(go));
  return { ...found, stats, unhandled: unhandled.splice(0).map(String).sort() };
}

const total = { programs: 0, calls: 0, observed: 0, fast: 0 };

const PACKAGES = { 'ioredis 6': 'ioredis', 'ioredis 5': 'ioredis5', iovalkey: 'iovalkey' };

const copies = new Map<Host, CopiedHost>();

/** The host's class, and those of copies that APMs have rewritten. */
function classesOf(host: Host): Classes {
  const copy = copies.get(host) ?? copyHost(PACKAGES[host.name]);
  copies.set(host, copy);
  const rewritten = REWRITINGS.map((each) => {
    const change = { file: 'Redis.js', text: /^[\s\S]*$/, by: (text: string) => rewrite(text, each) };
    return [each, copy.load(change).Redis as Host['Redis']] as const;
  });
  return new Map([[undefined, host.Redis], ...rewritten]);
}

describePrograms({
  name: 'watched programs',
  expects: '%s: answers as a plain client does, and watchers see the same',
  cases: HOSTS.flatMap((host) =>
    // A cache takes RESP3.
    OPTIONS.filter(({ cache }) => !cache || host.name === 'ioredis 6').map(
      (options) => [`${host.name}, ${JSON.stringify(options)}`, { host, options }] as const,
    ),
  ),
  programs: watchedPrograms,
  runs: PROGRAMS,
  seed: STEADY_SEED,
  ms: 500,
  start: () => World.start(),
  stop: async (world) => {
    for (const copy of copies.values()) copy.remove();
    await world.stop();
  },
  prepare: async (world, { host, options }) => {
    unhandled = collectUncaught('unhandledRejection');
    const classes = classesOf(host);
    return [
      async (program) => {
        total.programs += 1;
        const plain = await run(world, classes, undefined, program, total.programs);
        const mine = await run(world, classes, options, program, total.programs);
        const wrong = mine.fates.flatMap(({ call, outcome, isAborted }, at) => {
          const theirs = plain.fates[at]?.outcome;
          const isExpected =
            outcome === theirs ||
            (isAborted && /AbortError/.test(outcome)) ||
            // From memory.
            (options.cache && theirs?.includes('MaxRetriesPerRequestError') && outcome.startsWith('resolved')) ||
            // The one difference of `fuseReads`.
            (options.fuseReads && theirs?.includes('WRONGTYPE') && /resolved null|called", null, null/.test(outcome));
          return isExpected ? [] : [`${call}: ${theirs} / ${outcome}`];
        });
        expect(wrong.join('\n')).toBe('');
        expect(mine.fates.length).toBe(plain.fates.length);
        expect(mine.unhandled).toEqual(plain.unhandled);
        // What is sent again of them is not what was issued.
        const isPutTogether = options.shareReads || options.fuseReads || options.cache;
        if (!isPutTogether || program.turns.every(({ loses }) => loses === 'nothing'))
          expect(difference(byEvent(plain.seen.flat()), byEvent(mine.seen.flat())) ?? '').toBe('');
        // Errors settle a step later than values, for some watchers, and which replies share a chunk is chance.
        const order = ({ settled }: typeof plain, group: string) =>
          ['resolved', 'rejected'].map((how) =>
            settled.filter((fate) => fate.group === group && fate.outcome.startsWith(how)).map(({ call }) => call),
          );
        const keepsOrder = !options.shareReads && !options.cache;
        const isOtherwise = new Set(
          plain.fates.flatMap(({ group, outcome }, at) => (outcome === mine.fates[at]?.outcome ? [] : [group])),
        );
        for (const group of new Set(plain.fates.map((fate) => fate.group)))
          if (keepsOrder && !isOtherwise.has(group) && program.turns[Number.parseInt(group, 10)]?.loses === 'nothing')
            expect(order(mine, group)).toEqual(order(plain, group));
        expect(mine.stats?.inFlight).toBe(0);
        total.calls += mine.fates.length;
        total.observed += mine.stats?.observedCommands ?? 0;
        total.fast += mine.stats?.fastCommands ?? 0;
      },
    ];
  },
});

it('many of the commands were fast, and observed', () => {
  console.log(`watched programs: ${JSON.stringify(total)}`);
  expect(total.observed).toBeGreaterThan(0);
  expect(total.fast).toBeGreaterThan(total.observed);
});
