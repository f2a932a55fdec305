/**
 * Random programs under `maxPending` and `maxInFlight`, on a client and on a Cluster: every call settles, as on a plain
 * client or with the documented refusal; nothing is counted afterwards, and the bounds are those that were set.
 */
import { once } from 'node:events';
import calculateSlot from 'cluster-key-slot';
import fc from 'fast-check';
import { CODES, type CoalesceOptions, type Coalescer } from 'ioredis-coalesce/coalesce';
import { expect, it } from 'vitest';
import { type ClusterNode, type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import * as clusters from '../helpers/cluster/clients.js';
import { cold } from '../helpers/cold.js';
import { canonical } from '../helpers/fidelity/canonical.js';
import { describePrograms, programsOf } from '../helpers/fidelity/profiles.js';
import {
  type Client,
  HOSTS,
  LONG_ENOUGH,
  type Outcome,
  outcomes,
  outcomesWithin,
  ready,
  until,
} from '../helpers/hosts.js';
import { type RedisServer, redisUrl, startServer } from '../helpers/redis.js';
import { share } from '../helpers/share.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings('COALESCE_WARN_FUSE');

const PROGRAMS = programsOf('BOUNDED', 4);
/** What a program is followed by. */
const CALLS_AFTERWARDS = 100;

const TAGS = ['{one}', '{two}', '{drei}'] as const;
const KEYS = TAGS.flatMap((tag) => ['a', 'b', 'é'].map((name) => `${tag}${name}`));
const LUA = "return redis.call('get', KEYS[1])";

type Reading = 'get' | 'getBuffer' | 'cold' | 'callback' | 'timed' | 'aborted' | 'script' | 'scriptOfHost' | 'strlen';
type Call =
  | { readonly kind: Reading | 'set'; readonly key: string }
  /** `reads` that follow one write, unless it only reads or the turn may lose its connection. */
  | {
      readonly kind: 'pipeline' | 'coldPipeline' | 'multi' | 'single';
      readonly tag: string;
      readonly reads: number;
      readonly onlyReads: boolean;
    }
  | { readonly kind: 'mget'; readonly tag: string };
/** What happens before the calls of a turn; `begin`, `keys` and `view` are of a Cluster. */
type Event = 'nothing' | 'scripts' | 'offline' | 'begin' | 'keys' | 'view';
interface Turn {
  readonly before: Event;
  readonly tag: (typeof TAGS)[number];
  readonly calls: readonly Call[];
  readonly loses: boolean;
  /** Whether the next turn waits until all is answered. */
  readonly waits: boolean;
}

const key = fc.constantFrom(...KEYS, ...KEYS.slice(0, 3));
const tag = fc.constantFrom(...TAGS, TAGS[0]);
const call: fc.Arbitrary<Call> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constantFrom<Reading>('get', 'get', 'getBuffer', 'strlen'), key }) },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constantFrom<Reading>('cold', 'callback', 'timed', 'aborted', 'script', 'scriptOfHost'),
      key,
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('set' as const), key }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('pipeline' as const, 'coldPipeline' as const, 'multi' as const, 'single' as const),
      tag,
      reads: fc.integer({ min: 1, max: 5 }),
      onlyReads: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('mget' as const), tag }) },
);
const programs = fc.array(
  fc.record<Turn>({
    before: fc.oneof(
      { weight: 5, arbitrary: fc.constant<Event>('nothing') },
      { weight: 4, arbitrary: fc.constantFrom<Event>('scripts', 'offline', 'begin', 'keys', 'view') },
    ),
    tag: fc.constantFrom(...TAGS),
    calls: fc.array(call, { minLength: 1, maxLength: 20, size: 'max' }),
    loses: fc.integer({ min: 0, max: 4 }).map((number) => number === 0),
    waits: fc.boolean(),
  }),
  { minLength: 1, maxLength: 5, size: 'max' },
);

type Bounded = Client & {
  readonly coalescer?: Coalescer;
  readOf(key: string, ...more: unknown[]): Promise<unknown>;
};

