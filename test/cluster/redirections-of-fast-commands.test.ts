import { Cluster as Cluster6, type ClusterOptions } from 'ioredis';
import { coalesce } from 'ioredis-coalesce';
import { Cluster as Cluster5 } from 'ioredis5';
import { Cluster as ValkeyCluster } from 'iovalkey';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Outcome, outcomes, sleep, until } from '../helpers/hosts.js';
import { bulk, handshake, type Script, startScriptedServer } from '../helpers/scripted-server.js';
import { share } from '../helpers/share.js';

type ClusterClass = new (nodes: { host: string; port: number }[], options: ClusterOptions) => Cluster6;
const HOSTS = [
  { name: 'ioredis 6', Cluster: Cluster6 as unknown as ClusterClass },
  { name: 'ioredis 5', Cluster: Cluster5 as unknown as ClusterClass },
  { name: 'iovalkey', Cluster: ValkeyCluster as unknown as ClusterClass },
];

/**
 * What a node says to `get <key>`, the n-th time it is asked for that key; `there` and `here` are the nodes' addresses.
 */
type Say = (times: number, here: string, there: string) => string | undefined;
/** For each key: how the node that owns all slots answers, and how the other one does. */
type Story = Readonly<Record<string, readonly [owner: Say, other: Say]>>;

const value: Say = () => bulk('value');
const never: Say = () => undefined;
const once =
  (first: Say, then: Say): Say =>
  (times, here, there) =>
    (times === 1 ? first : then)(times, here, there);
const error =
  (message: (there: string, here: string) => string): Say =>
  (_times, here, there) =>
    `-${message(there, here)}\r\n`;
const moved = error((there) => `MOVED 1 ${there}`);
const noSlot = error((there) => `MOVED __proto__ ${there}`);
const ask = error((there) => `ASK 1 ${there}`);

const CLOSING: Story = { a: [once(() => 'close', value), value], b: [value, value] };
const REDIRECTIONS: Readonly<Record<string, Story>> = {
  'MOVED among plain replies': { a: [value, never], b: [moved, value], c: [value, never], d: [moved, value] },
  'ASK among plain replies': { a: [value, never], b: [ask, value], c: [value, never] },
  'MOVED there and back': { a: [once(moved, value), once(moved, value)], b: [value, never] },
  'MOVED without end': { a: [moved, moved], b: [value, never] },
  'MOVED to no slot': { a: [noSlot, noSlot], b: [value, never] },
  TRYAGAIN: {
    a: [
      once(
        error(() => 'TRYAGAIN later'),
        value,
      ),
      value,
    ],
    b: [value, never],
  },
  CLUSTERDOWN: {
    a: [
      once(
        error(() => 'CLUSTERDOWN Hash slot not served'),
        value,
      ),
      value,
    ],
    b: [value, never],
  },
  'errors that are no redirections': { a: [error(() => 'WRONGTYPE no'), never], b: [error(() => 'ERR x'), never] },
  'a connection that closes': CLOSING,
};

interface Ending {
  readonly story: Story;
  readonly options: ClusterOptions;
  /** What happens when the commands have been sent. */
  readonly meanwhile: (client: Cluster6) => void;
}

const SILENT: Story = { a: [never, never], b: [never, never] };
const ENDINGS: Readonly<Record<string, Ending>> = {
  'a lost connection with enableOfflineQueue off': {
    story: CLOSING,
    options: { enableOfflineQueue: false },
    meanwhile: () => {},
  },
  'disconnect() with commands in flight': { story: SILENT, options: {}, meanwhile: (client) => client.disconnect() },
  'a node that is disconnected with commands in flight': {
    story: SILENT,
    options: { retryDelayOnFailover: 0 },
    meanwhile: (client) => client.nodes()[0]?.disconnect(),
  },
  'a timeout at once, without redirections': {
    story: SILENT,
    options: { maxRedirections: 0, redisOptions: { commandTimeout: 60 } },
    meanwhile: () => {},
  },
  'a timeout after the last redirection': {
    story: { a: [ask, never] },
    options: { maxRedirections: 1, redisOptions: { commandTimeout: 60 } },
    meanwhile: () => {},
  },
};

/** The host tries these again at any node. */
const TRIED_AT_RANDOM = new Set(['MOVED to no slot', 'TRYAGAIN', 'CLUSTERDOWN', 'a connection that closes']);

