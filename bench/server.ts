import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { startRedis } from '../tools/redis-server.js';
import { keysOf, valuesOf, type Workload } from './workload.js';

const SEED_BYTES = 4 * 1024 * 1024;

/** The server of a run, seen from the parent: data sets, CPU, and leaving it as it was found. */
export class BenchServer {
  readonly url: string;
  readonly version: string;
  /** Every key of the run starts with it. */
  readonly prefix = `coalesce-bench:${randomBytes(4).toString('hex')}:`;
  readonly #client: Redis;
  readonly #stop: () => Promise<void>;
  readonly #seeded = new Set<string>();
  #closing: Promise<void> | undefined;

  /** The one at `REDIS_URL`, else one of our own. */
  static async open(log: (line: string) => void): Promise<BenchServer> {
    const url = process.env.REDIS_URL;
    if (url !== undefined && url !== '') return BenchServer.#connect(url, async () => {});
    const server = await startRedis({ log });
    return BenchServer.#connect(server.url, () => server.stop());
  }

  static async #connect(url: string, stop: () => Promise<void>): Promise<BenchServer> {
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
    return new BenchServer(url, client, versionIn(await client.info('server')), stop);
  }

  private constructor(url: string, client: Redis, version: string, stop: () => Promise<void>) {
    this.url = url;
    this.version = version;
    this.#client = client;
    this.#stop = stop;
  }

  /** Writes what the workload's reads expect. */
  async seed(workload: Workload): Promise<void> {
    const { data } = workload;
    const name = JSON.stringify(data);
    if (this.#seeded.has(name)) return;
    const keys = keysOf(this.prefix, data, 'get');
    const values = valuesOf(data);
    const step = Math.max(1, Math.floor(SEED_BYTES / data.valueBytes));
    for (let first = 0; first < keys.length; first += step) {
      await this.#client.mset(keys.slice(first, first + step).flatMap((key, offset) => [key, values[first + offset]!]));
    }
    this.#seeded.add(name);
  }

  /** User and system time of the server so far, in microseconds. */
  async cpuUs(): Promise<number> {
    const info = await this.#client.info('cpu');
    return (field(info, 'used_cpu_user') + field(info, 'used_cpu_sys')) * 1e6;
  }

  /** Removes the run's keys, and stops the server if it is ours. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#removeKeys().finally(async () => {
      this.#client.disconnect();
      await this.#stop();
    });
    return this.#closing;
  }

  async #removeKeys(): Promise<void> {
    // An arm that was killed may have writes on their way: until a pass finds nothing.
    let found: number;
    do {
      found = 0;
      for await (const keys of this.#client.scanStream({ match: `${this.prefix}*`, count: 1000 })) {
        if (keys.length > 0) await this.#client.unlink(keys);
        found += keys.length;
      }
    } while (found > 0);
  }
}

function versionIn(info: string): string {
  const valkey = /^valkey_version:(.+)$/m.exec(info)?.[1]?.trim();
  if (valkey !== undefined) return `Valkey ${valkey}`;
  return `Redis ${/^redis_version:(.+)$/m.exec(info)?.[1]?.trim() ?? 'of unknown version'}`;
}

function field(info: string, name: string): number {
  const text = new RegExp(`^${name}:(.+)$`, 'm').exec(info)?.[1];
  const value = Number(text);
  if (text === undefined || !Number.isFinite(value)) throw new Error(`expected ${name} in INFO cpu, got ${text}`);
  return value;
}
