import type { AddressInfo } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type FastifyInstance, fastify } from 'fastify';
import { Load } from '../http/load-process.js';
import type { BenchClient } from '../variants/clients.js';
import { fieldOf, keysOf } from '../variants/data.js';
import type { Measured, ServiceWorkload } from '../variants/protocol.js';
import { Stopwatch } from '../variants/timing.js';
import { answerRequest, USERS, userOf } from './request.js';

const CONNECTIONS = 50;
const FIELD = fieldOf(0);
/** Longer than any round: a connection may have nothing to do in it. */
const KEEP_ALIVE_MS = 600_000;
/** Users come in an order that is not that of their numbers: 379 is a prime. */
const PATHS = Array.from({ length: USERS }, (_, index) => `/${userOf(index * 379)}`);

type Answer = (user: string) => Promise<unknown>;

/** A Fastify service in this process, on the variant's client; another process makes its load. */
export class Service {
  readonly #app: FastifyInstance = fastify({ keepAliveTimeout: KEEP_ALIVE_MS });
  readonly #load = new Load(fileURLToPath(new URL('load.mjs', import.meta.url)));
  readonly #client: BenchClient;
  readonly #prefix: string;
  #answer: Answer = async () => '';

  static async open(client: BenchClient, prefix: string): Promise<Service> {
    const service = new Service(client, prefix);
    await service.#app.listen({ host: '127.0.0.1', port: 0 });
    return service;
  }

  private constructor(client: BenchClient, prefix: string) {
    this.#client = client;
    this.#prefix = prefix;
    this.#app.get<{ Params: { user: string } }>('/:user', ({ params }) => this.#answer(params.user));
  }

  async run(workload: ServiceWorkload, seconds: number): Promise<Measured> {
    const { connections = CONNECTIONS, rate } = workload;
    this.#answer = this.#answerOf(workload);
    const before = performance.eventLoopUtilization();
    const watch = new Stopwatch();
    if (rate === 0) {
      await sleep(seconds * 1000);
      const { utilization } = performance.eventLoopUtilization(before);
      return { commands: seconds, cpu: watch.figures(seconds).cpu, utilization };
    }
    const { port } = this.#app.server.address() as AddressInfo;
    const order = { port, connections, paths: PATHS, seconds, rate };
    const { requests, seconds: took, ...figures } = await this.#load.run(order);
    const { utilization } = performance.eventLoopUtilization(before);
    const { cpu } = watch.figures(requests);
    return { commands: requests, throughput: requests / took, cpu, utilization, ...figures };
  }

  async close(): Promise<void> {
    await this.#load.stop();
    this.#app.server.closeAllConnections();
    await this.#app.close();
  }

  #answerOf({ commands, data, operation }: ServiceWorkload): Answer {
    const client = this.#client;
    if (operation === 'request') return (user) => answerRequest(client, this.#prefix, user);
    const keys = keysOf(this.#prefix, data, operation);
    const read = operation === 'get' ? (key: string) => client.get(key) : (key: string) => client.hget!(key, FIELD);
    /** The first value, all of which are of one length; an error where one of them is missing. */
    return async (user) => {
      const reading = Array.from({ length: commands }, (_, index) => read(keys[(Number(user) + index) % keys.length]!));
      const replies = await Promise.all(reading);
      if (replies.includes(null)) throw new Error('expected a value for every key, got null');
      return replies[0];
    };
  }
}