describe.each(HOSTS)('$name: a Cluster of scripted nodes', (host) => {
  it.each(share(Object.entries(REDIRECTIONS), 2))('%s: as a plain Cluster', async (name, story) => {
    const random = TRIED_AT_RANDOM.has(name);
    const plain = await run(host.Cluster, story, { coalesced: false, random });
    const coalesced = await run(host.Cluster, story, { coalesced: true, random });
    expect(coalesced.outcomes).toEqual(plain.outcomes);
    expect(coalesced.asked).toEqual(plain.asked);
    expect(coalesced.fast).toBe(true);
  });

  it.each(share(Object.entries(ENDINGS), 2))('%s: as a plain Cluster', async (_name, { story, options, meanwhile }) => {
    const plain = await run(host.Cluster, story, { coalesced: false, random: true, options, meanwhile });
    const coalesced = await run(host.Cluster, story, { coalesced: true, random: true, options, meanwhile });
    expect(coalesced.outcomes).toEqual(plain.outcomes);
    expect(coalesced.asked).toEqual(plain.asked);
  });

  it('NOSCRIPT after a redirection: both nodes get the script whole, as from a plain Cluster', async () => {
    const flushed: Say = (times) => (times === 2 ? '-NOSCRIPT No matching script\r\n' : ':1\r\n');
    const asked = { plain: [] as string[], coalesced: [] as string[] };
    for (const kind of ['plain', 'coalesced'] as const) {
      const { client, owner, other } = await connect(
        host.Cluster,
        { a: [ask, flushed] },
        { coalesced: kind !== 'plain' },
      );
      client.defineCommand('one', { numberOfKeys: 1, lua: 'return 1' });
      const { one } = client as unknown as { one(this: Cluster6, key: string): Promise<number> };
      expect(await one.call(client, 'a')).toBe(1);
      expect(await one.call(client, 'a')).toBe(1);
      for (const node of [owner, other]) {
        asked[kind].push(`${node?.commands.map(([name]) => name).filter((name) => name?.startsWith('eval'))}`);
      }
    }
    expect(asked.plain).toEqual(['eval,evalsha,eval', 'eval,evalsha,eval']);
    expect(asked.coalesced).toEqual(asked.plain);
  });

  it('the rest of commandTimeout applies on the other node', async () => {
    const story: Story = { a: [value, never], b: [moved, never], c: [moved, never] };
    const options = { redisOptions: { commandTimeout: 1_000 } };
    const { outcomes: found, elapsed, late } = await run(host.Cluster, story, { coalesced: true, options });
    const timedOut = { error: expect.stringContaining('Command timed out') };
    expect(found).toMatchObject([{ value: 'value' }, timedOut, timedOut]);
    // Less would be an earlier command's timeout; more, by a whole one, a timeout begun anew at the other node.
    expect(elapsed).toBeGreaterThan(990);
    expect(late).toBe(false);
  });
});

describe.each(HOSTS)('$name: commandTimeout of a command behind a pipeline, on a node that is lost', (host) => {
  const MS = 900;

  /**
   * When the read fails, counted from when it was issued; not after a timer of 400 ms more. Earlier commands on its
   * node are `wait` ms older.
   */
  async function failsAfter(wait: number): Promise<number> {
    const lost = once(() => 'close', never);
    const story: Story = { '{x}a': [never, never], '{x}b': [never, never], '{x}c': [lost, never] };
    const { client } = await connect(host.Cluster, story, {
      coalesced: true,
      options: { redisOptions: { commandTimeout: MS }, retryDelayOnFailover: 5 },
    });
    const older = client.pipeline().get('{x}a').get('{x}b').exec();
    await sleep(wait);
    const issued = performance.now();
    const read = client.get('{x}c').catch((error: Error) => error.message);
    const late = sleep(MS + 400).then(() => 'late');
    expect(await Promise.race([read, late])).toBe('Command timed out');
    const after = performance.now() - issued;
    await older;
    return after;
  }

  it.each([
    ['in time', MS / 2],
    ['that has timed out', MS + 50],
  ])('a pipeline %s: its own, for the rest of it', async (_, wait) => {
    const after = await failsAfter(wait);
    expect(after).toBeGreaterThanOrEqual(MS - 3);
  });
});

const LATE = 1_900;

