import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type NodeView, parseNodes, serves } from './cluster-view.js';
import { type RedisServer, startRedis } from './redis-server.js';
import { HOST } from './server-process.js';

/** A node of a cluster: a server, and a plain client to administer it with. */
export interface ClusterNode {
  readonly id: string;
  readonly host: string;
  readonly port: number;
  /** `host:port`, as ioredis names its nodes. */
  readonly address: string;
  readonly server: RedisServer;
  readonly client: Redis;
}

export interface ClusterStartOptions {
  /** @default 3 */
  masters?: number;
  /** Shared out evenly. @default 3 */
  replicas?: number;
  /** Extra redis.conf-style arguments for each node. */
  args?: readonly string[];
}

const SLOTS = 16_384;
const NODE_TIMEOUT = 2_000;
const START_ATTEMPTS = 10;
const SETTLE_TIMEOUT = 30_000;
/** Slots that are in migration at a time. */
const SLOTS_AT_ONCE = 50;
/** Keys that one MIGRATE takes along. */
const KEYS_AT_ONCE = 500;

/**
 * Starts a cluster of real servers on loopback and resolves once every node sees all of it, its slots served and its
 * replicas linked. Its nodes end with this process, like any server of `startRedis`. The cluster is put together by
 * CLUSTER commands, so no `redis-cli` is needed.
 */