/** Where the programs run: both clients on the same servers, with keys of their own. */
interface World {
  /** The servers' own clients. */
  administer(command: [string, ...string[]]): Promise<unknown>;
  apply(event: Event, tag: string, clients: readonly Bounded[]): Promise<void>;
  /** Whether replies about keys of this slot may come out of order. */
  moves(key: string): boolean;
  reset(): Promise<void>;
}

/** Both clients' keys. */
const PREFIXES = ['plain:', 'bounded:'] as const;

async function fill(set: (key: string, value: string) => Promise<unknown>): Promise<void> {
  for (const prefix of PREFIXES) await Promise.all(KEYS.map((each) => set(`${prefix}${each}`, `${each}#0`)));
}

class SingleWorld implements World {
  private constructor(
    readonly server: RedisServer,
    readonly admin: Client,
  ) {}

  static async start(): Promise<SingleWorld> {
    const server = await startServer();
    return new SingleWorld(server, new (HOSTS[0] as (typeof HOSTS)[number]).Redis(server.url, {}));
  }

  administer = (command: [string, ...string[]]) => this.admin.call(...command);
  apply = async () => {};
  moves = () => false;
  reset = () => fill((name, value) => this.admin.set(name, value));

  async stop(): Promise<void> {
    this.admin.disconnect();
    await this.server.stop();
  }
}

class ClusterWorld implements World {
  readonly #moving = new Map<string, { from: ClusterNode; to: ClusterNode }>();
  readonly #oldViews = new Set<string>();

  private constructor(
    readonly nodes: RedisCluster,
    readonly masters: readonly ClusterNode[],
    readonly owners: ReadonlyMap<string, ClusterNode>,
  ) {}

  static async start(): Promise<ClusterWorld> {
    const nodes = await startCluster({ masters: 3, replicas: 3 });
    const owners = new Map<string, ClusterNode>();
    for (const each of TAGS) owners.set(each, await nodes.masterOf(calculateSlot(each)));
    return new ClusterWorld(nodes, await nodes.masters(), owners);
  }

  async administer(command: [string, ...string[]]): Promise<void> {
    for (const { client } of this.nodes.nodes) await client.call(...command);
  }

  async apply(event: Event, of: string, clients: readonly Bounded[]): Promise<void> {
    // A replica does not know that a slot moves, and plain clients do not find it again after an old view.
    if (clients.some(readsAtReplicas)) return;
    const slot = calculateSlot(of);
    const from = this.owners.get(of) as ClusterNode;
    const to = this.masters[(this.masters.indexOf(from) + 1) % this.masters.length] as ClusterNode;
    if (event === 'view') {
      this.#oldViews.add(of);
      for (const client of clients) (client as unknown as { slots: string[][] }).slots[slot] = [to.address];
    } else if (event === 'begin' && !this.#moving.has(of)) {
      this.#moving.set(of, { from, to });
      await this.nodes.beginMove(slot, from, to);
    } else if (event === 'keys' && this.#moving.has(of)) {
      await this.nodes.moveKeys(
        slot,
        from,
        to,
        PREFIXES.map((prefix) => `${prefix}${of}a`),
      );
    }
  }

