import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { startCluster } from '../../tools/redis-cluster.js';
import { startRedis } from '../../tools/redis-server.js';
import { groupOf, hashOf, keysOf, listOf, valuesOf } from '../variants/data.js';
import { operationOf } from '../variants/exercise.js';
import type { OperationId } from '../variants/operations.js';
import type { ClientOptions, Workload } from '../variants/protocol.js';

const SEED_BYTES = 4 * 1024 * 1024;
/** Longer than any run, after which it would be left behind. */
const EXPIRE_AFTER_S = 6 * 3600;
const WRITE_EVERY_MS = 1;
const MOST_LATE_S = 0.02;

interface Opened {
  readonly url: string;
  /** One for each node. */
  readonly nodes: readonly Redis[];
  readonly keyspace: Redis | Cluster;
  readonly stop: () => Promise<void>;
  /** Of a server that was started here. */
  readonly pid?: number;
  readonly clientOptions?: ClientOptions;
}

export interface StartOptions {
  readonly args?: readonly string[];
  readonly clientOptions?: ClientOptions;
  /** The URL for clients, where that is another one. */
  readonly url?: string;
}

/** The server of a run, or a cluster of them, seen from the parent: data sets, CPU, and leaving it as it was found. */
export class BenchServer {
  readonly url: string;
  readonly version: string;
  readonly pid: number | undefined;
  /** Every key of the run starts with it. */
  readonly prefix: string;
  /** What a client needs to be opened with. */
  readonly clientOptions: ClientOptions;
  readonly #nodes: readonly Redis[];
  readonly #keyspace: Redis | Cluster;
  readonly #stop: () => Promise<void>;
  readonly #seeded = new Set<string>();
  #closing: Promise<void> | undefined;

  /** The one at `url`, else one of our own. */
  static async open(
    url: string | undefined,
    { log, prefix }: { log?: (line: string) => void; prefix?: string } = {},
  ): Promise<BenchServer> {
    if (url !== undefined && url !== '') return BenchServer.#single(url, { stop: async () => {} }, prefix);
    const server = await startRedis(log === undefined ? {} : { log });
    return BenchServer.#single(server.url, { stop: () => server.stop(), pid: server.pid }, prefix);
  }

  /** One of our own, whatever `REDIS_URL` says. */
  static async start({ args = [], clientOptions = {}, url }: StartOptions = {}): Promise<BenchServer> {
    const server = await startRedis({ args });
    const opened = { stop: () => server.stop(), pid: server.pid, clientOptions, ...(url === undefined ? {} : { url }) };
    return BenchServer.#single(server.url, opened);
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

  static async #single(url: string, opened: Partial<Opened> & Pick<Opened, 'stop'>, prefix?: string) {
    const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
    let failure: Error | undefined;
    client.on('error', (error) => {
      failure ??= error;
    });
    try {
      await client.connect();
    } catch (error) {
      await opened.stop();
      const { hostname, port } = new URL(url);
      const reason = failure ?? error;
      throw new Error(`no Redis at ${hostname}:${port || 6379}: ${reason instanceof Error ? reason.message : reason}`);
    }
    const stop = async () => {
      client.disconnect();
      await opened.stop();
    };
    return BenchServer.#opened({ url, nodes: [client], keyspace: client, ...opened, stop }, prefix);
  }