export async function startCluster(options: ClusterStartOptions = {}): Promise<RedisCluster> {
  const { masters = 3, replicas = 3, args = [] } = options;
  const cluster = new RedisCluster(args);
  try {
    await cluster.build(masters, replicas);
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

export class RedisCluster {
  /** The nodes that run. */
  readonly nodes: ClusterNode[] = [];
  readonly #args: readonly string[];

  constructor(args: readonly string[]) {
    this.#args = args;
  }

  /** For `new Cluster(…)`. */
  get startupNodes(): { host: string; port: number }[] {
    return this.nodes.map(({ host, port }) => ({ host, port }));
  }

  async build(masters: number, replicas: number): Promise<void> {
    const starting = Array.from({ length: masters + replicas }, async () => {
      // Known as soon as it runs, so that `stop()` finds it if another one fails to start.
      this.nodes.push(await startNode(this.#args));
    });
    const failed = (await Promise.allSettled(starting)).find(({ status }) => status === 'rejected');
    if (failed?.status === 'rejected') throw failed.reason;
    const started = [...this.nodes];
    const first = started[0] as ClusterNode;
    await Promise.all(started.map(({ client }, index) => client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)));
    await Promise.all(
      started.slice(0, masters).map(({ client }, index) => {
        const [from, to] = [share(index, masters), share(index + 1, masters) - 1];
        return client.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
      }),
    );
    for (const { client } of started.slice(1)) await client.call('CLUSTER', 'MEET', first.host, first.port);
    await this.#until('every node knows every other', () => this.#allKnowAll());
    await Promise.all(
      started.slice(masters).map(({ client }, index) => {
        const master = started[index % masters] as ClusterNode;
        return client.call('CLUSTER', 'REPLICATE', master.id);
      }),
    );
    await this.settled();
  }

  /**
   * Resolves when all nodes tell clients the same, the cluster is up and its replicas are linked and offered for reads.
   */
  async settled(): Promise<void> {
    await this.#until('all nodes agree, the cluster is up and its replicas are linked', async () => {
      const states = await Promise.all(this.nodes.map(stateOf));
      const replicas = this.nodes.filter((_, index) => states[index]?.role === 'slave');
      return states.every(
        ({ up, offered }) => up && offered === states[0]?.offered && replicas.every(({ id }) => offered.includes(id)),
      );
    });
  }

  /** Resolves when the replicas have what the masters had when this was called. */
  async replicated(): Promise<void> {
    for (const master of await this.masters()) {
      const offset = await offsetOf(master, 'master_repl_offset');
      for (const replica of await this.replicasOf(master)) {
        await this.#until(`${replica.address} has what ${master.address} has`, async () => {
          return (await offsetOf(replica, 'slave_repl_offset')) >= offset;
        });
      }
    }
  }

  async masterOf(slot: number): Promise<ClusterNode> {
    const view = await this.#viewOf(this.#anyNode());
    const found = view.find((node) => serves(node, slot));
    if (!found) throw new Error(`expected slot ${slot} to be served, it is not`);
    return this.#node(found.id);
  }

  /** The nodes that serve slots. */
  async masters(): Promise<ClusterNode[]> {
    const view = await this.#viewOf(this.#anyNode());
    return view.filter(({ ranges }) => ranges.length > 0).map(({ id }) => this.#node(id));
  }

  async replicasOf(master: ClusterNode): Promise<ClusterNode[]> {
    const view = await this.#viewOf(this.#anyNode());
    const replicas = view.filter(({ masterId, flags }) => masterId === master.id && !flags.includes('fail'));
    return replicas.map(({ id }) => this.#node(id));
  }

  async slotsOf(node: ClusterNode): Promise<number[]> {
    const view = (await this.#viewOf(node)).find(({ id }) => id === node.id);
    return (view?.ranges ?? []).flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
  }

  /** SIGKILL; the others find out by themselves. */
  async kill(node: ClusterNode): Promise<void> {
    this.nodes.splice(this.nodes.indexOf(node), 1);
    node.client.disconnect();
    await node.server.kill();
  }

  /** A master more, without slots. */
  async addNode(): Promise<ClusterNode> {
    const node = await startNode(this.#args);
    const member = this.#anyNode();
    this.nodes.push(node);
    await node.client.call('CLUSTER', 'MEET', member.host, member.port);
    await this.#until('every node knows the new one', () => this.#allKnowAll());
    await this.settled();
    return node;
  }

  /**
   * Moves slots with all their keys, live, as `redis-cli --cluster reshard` does it.
   * @param which - how many, or the very ones.
   */
  async moveSlots(from: ClusterNode, to: ClusterNode, which: number | readonly number[]): Promise<void> {
    const slots = typeof which === 'number' ? (await this.slotsOf(from)).slice(0, which) : which;
    if (typeof which === 'number' && slots.length < which) {
      throw new Error(`expected ${from.address} to serve at least ${which} slots, it serves ${slots.length}`);
    }
    const masters = await this.masters();
    for (let start = 0; start < slots.length; start += SLOTS_AT_ONCE) {
      await Promise.all(
        slots.slice(start, start + SLOTS_AT_ONCE).map(async (slot) => {
          await this.beginMove(slot, from, to);
          await this.moveKeys(slot, from, to);
          await this.#assign(slot, to, masters);
        }),
      );
    }
    await this.#ownerIsKnown(slots, to, masters);
  }

  /** Puts a slot into the state in which keys that are not there any more are asked for at `to` (ASK). */
  async beginMove(slot: number, from: ClusterNode, to: ClusterNode): Promise<void> {
    await to.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id);
    await from.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id);
  }

  /** Moves the keys of a slot, or only those named. */
  async moveKeys(slot: number, from: ClusterNode, to: ClusterNode, only?: readonly string[]): Promise<void> {
    const migrate = (keys: readonly string[]): Promise<unknown> =>
      from.client.call('MIGRATE', to.host, to.port, '', 0, 5_000, 'KEYS', ...keys);
    if (only) {
      await migrate(only);
      return;
    }
    for (;;) {
      const keys = (await from.client.call('CLUSTER', 'GETKEYSINSLOT', slot, KEYS_AT_ONCE)) as string[];
      if (keys.length === 0) return;
      await migrate(keys);
    }
  }

  /** Makes `to` the slot's owner. */
  async finishMove(slot: number, to: ClusterNode): Promise<void> {
    const masters = await this.masters();
    await this.#assign(slot, to, masters);
    await this.#ownerIsKnown([slot], to, masters);
  }

  /** The new owner is told first, so that the slot has an owner at any time. */
  async #assign(slot: number, to: ClusterNode, masters: readonly ClusterNode[]): Promise<void> {
    await to.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id);
    const others = masters.filter(({ id }) => id !== to.id);
    await Promise.all(others.map(({ client }) => client.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id)));
  }

  /**
   * Resolves when every master has heard the owner itself claim the slots. Until then, moving one of them back can
   * leave it without an owner for good, in two ways:
   *
   * - The owner of an imported slot takes the next epoch after those that it knows of (Redis cluster.c,
   *   clusterBumpConfigEpochWithoutConsensus). A node that imports the slot before it has heard of that takes the same
   *   epoch, and both then name each other as the owner.
   * - A message that the owner sent before it had the slot marks it as not claimed (owner_not_claiming_slot). Before
   *   Redis
   *   7.2.4 the mark outlasts SETSLOT, and any late claim takes the slot away from the node that has imported it.
   */
  async #ownerIsKnown(slots: readonly number[], owner: ClusterNode, masters: readonly ClusterNode[]): Promise<void> {
    const others = masters.filter(({ id }) => id !== owner.id);
    await Promise.all(others.map((master) => this.#hears(master, owner, slots)));
  }

  async #hears(master: ClusterNode, owner: ClusterNode, slots: readonly number[]): Promise<void> {
    let since = Number.POSITIVE_INFINITY;
    await this.#until(`${master.address} has heard ${owner.address} claim ${slots.length} slots more`, async () => {
      const known = (await this.#viewOf(master)).find(({ id }) => id === owner.id);
      // What is asked from now on is answered with what the owner serves now.
      if (known?.pingSent === 0) since = Math.min(since, Date.now());
      return known !== undefined && known.pongReceived > since && slots.every((slot) => serves(known, slot));
    });
  }

  /** Orderly stop; idempotent. */
  async stop(): Promise<void> {
    await Promise.all(
      this.nodes.splice(0).map(async ({ client, server }) => {
        client.disconnect();
        await server.stop();
      }),
    );
  }

  #anyNode(): ClusterNode {
    const node = this.nodes[0];
    if (!node) throw new Error('expected a cluster that runs, it was stopped');
    return node;
  }

  #node(id: string): ClusterNode {
    const node = this.nodes.find((candidate) => candidate.id === id);
    if (!node) throw new Error(`expected ${id} to be a node that runs, it was killed`);
    return node;
  }

  async #viewOf(node: ClusterNode): Promise<NodeView[]> {
    return parseNodes(String(await node.client.call('CLUSTER', 'NODES')));
  }

  async #allKnowAll(): Promise<boolean> {
    const ids = this.nodes.map(({ id }) => id);
    const views = await Promise.all(this.nodes.map((node) => this.#viewOf(node)));
    return views.every((view) => {
      const known = view.filter(({ flags }) => !flags.includes('handshake')).map(({ id }) => id);
      return ids.every((id) => known.includes(id));
    });
  }

  async #until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + SETTLE_TIMEOUT;
    while (!(await condition())) {
      if (Date.now() > deadline) {
        const pictures = this.nodes.map(async ({ client, address }) => `${address}:\n${await client.cluster('NODES')}`);
        throw new Error(`expected within ${SETTLE_TIMEOUT} ms: ${what}\n${(await Promise.all(pictures)).join('\n')}`);
      }
      await sleep(50);
    }
  }
}