  moves = (name: string) => [...this.#moving.keys(), ...this.#oldViews].some((each) => name.startsWith(each));

  async reset(): Promise<void> {
    for (const [of, { from, to }] of this.#moving) {
      for (const { client } of [from, to]) await client.call('CLUSTER', 'SETSLOT', calculateSlot(of), 'STABLE');
    }
    this.#moving.clear();
    this.#oldViews.clear();
    for (const { client } of this.masters) await client.flushall();
    await fill((name, value) => {
      const owner = this.owners.get(/\{.*\}/.exec(name)?.[0] ?? '') as ClusterNode;
      return owner.client.set(name, value);
    });
    await this.nodes.replicated();
  }

  stop = () => this.nodes.stop();
}

interface Fate {
  readonly call: Call;
  readonly loses: boolean;
  /** Whether other values than that of the last write may be read, and of a pipeline other errors. */
  readonly isLoose: boolean;
  /** Whether more commands than `maxPending` await the reply of one node, although none has been sent again. */
  isBeyond: boolean;
  /** The value that each write of the call sets. */
  readonly written: string;
  outcome: Outcome;
}

const isWriting = (call: Call) => call.kind === 'set' || ('onlyReads' in call && !call.onlyReads);
const keysOf = (call: Call) => ('key' in call ? [call.key] : ['a', 'b', 'é'].map((name) => `${call.tag}${name}`));

/** The nodes of a Cluster, or the client itself. */
const connectionsOf = (client: Bounded) =>
  (client.isCluster ? (client as unknown as clusters.ClusterClient).nodes('all') : [client]) as Client[];

const readsAtReplicas = (client: Bounded) =>
  client.isCluster && (client as unknown as clusters.ClusterClient).options.scaleReads === 'slave';

/**
 * With `fuseReads`, the first GET of a connection has a probe with it. With a cache, a read has CLIENT CACHING and PTTL
 * with it, and a command behind it was admitted before it was sent.
 */
function isBeyondBound(client: Bounded): boolean {
  const { cache, fuseReads, maxPending = Number.POSITIVE_INFINITY } = client.coalescer?.options ?? {};
  const more = (fuseReads ? 1 : 0) + (cache ? 3 : 0);
  return connectionsOf(client).some(({ commandQueue }) => commandQueue.length > maxPending + more);
}

/** Issues the calls of a program on both clients, turn by turn. */
async function run(world: World, clients: readonly Bounded[], program: readonly Turn[]): Promise<Fate[][]> {
  const fates: Fate[][] = clients.map(() => []);
  const open: Promise<unknown>[][] = clients.map(() => []);
  let writes = 0;
  /** After NOSCRIPT, a script is sent again, behind what was called later. */
  let flushed = false;
  /** A Cluster sends again, one by one, what was written to a connection that is about to be lost. */
  let lost = false;
  /** Whether commands may be sent again, or the rest of a transaction although there is no room. */
  let mayExceed = program.some(({ calls }) => calls.some(({ kind }) => kind === 'single'));
  const settled = () =>
    Promise.all(
      clients.map(async (_, at) => {
        const found = await outcomesWithin(LONG_ENOUGH, open[at] as Promise<unknown>[]);
        for (const [index, outcome] of found.entries()) (fates[at]?.[index] as Fate).outcome = outcome;
      }),
    );
  for (const client of clients) {
    for (const each of TAGS) await client.readOf(`${each}a`);
  }
  for (const { before, tag: of, calls, loses, waits } of program) {
    if (before === 'scripts') {
      await settled();
      flushed = true;
      await world.administer(['SCRIPT', 'FLUSH']);
    } else if (before !== 'nothing') {
      await settled();
      await world.apply(before, of, clients);
    }
    if (loses) await settled();
    lost ||= loses || before === 'offline';
    mayExceed ||= loses || before !== 'nothing';
    const first = writes;
    for (const [at, client] of clients.entries()) {
      writes = first;
      if (before === 'offline') {
        const closed = once(client, 'close');
        client.disconnect(true);
        await closed;
      }
      const controllers: AbortController[] = [];
      for (const call of calls) {
        writes += 1;
        const moves = keysOf(call).some((each) => world.moves(each));
        const isLate = (lost && client.isCluster) || readsAtReplicas(client);
        const isLoose = loses || moves || isLate || (flushed && call.kind.startsWith('script'));
        // A slot that moves answers TRYAGAIN to several keys, and a Cluster sends no pipeline again.
        const issued =
          (moves || (lost && client.isCluster)) && !('key' in call)
            ? ({ kind: 'get', key: `${call.tag}a` } as const)
            : call;
        const fate: Fate = { call: issued, loses, isLoose, isBeyond: false, written: `#${writes}`, outcome: 'open' };
        fates[at]?.push(fate);
        const isRead = loses && issued.kind === 'set';
        const made = isRead ? client.get(issued.key) : make(client, issued, `#${writes}`, !loses, controllers);
        // Looked at later.
        made.catch(() => {});
        open[at]?.push(made);
        fate.isBeyond = !mayExceed && isBeyondBound(client);
      }
      for (const controller of controllers) controller.abort();
      if (loses) for (const node of connectionsOf(client)) node.stream?.destroy();
    }
    if (loses || waits || before === 'offline') await settled();
    else await new Promise((resolve) => setImmediate(resolve));
  }
  await settled();
  return fates;
}

function make(
  client: Bounded,
  call: Call,
  written: string,
  keepsConnection: boolean,
  controllers: AbortController[],
): Promise<unknown> {
  const mayWrite = keepsConnection && isWriting(call);
  if (!('key' in call)) {
    const [first = '', ...others] = keysOf(call);
    if (call.kind === 'mget') return client.mget(first, ...others);
    if (call.kind === 'single') {
      // Its commands would be sent to several nodes of a Cluster, and again one by one after a lost connection.
      if (client.isCluster || !keepsConnection) return client.get(first);
      const commands: Promise<unknown>[] = [client.multi({ pipeline: false })];
      if (mayWrite) commands.push(client.set(first, `${first}${written}`));
      for (let read = 0; read < call.reads; read += 1) commands.push(client.get(first));
      return Promise.all([...commands, client.exec()]).then((replies) =>
        (replies.at(-1) as unknown[][]).slice(mayWrite ? 1 : 0).map(([, value]) => value),
      );
    }
    const recorded = call.kind === 'multi' ? client.multi() : client.pipeline();
    if (mayWrite) recorded.set(first, `${first}${written}`);
    for (let read = 0; read < call.reads; read += 1) recorded.get(first);
    // A callback makes it a command of the host's.
    if (call.kind === 'coldPipeline') recorded.get(first, () => {});
    return (recorded.exec() as Promise<[unknown, unknown][]>)
      .then((replies) =>
        replies.slice(mayWrite ? 1 : 0).map(([error, value]) => (error === null ? value : Promise.reject(error))),
      )
      .then((all) => Promise.all(all));
  }
  const { kind, key: name } = call;
  const view = (options: { timeout?: number; signal?: AbortSignal }) =>
    (client.coalescer?.withOptions(options) ?? client) as unknown as Client;
  switch (kind) {
    case 'set':
      return client.set(name, `${name}${written}`);
    case 'cold':
      return cold(client, 'get', name);
    case 'callback':
      return new Promise((resolve, reject) => {
        client.get(name, (error, value) => (error ? reject(error) : resolve(value)));
      });
    case 'timed':
      return view({ timeout: 10 * LONG_ENOUGH }).get(name);
    case 'aborted': {
      const controller = new AbortController();
      controllers.push(controller);
      return view({ signal: controller.signal }).get(name);
    }
    case 'script':
      return client.readOf(name);
    case 'scriptOfHost':
      return client.readOf(name, new Date(0));
    default:
      return client[kind](name);
  }
}

const isRefusal = (outcome: Outcome) =>
  typeof outcome === 'object' && 'error' in outcome && /maxPending/.test(outcome.error);
const isAborted = (outcome: Outcome) =>
  typeof outcome === 'object' && 'error' in outcome && /abort/i.test(outcome.error);

/** What is wrong with the outcomes of a client's calls, if those that were refused have not written. */
function wrongOf(fates: readonly Fate[], mayRefuse: boolean, client: Bounded): string[] {
  const values = new Map(KEYS.map((each) => [each, [`${each}#0`]]));
  const found: string[] = [];
  for (const fate of fates) {
    const { call, outcome, loses, isLoose, written } = fate;
    const [first = '', ...others] = keysOf(call);
    const wrong = (what: string) => void found.push(`${canonical(call)}: ${what}, not ${canonical(outcome)}`);
    if (fate.isBeyond) wrong('more than maxPending await their reply');
    if (isRefusal(outcome)) {
      if (!mayRefuse || (call.kind === 'single' && !loses && !client.isCluster)) wrong('not refused');
      continue;
    }
    if (isWriting(call) && !loses && (call.kind !== 'single' || !client.isCluster)) {
      values.get(first)?.push(`${first}${written}`);
    }
    if (call.kind === 'aborted' && client.coalescer !== undefined && isAborted(outcome)) continue;
    if (typeof outcome !== 'object' || !('value' in outcome)) wrong('a value');
    else if (call.kind !== 'strlen' && (call.kind !== 'set' || loses)) {
      const read = [outcome.value].flat(2).map((value) => (Buffer.isBuffer(value) ? value.toString() : value));
      for (const [at, value] of read.entries()) {
        const all = values.get(call.kind === 'mget' ? ([first, ...others][at] ?? '') : first) as string[];
        const isRight = isLoose ? String(value).startsWith(String(all[0]).slice(0, -1)) : value === all.at(-1);
        if (!isRight) wrong(`${all.at(-1)}`);
      }
    }
  }
  return found;
}

type Attached = { readonly inFlightBound: { readonly current: number } };
const MARK = Symbol.for('ioredis-coalesce.coalescer');

/** Nothing is counted, the next calls work, and the bounds are those that were set. */
async function expectAsBefore(
  client: Bounded,
  { maxPending = Number.POSITIVE_INFINITY }: CoalesceOptions,
  lost: boolean,
) {
  const handle = client.coalescer as Coalescer;
  const pending = () =>
    [client, ...connectionsOf(client)]
      .flatMap((each) => [each.commandQueue as unknown, (each as unknown as { offlineQueue?: unknown }).offlineQueue])
      .reduce((sum: number, queue) => sum + ((queue as { length: number } | undefined)?.length ?? 0), 0);
  // The callers of commands in flight may have aborted them.
  await until(() => pending() === 0, 'no command is in a queue');
  expect(handle.stats()).toMatchObject({ inFlight: 0, queued: 0 });
  const atOnce = Math.min(maxPending, 20);
  const sets = (count: number) =>
    outcomes(Array.from({ length: count }, (_, index) => client.set(`{one}after${index}`, index)));
  for (let called = 0; called < CALLS_AFTERWARDS; called += atOnce) {
    expect(await sets(atOnce)).toEqual(Array(atOnce).fill({ value: 'OK' }));
  }
  if (maxPending < 100) expect((await sets(maxPending + 1)).filter(isRefusal)).toHaveLength(1);
  const { inFlightBound } = (client as unknown as Record<symbol, Attached>)[MARK] as Attached;
  const { maxInFlight } = handle.options;
  // After lost connections it is lower, until enough calls have waited for room.
  if (lost && (maxInFlight > 100 || maxPending <= maxInFlight)) return;
  for (let round = 0; lost && inFlightBound.current < maxInFlight && round < 100; round += 1) await sets(atOnce);
  expect(inFlightBound.current).toBe(maxInFlight);
}

const OPTIONS: readonly CoalesceOptions[] = [
  { maxPending: 10_000, maxInFlight: 5_000 },
  { maxPending: 10_000, shareReads: true, fuseReads: true },
  { maxInFlight: 1 },
  { maxPending: 10_000, maxInFlight: 3, shareReads: true },
  { maxPending: 5, maxInFlight: 2 },
  { maxPending: 3, shareReads: true, fuseReads: true },
  { maxPending: 8, maxInFlight: 3, splitKeys: true, maxBatchSize: 2 },
  { maxPending: 1 },
  { maxPending: 6, cache: true },
  { maxPending: 10_000, maxInFlight: 4, cache: true },
];

const cases = HOSTS.flatMap((host) =>
  (['client', 'Cluster', 'replicas'] as const).flatMap((kind) =>
    OPTIONS.filter(
      ({ cache, splitKeys }) => (!cache || host.name === 'ioredis 6') && (!splitKeys || kind !== 'client'),
    ).map((options) => [`${host.name}, ${kind}, ${JSON.stringify(options)}`, { host, kind, options }] as const),
  ),
);

describePrograms({
  name: 'bounded programs',
  expects: 'calls under bounds: %s',
  cases: share(cases, 8),
  programs,
  runs: PROGRAMS,
  start: async () => ({ single: await SingleWorld.start(), cluster: await ClusterWorld.start() }),
  stop: async ({ single, cluster }) => {
    await single.stop();
    await cluster.stop();
  },
  prepare: async ({ single, cluster }, { host, kind, options }) => {
    const connecting = {
      maxRetriesPerRequest: null,
      retryStrategy: () => 1,
      protocol: (options.cache ? 3 : 2) as 2 | 3,
    };
    const create = async (of: 'plain' | 'bounded') => {
      const keyPrefix = `${of}:`;
      if (kind === 'client') {
        const own = { ...connecting, keyPrefix };
        const { url } = single.server;
        return ready(of === 'plain' ? host.create(url, own) : host.createCoalesced(url, own, options));
      }
      const clusterHost = clusters.CLUSTER_HOSTS.find(({ name }) => name === host.name) as clusters.ClusterHost;
      const own = {
        redisOptions: connecting,
        keyPrefix,
        scaleReads: kind === 'replicas' ? ('slave' as const) : ('master' as const),
        clusterRetryStrategy: () => 1,
        retryDelayOnTryAgain: 5,
        retryDelayOnFailover: 5,
        retryDelayOnMoved: 0,
      };
      const { nodes } = cluster;
      return clusters.warm(
        of === 'plain' ? clusterHost.create(nodes, own) : clusterHost.createCoalesced(nodes, own, options),
      );
    };
    const clients = (await Promise.all([create('plain'), create('bounded')])) as unknown as [Bounded, Bounded];
    for (const client of clients) client.defineCommand('readOf', { numberOfKeys: 1, lua: LUA, readOnly: true });
    const world: World = kind === 'client' ? single : cluster;
    const mayRefuse = (options.maxPending ?? 10_000) < 10_000;
    const bounded = clients[1].coalescer as Coalescer;
    let lost = false;
    let refused = 0;
    const compare = async (program: readonly Turn[]) => {
      await world.reset();
      // A cache hears of the keys that others have written.
      if (options.cache) bounded.cache?.clear();
      const before = bounded.stats().refusedCalls;
      const [theirs = [], mine = []] = await run(world, clients, program);
      lost ||= program.some(({ loses, before: event }) => loses || event === 'offline');
      expect(wrongOf(theirs, false, clients[0]).join('\n'), 'plain').toBe('');
      expect(wrongOf(mine, mayRefuse, clients[1]).join('\n')).toBe('');
      if (!mayRefuse) {
        const isSame = ({ call, isLoose, outcome }: Fate, at: number) =>
          isLoose || call.kind === 'aborted' || canonical(outcome) === canonical(theirs[at]?.outcome);
        expect(mine.filter((fate, at) => !isSame(fate, at))).toEqual([]);
      }
      const count = mine.filter(({ outcome }) => isRefusal(outcome)).length;
      // The signal of a call that the client would send may abort it once it has been refused.
      const aborted = mine.filter(({ outcome }) => isAborted(outcome)).length;
      const counted = bounded.stats().refusedCalls - before;
      if (!options.splitKeys) expect(counted >= count && counted <= count + aborted, `${counted} refused`).toBe(true);
      refused += count;
      await until(() => clients.every(({ status }) => status === 'ready'), 'the clients are ready');
      await expectAsBefore(clients[1], options, lost);
    };
    const end = () => {
      console.log(`${PROGRAMS} programs, ${refused} refused calls`);
      if (mayRefuse) expect(bounded.stats().refusedCalls).toBeGreaterThan(0);
    };
    return [compare, end];
  },
});

it('the error of a refused call is the documented one', async () => {
  const client = (await ready(
    (HOSTS[0] as (typeof HOSTS)[number]).createCoalesced(redisUrl(), {}, { maxPending: 1 }),
  )) as Client;
  const [, second] = await Promise.allSettled([client.get('a'), client.get('a')]);
  expect(second).toMatchObject({ status: 'rejected', reason: { code: CODES.PENDING } });
});
