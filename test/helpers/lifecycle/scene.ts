import type { RedisOptions } from 'ioredis';
import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAs, type Kind } from '../beside.js';
import { cold } from '../cold.js';
import { type Client, type CoalescedClient, type Host, ready } from '../hosts.js';
import { type RedisServer, startServer } from '../redis.js';
import { describeValue, Recorder, type Transcript } from './transcript.js';

/** One run of a scenario, with plain clients or with coalesced ones. */
export interface Scene {
  readonly host: Host;
  readonly kind: Kind;
  /** A server that holds nothing when the scene begins. */
  readonly url: string;
  /** A client whose events are recorded; it connects again at once when its connection is lost. */
  client(options?: RedisOptions, from?: { url?: string; name?: string }): Client;
  /** The same, and ready. */
  ready(options?: RedisOptions, from?: { url?: string; name?: string }): Promise<Client>;
  /** A plain client whose events nobody looks at, to act on the server from outside. */
  admin(): Promise<Client>;
  /** Records what becomes of a promise; resolves when it has settled, however it did. */
  track(name: string, promise: Promise<unknown>): Promise<void>;
  /** Commands of every kind, fast ones among them, recorded under names that begin with `name`. */
  mixed(client: Client, name: string): Promise<void>;
  note(what: string, value?: unknown): void;
}

export interface Scenario {
  (scene: Scene): Promise<void>;
  /** How many promises a plain client leaves open in it. */
  open?: number;
  /** Nothing in it can take the fast path. */
  cold?: boolean;
  /** How lines begin that the story of a plain client has in some runs and not in others. */
  races?: readonly string[];
  /** Left out with versions of a host that do not have it. */
  needs?: keyof Host['features'];
  /** What the coalesced client is coalesced with. */
  coalesce?: CoalesceOptions;
}

export type Scenarios = Readonly<Record<string, Scenario>>;

export function scenario(
  settings: Pick<Scenario, 'open' | 'cold' | 'races' | 'needs' | 'coalesce'>,
  run: Scenario,
): Scenario {
  return Object.assign((scene: Scene) => run(scene), settings);
}

/** One server for the scenarios of a test file, which empty it; the next file in the process gets another one. */
let server: RedisServer | undefined;

/** To be called once, at the top of a test file that plays scenarios. */
export function startServerOfScenes(): void {
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server?.stop());
}

/** A test for each scenario and host. */
export function describeScenarios(title: string, hosts: readonly Host[], scenarios: Scenarios): void {
  describe.each(hosts)(`$name: ${title}`, (host) => {
    it.for(Object.keys(scenarios))('%s: the same as with a plain client', async (name, { skip }) => {
      const { needs } = scenarios[name] as Scenario;
      skip(needs !== undefined && !host.features[needs], `${host.name} of this version has no ${needs}`);
      await expectSame(host, scenarios[name] as Scenario);
    });
  });
}

/**
 * Plays a scenario with plain clients and then with coalesced ones, each on an empty server, and expects the same
 * events, replies, errors, order and data.
 */
export async function expectSame(host: Host, play: Scenario): Promise<Transcript> {
  if (server === undefined) throw new Error('expected startServerOfScenes() at the top of the test file');
  const plain = await record(host, 'plain', server.url, play);
  const coalesced = await record(host, 'coalesced', server.url, play);
  expect(coalesced).toEqual(plain);
  expect(plain.replies.filter((reply) => reply.endsWith('→ open'))).toHaveLength(play.open ?? 0);
  return plain;
}

async function record(host: Host, kind: Kind, url: string, play: Scenario): Promise<Transcript> {
  const recorder = new Recorder();
  const clients: Client[] = [];
  const admin = await ready(host.create(url));
  await admin.flushall();
  await admin.script('FLUSH');

  const scene: Scene = {
    host,
    kind,
    url,
    client(options = {}, from = {}) {
      const all: RedisOptions = { retryStrategy: () => 5, ...options };
      const at = from.url ?? url;
      const client = createAs(kind, host, at, all, play.coalesce);
      clients.push(client);
      recorder.watch(client, from.name ?? 'client');
      return client;
    },
    ready: (options, from) => ready(scene.client(options, from)),
    admin: async () => admin,
    track: (name, promise) => recorder.track(name, promise),
    note: (what, value) => recorder.note(what, value),
    async mixed(client, name) {
      const calls: Readonly<Record<string, Promise<unknown>>> = {
        set: client.set(`${name}:key`, 'é'),
        call: cold(client, 'APPEND', `${name}:key`, '+'),
        pipeline: client.pipeline().append(`${name}:key`, '1').llen(`${name}:key`).exec(),
        getBuffer: client.getBuffer(`${name}:key`),
        multi: client.multi().append(`${name}:key`, '2').get(`${name}:key`).exec(),
        incr: client.incr(`${name}:key`),
        eval: client.eval('return redis.call("GET", KEYS[1])', 1, `${name}:key`),
        get: client.get(`${name}:key`),
      };
      await Promise.all(Object.entries(calls).map(([call, reply]) => recorder.track(`${name} ${call}`, reply)));
    },
  };

  await play(scene);
  await recorder.settle(play.open ?? 0);
  recorder.note('data', await dataOf(admin));
  const transcript = recorder.transcript(play.races);
  if (kind === 'coalesced') expectFast(clients, play);
  for (const client of [...clients, admin]) client.disconnect();
  return transcript;
}

/** A comparison of two plain clients would prove nothing. */
function expectFast(clients: readonly Client[], { cold = false }: Scenario): void {
  const fast = clients.reduce((sum, client) => {
    const { coalescer } = client as CoalescedClient;
    return sum + (coalescer?.stats().fastCommands ?? 0);
  }, 0);
  if (cold) expect(fast).toBe(0);
  else expect(fast, 'fast commands of the coalesced client').toBeGreaterThan(0);
}

/** All keys of all databases with their contents. */
async function dataOf(admin: Client): Promise<string[]> {
  const found: string[] = [];
  for (let database = 0; database < 16; database += 1) {
    await admin.select(database);
    for (const key of (await admin.keys('*')).sort()) {
      found.push(`${database} ${key} = ${describeValue(await admin.dumpBuffer(key))}`);
    }
  }
  return found;
}