async function startNode(extra: readonly string[]): Promise<ClusterNode> {
  const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT)];
  // A replica stays with its master, takes over at once, and does not wait for others that might want the same copy.
  args.push('--cluster-allow-replica-migration', 'no', '--cluster-replica-validity-factor', '0');
  // Nodes offer a replica for reads once it has received something from its master.
  args.push('--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1', '--shutdown-timeout', '0', ...extra);
  const server = await startOnAnyPort(args);
  const { host, port } = server;
  const client = new Redis({ host, port, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  client.on('error', () => {});
  const id = String(await client.cluster('MYID'));
  return { id, host, port, address: `${host}:${port}`, server, client };
}

/**
 * Below the range that systems give to outgoing connections, and so that the bus port, 10,000 above, is below it too:
 * nothing takes the ports between this look and the start but another cluster of ours, and then the next are tried.
 */
async function startOnAnyPort(args: readonly string[]): Promise<RedisServer> {
  for (let attempt = 1; ; attempt += 1) {
    const port = 10_000 + Math.floor(Math.random() * 12_000);
    if (!(await isFree(port)) || !(await isFree(port + 10_000))) continue;
    try {
      return await startRedis({ port, args });
    } catch (error) {
      if (attempt >= START_ATTEMPTS) throw error;
    }
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((settle) => {
    const probe = createServer();
    probe.once('error', () => settle(false));
    probe.listen(port, HOST, () => probe.close(() => settle(true)));
  });
}

/** Where the slots of the node at `index` of `count` begin. */
function share(index: number, count: number): number {
  return Math.round((index * SLOTS) / count);
}

async function stateOf({ client }: ClusterNode): Promise<{ role: string | undefined; up: boolean; offered: string }> {
  const [state, replication, slots] = await Promise.all([
    client.cluster('INFO'),
    client.info('replication'),
    client.cluster('SLOTS'),
  ]);
  const role = /role:(\w+)/.exec(replication)?.[1];
  const linked = role !== 'slave' || /master_link_status:up/.test(replication);
  const offered = (slots as unknown[]).map((range) => JSON.stringify(range)).sort();
  return { role, up: /cluster_state:ok/.test(String(state)) && linked, offered: offered.join('\n') };
}

async function offsetOf({ client }: ClusterNode, name: string): Promise<number> {
  const info = await client.info('replication');
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]);
}
