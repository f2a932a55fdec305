import type { RedisOptions } from 'ioredis';
import { type Coalesced, type CoalesceOptions, type CoalescerStats, coalesce } from 'ioredis-coalesce/coalesce';
import { type Client, type Host, sleep, until } from '../hosts.js';
import { startServer, uniquePrefix } from '../redis.js';
import { HostileProxy } from './proxy.js';
import { type Random, seeded } from './random.js';
import { newTally, type Tally } from './tally.js';
import { Worker } from './worker.js';

/** Something that goes wrong between a client and a server, again and again. */
export interface Scenario {
  readonly name: string;
  readonly client?: RedisOptions;
  /** Kinds of errors that callers must meet, of a plain client and of a coalesced one. */
  readonly errors: readonly string[];
  /** Kinds that they may meet, depending on what was in flight at that moment; `why` says how. */
  readonly possibleErrors?: { readonly kinds: readonly string[]; readonly why: string };
  /** Whether connections break. */
  readonly reconnects: boolean;
  readonly losesData?: boolean;
  /** That the host itself leaves commands open; its workers go on after this time. */
  readonly leavesOpen?: { readonly patience: number };
  /** Makes it go wrong once, or sets it up to go on; called until the time is up. */
  strike(stage: Stage): Promise<void>;
  /** Puts right what is still wrong after the last strike. */
  heal?(stage: Stage): Promise<void>;
}

/** Where a scenario plays. */
export interface Stage {
  readonly proxy: HostileProxy;
  readonly random: Random;
  /** Waits until `count` more replies have come: a fixed time would be too short on a busy machine. */
  replies(count: number): Promise<void>;
  /** A second client, on no proxy, for commands to the server. */
  readonly admin: Client;
  /** The port of the server that the clients are meant to reach. */
  readonly port: number;
  /** Kills the server and starts one on its port. */
  restart(): Promise<void>;
  /** The port of a second server, started when first asked for. */
  second(): Promise<number>;
  /** A plain client of the server on a port. */
  adminOf(port: number): Client;
}

export interface RunOptions {
  readonly host: Host;
  readonly kind: 'plain' | 'coalesced' | 'corked';
  readonly ms: number;
  readonly seed: number;
  /** Of the coalesced client. */
  readonly coalesce?: CoalesceOptions | undefined;
  /** @default 100 */
  readonly workers?: number;
}

export interface Run extends Tally {
  readonly reconnects: number;
  readonly strikes: number;
  /** Not of a plain client. */
  readonly stats: CoalescerStats | undefined;
}

/** A new replica need not wait for others. */
const SERVER_ARGS = ['--repl-diskless-sync-delay', '0'];

/** How long the last replies may take once nothing is wrong any more. */
const LAST_REPLIES_MS = 20_000;
/** How long a strike waits for replies, which may have stopped for good. */
const REPLIES_MS = 2_000;
/** Fewer show nothing. */
const LEAST_REPLIES = 300;

export async function run(scenario: Scenario, options: RunOptions): Promise<Run> {
  const { host, kind, ms, seed, workers = 100 } = options;
  const random = seeded(seed);
  let server = await startServer({ args: SERVER_ARGS });
  const admins = new Map<number, Client>();
  const adminOf = (port: number): Client => {
    const known = admins.get(port);
    if (known) return known;
    const admin = new host.Redis(`redis://127.0.0.1:${port}`, { retryStrategy: () => 10 });
    admin.on('error', () => {});
    admins.set(port, admin);
    return admin;
  };
  let second: Awaited<ReturnType<typeof startServer>> | undefined;
  const tally = newTally();
  const proxy = await HostileProxy.start(server.port, random);
  const stage: Stage = {
    proxy,
    random,
    async replies(count) {
      const enough = tally.replies + count;
      const deadline = performance.now() + REPLIES_MS;
      while (tally.replies < enough && performance.now() < deadline) await sleep(2);
    },
    admin: adminOf(server.port),
    port: server.port,
    async restart() {
      await server.kill();
      server = await startServer({ port: server.port, args: SERVER_ARGS });
    },
    async second() {
      second ??= await startServer({ args: SERVER_ARGS });
      return second.port;
    },
    adminOf,
  };
  const client = new host.Redis(proxy.url, {
    retryStrategy: () => 10,
    // What is hard on callers is the scenario's choice; a time of bad luck is not.
    maxRetriesPerRequest: null,
    ...scenario.client,
  });
  if (kind !== 'plain') coalesce(client, kind === 'corked' ? { fastPath: false } : options.coalesce);
  let reconnects = 0;
  client.on('reconnecting', () => void reconnects++);
  client.on('error', () => {});

  try {
    // Not by `once()`, which takes an error for the end: on a busy machine a short `commandTimeout` hits handshakes
    // too.
    await until(() => client.status === 'ready', 'a ready client', LAST_REPLIES_MS);
    let stopped = false;
    let strikes = 0;
    const patience = scenario.leavesOpen?.patience;
    const losesData = scenario.losesData ?? false;
    const prefix = uniquePrefix('hostile');
    const common = { client, random, tally, prefix, losesData, patience, reconnects: () => reconnects };
    const working = Promise.all(
      Array.from({ length: workers }, (_, index) => new Worker(index, common).run(() => stopped)),
    );
    const deadline = performance.now() + ms;
    do {
      await scenario.strike(stage);
      strikes += 1;
      // What the first strike was to bring about may need longer than that on a busy machine.
    } while (performance.now() < deadline || !(await met(scenario, tally, reconnects, deadline)));
    stopped = true;
    proxy.faults = {};
    await scenario.heal?.(stage);
    await Promise.race([working, sleepUnref(LAST_REPLIES_MS)]);
    const stats = kind === 'plain' ? undefined : (client as Client & Coalesced).coalescer.stats();
    // What is open is rejected below, as the client's end has it.
    const errors = new Map(tally.errors);
    return { ...tally, errors, reconnects, strikes: strikes + proxy.strikes, stats };
  } finally {
    client.disconnect();
    for (const admin of admins.values()) admin.disconnect();
    await proxy.close();
    await server.stop();
    await second?.stop();
  }
}

/** Whether callers met what they must meet; not waited for without end. */
async function met(scenario: Scenario, tally: Tally, reconnects: number, deadline: number): Promise<boolean> {
  const missing =
    tally.replies < LEAST_REPLIES ||
    scenario.errors.some((kind) => !tally.errors.has(kind)) ||
    (scenario.reconnects && reconnects === 0);
  if (!missing || performance.now() > deadline + LAST_REPLIES_MS) return true;
  await sleep(10);
  return false;
}

function sleepUnref(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}