  static async #opened(opened: Opened, prefix?: string): Promise<BenchServer> {
    return new BenchServer(opened, versionIn((await opened.nodes[0]?.info('server')) ?? ''), prefix);
  }

  private constructor(opened: Opened, version: string, prefix = 'coalesce-bench:') {
    this.url = opened.url;
    this.pid = opened.pid;
    this.version = version;
    this.prefix = `${prefix}${randomBytes(4).toString('hex')}:`;
    this.clientOptions = opened.clientOptions ?? {};
    this.#nodes = opened.nodes;
    this.#keyspace = opened.keyspace;
    this.#stop = opened.stop;
  }

  /** The first node, for what only one experiment asks. */
  get admin(): Redis {
    return this.#nodes[0] as Redis;
  }

  /** Writes what the workload's reads expect. */
  async seed(workload: Workload): Promise<void> {
    const operation = operationOf(workload);
    const group = groupOf(operation);
    const { data } = workload;
    const name = JSON.stringify([group, data]);
    if (group === 'write' || workload.kind === 'package' || this.#seeded.has(name)) return;
    const keys = keysOf(this.prefix, data, operation);
    const values = valuesOf(data);
    const step = Math.max(1, Math.floor(SEED_BYTES / (data.valueBytes * (data.elements ?? 1))));
    for (let first = 0; first < keys.length; first += step) {
      await Promise.all(
        keys.slice(first, first + step).map((key, offset) => this.#put(operation, key, values[first + offset]!, data)),
      );
    }
    this.#seeded.add(name);
  }

  /** Sets the workload's keys again, to what they hold, while something runs: so many per second. */
  async whileWriting<T>(workload: Workload, run: () => Promise<T>): Promise<T> {
    const perSecond = 'writes' in workload ? (workload.writes ?? 0) : 0;
    if (perSecond === 0) return run();
    const keys = keysOf(this.prefix, workload.data, 'get');
    const values = valuesOf(workload.data);
    const mostAtOnce = Math.ceil(perSecond * MOST_LATE_S);
    const start = performance.now();
    let writing = true;
    const writer = (async () => {
      for (let written = 0; writing; await sleep(WRITE_EVERY_MS)) {
        const due = Math.floor(((performance.now() - start) / 1000) * perSecond);
        // What a busy machine could not write in time is left out, or it would never catch up.
        const first = Math.max(written, due - mostAtOnce);
        const indexes = Array.from({ length: due - first }, (_, index) => (first + index) % keys.length);
        written = due;
        await Promise.all(indexes.map((index) => this.#keyspace.set(keys[index]!, values[index]!)));
      }
    })();
    try {
      return await run();
    } finally {
      writing = false;
      await writer;
    }
  }

  /** User and system time of the server so far, all its nodes', in microseconds. */
  async cpuUs(): Promise<number> {
    return 1e6 * (await this.info('cpu', 'used_cpu_user', 'used_cpu_sys'));
  }

  /** Runs something, and says what CPU the server spent meanwhile. */
  async cpuDuring<T>(run: () => Promise<T>): Promise<[result: T, cpuUs: number]> {
    const before = await this.cpuUs();
    const result = await run();
    return [result, (await this.cpuUs()) - before];
  }

  /** The sum of some numbers in INFO, over all nodes. */
  async info(section: string, ...fields: string[]): Promise<number> {
    const infos = await Promise.all(this.#nodes.map((node) => node.info(section)));
    return infos.flatMap((info) => fields.map((field) => numberIn(info, field))).reduce((sum, value) => sum + value, 0);
  }

  /** Marks the keys of the run, those that there are so far, to go by themselves. */
  expireAll(): Promise<number> {
    return this.#eachKey((node, key) => node.expire(key, EXPIRE_AFTER_S));
  }

  /** Removes the run's keys, and stops the server if it is ours. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#removeKeys().finally(() => this.#stop());
    return this.#closing;
  }

  async #put(operation: OperationId, key: string, value: string, data: Workload['data']): Promise<void> {
    const group = groupOf(operation);
    if (group === 'hash') {
      await this.#keyspace.hset(key, hashOf(value, data));
    } else if (group === 'list') {
      await this.#keyspace.del(key);
      await this.#keyspace.rpush(key, ...listOf(value, data));
    } else if (group === 'zset') {
      await this.#keyspace.zadd(key, ...listOf(value, data).flatMap((element, score) => [score, element]));
    } else {
      await this.#keyspace.set(key, value);
    }
  }

  async #removeKeys(): Promise<void> {
    // A variant that was killed may have writes on their way: until a pass finds nothing.
    while ((await this.#eachKey((node, key) => node.unlink(key))) > 0);
  }

  /** One by one: in a cluster keys are in different slots. */
  async #eachKey(run: (node: Redis, key: string) => Promise<unknown>): Promise<number> {
    let found = 0;
    for (const node of this.#nodes) {
      const keys = node.scanStream({ match: `${this.prefix}*`, count: 1000 }) as AsyncIterable<string[]>;
      for await (const some of keys) {
        await Promise.all(some.map((key) => run(node, key)));
        found += some.length;
      }
    }
    return found;
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
