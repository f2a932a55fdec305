import { randomBytes } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { startCluster } from '../tools/redis-cluster.js';
import { startRedis } from '../tools/redis-server.js';
import {
  type ClientOptions,
  groupOf,
  hashOf,
  keysOf,
  listOf,
  type Operation,
  valuesOf,
  type Workload,
} from './workload.js';

const SEED_BYTES = 4 * 1024 * 1024;

interface Opened {
  readonly url: string;
  /** One for each node. */
  readonly nodes: readonly Redis[];
  readonly keyspace: Redis | Cluster;
  readonly pid?: number;
  readonly stop: () => Promise<void>;
  readonly clientOptions?: ClientOptions;
}

/** The server of a run, or a cluster of them, seen from the parent: data sets, CPU, and leaving it as it was found. */
export class BenchServer {
  readonly url: string;
  readonly version: string;
  /** Every key of the run starts with it. */
  readonly prefix = `coalesce-bench:${randomBytes(4).toString('hex')}:`;
  /** What a client needs to be opened with. */
  readonly clientOptions: ClientOptions;
  readonly #nodes: readonly Redis[];
  readonly #keyspace: Redis | Cluster;
  readonly #stop: () => Promise<void>;
  readonly #seeded = new Set<string>();
  #closing: Promise<void> | undefined;

  /** The one at `REDIS_URL`, else one of our own. */
  static async open(log: (line: string) => void): Promise<BenchServer> {
    const url = process.env.REDIS_URL;
    if (url !== undefined && url !== '') return BenchServer.#single(url, async () => {}, {});
    const server = await startRedis({ log });
    return BenchServer.#single(server.url, () => server.stop(), {});
  }

  /** One of our own, whatever `REDIS_URL` says. */
  static async start(args: readonly string[], clientOptions: ClientOptions = {}, url?: string): Promise<BenchServer> {
    const server = await startRedis({ args });
    return BenchServer.#single(server.url, () => server.stop(), clientOptions, url);
  }

  static async startCluster(masters: number): Promise<BenchServer> {
    // A node that has met no other does not know its own address, and clients would not find it.
    const cluster = await startCluster({ masters, replicas: 0, args: ['--cluster-announce-ip', '127.0.0.1'] });
    const keyspace = new Cluster(cluster.startupNodes);
    const [first] = cluster.nodes;
    if (first === undefined) throw new Error('expected a cluster with nodes, it has none');
    return BenchServer.#opened({
      url: first.server.url,
      nodes: cluster.nodes.map(({ client }) => client),
      keyspace,
      stop: async () => {
        keyspace.disconnect();
        await cluster.stop();
      },
    });
  }

  static async #single(
    url: string,
    stop: () => Promise<void>,
    clientOptions: ClientOptions,
    urlOfClients = url,
  ): Promise<BenchServer> {
    const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
    let failure: Error | undefined;
    client.on('error', (error) => {
      failure ??= error;
    });
    try {
      await client.connect();
    } catch (error) {
      await stop();
      const { hostname, port } = new URL(url);
      const reason = failure ?? error;
      throw new Error(`no Redis at ${hostname}:${port || 6379}: ${reason instanceof Error ? reason.message : reason}`);
    }
    const stopBoth = async () => {
      client.disconnect();
      await stop();
    };
    return BenchServer.#opened({ url: urlOfClients, nodes: [client], keyspace: client, stop: stopBoth, clientOptions });
  }

  static async #opened(opened: Opened): Promise<BenchServer> {
    return new BenchServer(opened, versionIn((await opened.nodes[0]?.info('server')) ?? ''));
  }

  private constructor({ url, nodes, keyspace, stop, clientOptions = {} }: Opened, version: string) {
    this.url = url;
    this.version = version;
    this.clientOptions = clientOptions;
    this.#nodes = nodes;
    this.#keyspace = keyspace;
    this.#stop = stop;
  }

  /** The first node, for what only one experiment asks. */
  get admin(): Redis {
    return this.#nodes[0] as Redis;
  }

  /** Writes what the workload's reads expect. */
  async seed(workload: Workload): Promise<void> {
    const operation = workload.kind === 'burst' ? workload.operation : 'get';
    const group = groupOf(operation);
    const { data } = workload;
    const name = JSON.stringify([group, data]);
    if (group === 'write' || this.#seeded.has(name)) return;
    const keys = keysOf(this.prefix, data, operation);
    const values = valuesOf(data);
    const step = Math.max(1, Math.floor(SEED_BYTES / data.valueBytes));
    for (let first = 0; first < keys.length; first += step) {
      await Promise.all(
        keys.slice(first, first + step).map((key, offset) => this.#put(operation, key, values[first + offset]!)),
      );
    }
    this.#seeded.add(name);
  }

  /** User and system time of the server so far, all its nodes', in microseconds. */
  async cpuUs(): Promise<number> {
    const infos = await Promise.all(this.#nodes.map((node) => node.info('cpu')));
    return infos.reduce(
      (sum, info) => sum + (numberIn(info, 'used_cpu_user') + numberIn(info, 'used_cpu_sys')) * 1e6,
      0,
    );
  }

  /** A number out of INFO, summed over the nodes. */
  async info(section: string, field: string): Promise<number> {
    const infos = await Promise.all(this.#nodes.map((node) => node.info(section)));
    return infos.reduce((sum, info) => sum + numberIn(info, field), 0);
  }

  /** Removes the run's keys, and stops the server if it is ours. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#removeKeys().finally(() => this.#stop());
    return this.#closing;
  }

  async #put(operation: Operation, key: string, value: string): Promise<void> {
    switch (groupOf(operation)) {
      case 'hash':
        await this.#keyspace.hset(key, hashOf(value));
        return;
      case 'list':
        await this.#keyspace.del(key);
        await this.#keyspace.rpush(key, ...listOf(value));
        return;
      default:
        await this.#keyspace.set(key, value);
    }
  }

  async #removeKeys(): Promise<void> {
    for (const node of this.#nodes) {
      // An arm that was killed may have writes on their way: until a pass finds nothing.
      let found: number;
      do {
        found = 0;
        for await (const keys of node.scanStream({ match: `${this.prefix}*`, count: 1000 }) as AsyncIterable<
          string[]
        >) {
          // One by one: in a cluster they are in different slots.
          await Promise.all(keys.map((key) => node.unlink(key)));
          found += keys.length;
        }
      } while (found > 0);
    }
  }
}

function versionIn(info: string): string {
  const valkey = /^valkey_version:(.+)$/m.exec(info)?.[1]?.trim();
  if (valkey !== undefined) return `Valkey ${valkey}`;
  return `Redis ${/^redis_version:(.+)$/m.exec(info)?.[1]?.trim() ?? 'of unknown version'}`;
}

function numberIn(info: string, name: string): number {
  const text = new RegExp(`^${name}:(.+)$`, 'm').exec(info)?.[1];
  const value = Number(text);
  if (text === undefined || !Number.isFinite(value)) throw new Error(`expected ${name} in INFO, got ${text}`);
  return value;
}