interface Run {
  readonly outcomes: readonly Outcome[];
  /** What each node was asked; or both together, where the host tries again at a random one. */
  readonly asked: readonly string[];
  readonly fast: boolean;
  readonly elapsed: number;
  /** Whether a timer of {@link LATE} ms was first: timers keep their order, however slow the machine is. */
  readonly late: boolean;
}

/** A Cluster of two scripted nodes, of which the first owns all slots. */
async function connect(
  Cluster: ClusterClass,
  story: Story,
  { coalesced, options = {} }: { coalesced: boolean; options?: ClusterOptions },
) {
  const ports: number[] = [];
  const address = (index: number) => `127.0.0.1:${ports[index]}`;
  const nodes = [0, 1].map((index) => startScriptedServer(nodeScript(story, index as 0 | 1, address)));
  const [owner, other] = await Promise.all(nodes);
  for (const node of [owner, other]) ports.push(Number(new URL(node?.url ?? '').port));
  const client = new Cluster([{ host: '127.0.0.1', port: ports[0] as number }], {
    retryDelayOnTryAgain: 5,
    retryDelayOnClusterDown: 5,
    retryDelayOnFailover: 5,
    slotsRefreshTimeout: 2_000,
    ...options,
  });
  client.on('error', () => {});
  onTestFinished(() => client.disconnect());
  const coalescer = coalesced ? coalesce(client).coalescer : undefined;
  await until(() => client.status === 'ready', 'a ready Cluster');
  // Nodes connect when they get their first command.
  await client.get('warm');
  return { client, coalescer, owner, other, address };
}

/** Gets every key of the story in one tick. */
async function run(
  Cluster: ClusterClass,
  story: Story,
  {
    coalesced,
    random = false,
    options = {},
    meanwhile = () => {},
  }: { coalesced: boolean; random?: boolean } & Partial<Omit<Ending, 'story'>>,
): Promise<Run> {
  const { client, coalescer, owner, other, address } = await connect(Cluster, story, { coalesced, options });
  const warm = coalescer?.stats().fastCommands ?? 0;
  const started = performance.now();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
  }, LATE);
  const keys = Object.keys(story);
  const replies = keys.map((key) => client.get(key));
  setTimeout(() => meanwhile(client), 50);
  const found = await outcomes(replies);
  const elapsed = performance.now() - started;
  clearTimeout(timer);
  const asked = (commands: readonly (readonly string[])[] = []) =>
    commands
      .filter(([name, key]) => name === 'asking' || (name === 'get' && key !== 'warm'))
      .map((command) => command.join(' '));
  const byNode = [asked(owner?.commands).sort(), asked(other?.commands).sort()];
  return {
    outcomes: found.map((outcome) => JSON.parse(JSON.stringify(outcome).replaceAll(/127\.0\.0\.1:\d+/g, nodeName))),
    asked: random ? byNode.flat().sort() : byNode.flatMap((list, index) => [`node ${index}`, ...list]),
    fast: coalescer?.stats().fastCommands === keys.length + warm,
    elapsed,
    late,
  };

  function nodeName(text: string): string {
    if (random) return 'a node';
    return text === address(0) ? 'owner' : 'other';
  }
}

function nodeScript(story: Story, index: 0 | 1, address: (index: number) => string): Script {
  const times = new Map<string, number>();
  return (command) => {
    const name = command[0] ?? '';
    const isScript = name.startsWith('eval');
    const key = command[isScript ? 3 : 1] ?? '';
    if (name === 'cluster') return key.toLowerCase() === 'slots' ? slots(address) : bulk('cluster_state:ok\r\n');
    if (name === 'asking') return '+OK\r\n';
    if (name !== 'get' && !isScript) return handshake(command);
    if (key === 'warm') return bulk('up');
    times.set(key, (times.get(key) ?? 0) + 1);
    return story[key]?.[index](times.get(key) as number, address(index), address(1 - index));
  };
}

/** All slots are the first node's, which has no replica; the second one is known for one slot, which no key has. */
function slots(address: (index: number) => string): string {
  const entry = (from: number, to: number, index: number) => {
    const [host = '', port] = address(index).split(':');
    return `*3\r\n:${from}\r\n:${to}\r\n*2\r\n${bulk(host)}:${port}\r\n`;
  };
  return `*2\r\n${entry(0, 16382, 0)}${entry(16383, 16383, 1)}`;
}
