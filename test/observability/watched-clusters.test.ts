/** Random programs of a Cluster under layers that come and go, over its `sendCommand` and over its nodes'. */
import calculateSlot from 'cluster-key-slot';
import fc from 'fast-check';
import { type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { expect, it } from 'vitest';
import { type ClusterNode, type RedisCluster, startCluster } from '../../tools/redis-cluster.js';
import { type CoalescedCluster, ioredis5, ioredis6, iovalkey, warm } from '../helpers/cluster/clients.js';
import { difference } from '../helpers/fidelity/canonical.js';
import { describePrograms, programsOf, STEADY_SEED } from '../helpers/fidelity/profiles.js';
import {
  byEvent,
  read,
  runWatched,
  turnOf,
  type WatchedProgram,
  watchAt,
  write,
} from '../helpers/fidelity/watched-program.js';
import { HOSTS } from '../helpers/hosts.js';
import { collectUncaught } from '../helpers/uncaught.js';

const PROGRAMS = programsOf('WATCHED', 4, 200);
const PATIENCE_MS = 10_000;
const OPTIONS: readonly CoalesceOptions[] = [{}, { shareReads: true }, { schedule: 'tick', busyPoll: false }];
const KEYS = ['a', 'b', 'ключ', '7'];

interface Program extends WatchedProgram {
  /** Whether it connects with the first turn's calls, if these are reads. */
  readonly isLazy: boolean;
}

/** Writes of a command that is sent again may meet others of its turn, and pipelines have their own way back. */
const reads = read.filter(([name]) => /^(h?get|strlen)/.test(name));
const key = fc.constantFrom('a', 'a', 'b', 'h', 'none');
const programs: fc.Arbitrary<Program> = fc.record({
  rewriting: fc.constant(undefined),
  keyPrefix: fc.constantFrom('', 'p:', '{p}'),
  maxRetriesPerRequest: fc.constant(20),
  isLazy: fc.boolean(),
  turns: fc.array(
    turnOf(
      fc.oneof(
        { weight: 6, arbitrary: read },
        { weight: 4, arbitrary: write.filter(([name]) => !/^(select|multi|exec|discard)$/.test(name)) },
      ),
      reads,
      watchAt(fc.constantFrom('class', 'class', 'nodes', 'own')),
      fc.oneof(
        fc
          .record({ kind: fc.constantFrom('view', 'move'), key })
          .map((step) => ({ loses: 'slots', step, isFirst: true })),
        fc.record({ kind: fc.constant('cut'), key }).map((step) => ({ loses: 'cut', step })),
      ) as never,
    ),
    { minLength: 1, maxLength: 5, size: 'max' },
  ),
});

let nodes: RedisCluster;
let masters: ClusterNode[];
/** By slot. */
const owners: ClusterNode[] = [];
let unhandled: Error[];
const placeOf = (name: string) => {
  const slot = calculateSlot(name);
  const from = owners[slot] as ClusterNode;
  return { slot, from, to: masters[(masters.indexOf(from) + 1) % 3] as ClusterNode };
};

let moving: ReturnType<typeof placeOf> | undefined;

/** The owner first: a node whose slot moves away takes no keys. */
async function moveBack() {
  if (moving === undefined) return;
  const { slot, from, to } = moving;
  await from.client.call('CLUSTER', 'SETSLOT', slot, 'STABLE');
  await nodes.moveKeys(slot, to, from);
  await to.client.call('CLUSTER', 'SETSLOT', slot, 'STABLE');
  moving = undefined;
}

async function reset(p: string) {
  await moveBack();
  for (const { client } of masters) await client.flushall();
  const on = (name: string) => placeOf(`${p}${name}`).from.client;
  for (const name of KEYS) await on(name).set(`${p}${name}`, `of ${name}`);
  await on('n').set(`${p}n`, 1);
  await on('h').hset(`${p}h`, { f: 'f', é: 'ü' });
}

async function run(host: typeof ioredis6, options: CoalesceOptions | undefined, program: Program, count: number) {
  const { keyPrefix: p } = program;
  await reset(p);
  const cluster = host.create(nodes, {
    lazyConnect: true,
    keyPrefix: p,
    retryDelayOnFailover: 2,
    retryDelayOnTryAgain: 2,
    clusterRetryStrategy: () => 1,
  });
  const inside = cluster as unknown as { slots: string[][]; refreshSlotsCache(done: () => void): void };
  const holder = Object.create(Object.getPrototypeOf(cluster)) as object;
  Object.setPrototypeOf(cluster, holder);
  cluster.defineCommand('pair', { numberOfKeys: 1, lua: 'return {KEYS[1], ARGV[1]}' });
  if (options !== undefined) coalesce(cluster, options);
  const attachAnew = () => {
    if (options === undefined) return;
    (cluster as unknown as CoalescedCluster).coalescer.detach();
    coalesce(cluster, options);
  };
  const settle = async () => {
    if (cluster.status === 'wait') await cluster.connect();
    for (let isWarm = false; !isWarm; ) {
      await new Promise<void>((done) => inside.refreshSlotsCache(done));
      // A node whose connection was cut may not have left yet.
      isWarm = await warm(cluster).then(
        () => cluster.nodes().length === masters.length,
        () => false,
      );
    }
  };
  const redisClass = HOSTS.find(({ name }) => name === host.name)?.Redis;
  const found = await runWatched(
    {
      client: cluster as never,
      classes: { class: holder, nodes: redisClass?.prototype as object },
      isPlain: options === undefined,
      attachAnew,
      begin: async (index) => {
        if (index === 0 && !isLazy(program, index)) await settle();
      },
      change: async (step) => {
        const place = placeOf(`${p}${step.key}`);
        if (step.kind === 'cut') {
          const { stream } = cluster.nodes().find(({ options: { port } }) => port === place.from.port) ?? {};
          stream?.destroy();
        } else if (step.kind === 'view') {
          inside.slots[place.slot] = [place.to.address];
        } else {
          moving = place;
          await nodes.beginMove(place.slot, place.from, place.to);
          await nodes.moveKeys(place.slot, place.from, place.to);
        }
      },
      lose: async () => {},
      left: () =>
        cluster
          .nodes()
          .reduce((sum, node) => sum + (node as never as { commandQueue: unknown[] }).commandQueue.length, 0),
      end: async () => {
        await settle();
        await moveBack();
      },
    },
    program,
    `${count}`,
    PATIENCE_MS,
  );
  const stats = options && (cluster as unknown as CoalescedCluster).coalescer.stats();
  cluster.disconnect();
  await new Promise((go) => setImmediate(go));
  return { ...found, stats, unhandled: unhandled.splice(0).map(String).sort() };
}

/** Whether the Cluster connects with the calls of this turn: those without keys find a node that has, or has not. */
function isLazy(program: Program, index: number): boolean {
  return index === 0 && program.isLazy && program.turns[0]?.loses === 'slots';
}

/** What layers and subscribers saw in a turn, as far as it is no chance. */
function seenIn(program: Program, index: number, lines: readonly unknown[], { shareReads }: CoalesceOptions) {
  const { loses, steps } = program.turns[index] as Program['turns'][number];
  if (loses === 'cut') return '';
  const chance = [
    // Which nodes have connected before, and how often a shared read is sent again.
    loses === 'slots' && (isLazy(program, index) || shareReads) ? /^(nodes|channel)/ : undefined,
    // The context in which a node has connected again.
    program.turns.slice(0, index).some((turn) => turn.loses === 'cut') ? /^nodes entered/ : undefined,
    // Whether replies come before subscribers go.
    steps.some((step) => step.kind === 'gap' && step.gap === 'immediate') ? /^channel (async|error)/ : undefined,
  ];
  const known = lines.filter((line) => !chance.some((each) => each?.test((line as [string])[0])));
  // Which node answers first is chance.
  return byEvent(known, loses === 'slots' ? /./ : /resolved|rejected|fulfilled|failed|async|error/);
}

const total = { programs: 0, calls: 0, observed: 0, fast: 0, differedOnce: 0 };

/**
 * Runs a program on a plain and a coalesced Cluster, whose callers must get the same.
 *
 * @returns how what layers see differs; empty if in nothing.
 */
async function compare(host: typeof ioredis6, options: CoalesceOptions, program: Program) {
  total.programs += 1;
  const plain = await run(host, undefined, program, total.programs);
  const mine = await run(host, options, program, total.programs);
  const wrong = mine.fates.flatMap(({ call, turn, outcome, isAborted }, at) => {
    const theirs = plain.fates[at]?.outcome;
    // How often a node's layers see a command when connections begin or end, and what one adds each time.
    const isChance = isLazy(program, turn) || program.turns[turn]?.loses === 'cut';
    const known = (text = '') => (isChance ? text.replace(/(~|7e)+/g, '') : text);
    const isExpected = known(outcome) === known(theirs) || (isAborted && /AbortError/.test(outcome));
    return isExpected ? [] : [`${call}: ${theirs} / ${outcome}`];
  });
  expect(wrong.join('\n')).toBe('');
  expect(mine.fates.length).toBe(plain.fates.length);
  expect(mine.unhandled).toEqual(plain.unhandled);
  expect(mine.stats?.inFlight).toBe(0);
  total.calls += mine.fates.length;
  total.observed += mine.stats?.observedCommands ?? 0;
  total.fast += mine.stats?.fastCommands ?? 0;
  const differences = [...program.turns.keys()].map((at) => {
    const [theirs, ours] = [plain, mine].map(({ seen }) => seenIn(program, at, seen[at] ?? [], options));
    return difference(theirs, ours) ?? '';
  });
  return differences.join('');
}

describePrograms({
  name: 'watched clusters',
  expects: '%s: answers as a plain Cluster does, and layers see the same',
  cases: [ioredis6, ioredis5, iovalkey].flatMap((host) =>
    OPTIONS.map((options) => [`${host.name}, ${JSON.stringify(options)}`, { host, options }] as const),
  ),
  programs,
  runs: PROGRAMS,
  seed: STEADY_SEED,
  ms: 2_000,
  start: async () => {
    nodes = await startCluster({ masters: 3, replicas: 0 });
    masters = await nodes.masters();
    for (const node of masters) for (const slot of await nodes.slotsOf(node)) owners[slot] = node;
  },
  stop: () => nodes.stop(),
  prepare: async (_, { host, options }) => {
    unhandled = collectUncaught('unhandledRejection');
    return [
      async (program) => {
        const once = await compare(host, options, program);
        if (once === '') return;
        // What is still chance differs once; a fault does each time. That holds for what is seen alone.
        expect(await compare(host, options, program)).toBe('');
        total.differedOnce += 1;
        console.log(`differed once: ${once}`);
      },
    ];
  },
});

it('many of the commands were fast, and observed', () => {
  console.log(`watched clusters: ${JSON.stringify(total)}`);
  expect(total.observed).toBeGreaterThan(0);
  expect(total.fast).toBeGreaterThan(total.observed);
  expect(total.differedOnce).toBeLessThanOrEqual(1 + total.programs / 100);
});
