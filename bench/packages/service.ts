import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Load } from '../http/load-process.js';
import type { BenchClient } from '../variants/clients.js';
import { fieldOf, keysOf } from '../variants/data.js';
import type { Measured, ServiceWorkload } from '../variants/protocol.js';
import { Stopwatch } from '../variants/timing.js';

const CONNECTIONS = 50;
const FIELD = fieldOf(0);
const KEEP_ALIVE_MS = 600_000;

/** A service of Node's own `http` in this process, on the variant's client; another process makes its load. */
export class Service {
  readonly #server = createServer((_, response) => {
    this.#answer().then(
      (body) => response.end(body),
      (error) => {
        response.statusCode = 500;
        response.end(String(error));
      },
    );
  });
  readonly #load = new Load(fileURLToPath(new URL('load.mjs', import.meta.url)));
  readonly #client: BenchClient;
  readonly #prefix: string;
  #keys: readonly string[] = [];
  #commands = 1;
  #read: (key: string) => Promise<unknown> = async () => null;
  #next = 0;

  static async open(client: BenchClient, prefix: string): Promise<Service> {
    const service = new Service(client, prefix);
    // Longer than any round: a connection may have nothing to do in it.
    service.#server.keepAliveTimeout = KEEP_ALIVE_MS;
    service.#server.listen(0, '127.0.0.1');
    await once(service.#server, 'listening');
    return service;
  }

  private constructor(client: BenchClient, prefix: string) {
    this.#client = client;
    this.#prefix = prefix;
  }

  async run(workload: ServiceWorkload, seconds: number): Promise<Measured> {
    const { commands, connections = CONNECTIONS, data, operation, rate } = workload;
    const client = this.#client;
    this.#commands = commands;
    this.#keys = keysOf(this.#prefix, data, operation);
    this.#read = operation === 'get' ? (key) => client.get(key) : (key) => client.hget!(key, FIELD);
    const before = performance.eventLoopUtilization();
    const watch = new Stopwatch();
    if (rate === 0) {
      await sleep(seconds * 1000);
      const { utilization } = performance.eventLoopUtilization(before);
      return { commands: seconds, cpu: watch.figures(seconds).cpu, utilization };
    }
    const { port } = this.#server.address() as AddressInfo;
    const { requests, seconds: took, ...latencies } = await this.#load.run({ port, connections, seconds, rate });
    const { utilization } = performance.eventLoopUtilization(before);
    return {
      commands: requests,
      throughput: requests / took,
      cpu: watch.figures(requests).cpu,
      utilization,
      ...latencies,
    };
  }

  async close(): Promise<void> {
    await this.#load.stop();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** The first value, all of which are of one length; an error where one of them is missing. */
  async #answer(): Promise<string> {
    const replies = await Promise.all(
      Array.from({ length: this.#commands }, () => {
        this.#next = (this.#next + 1) % this.#keys.length;
        return this.#read(this.#keys[this.#next]!);
      }),
    );
    if (replies.includes(null)) throw new Error('expected a value for every key, got null');
    return String(replies[0]);
  }
}
