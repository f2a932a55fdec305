import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../tools/free-port.js';
import type { BenchServer } from '../suite/bench-server.js';
import type { Bundle } from '../suite/bundle.js';
import { Child } from '../suite/child.js';
import type { Load, LoadOrder, LoadResult } from './load-process.js';
import type { ClientKind, RouteId } from './routes.js';

const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 15_000;

const PRODUCTS = 500;
/** Concurrent HTTP connections. */
export const CONNECTIONS = 30;
// Spread over the products, few enough that autocannon prepares them in no time.
const IDS: readonly number[] = Array.from({ length: 20 }, (_, index) => 1 + index * 23);
/** Of products, the last of which is unknown. */
export const PROBED_IDS: readonly number[] = [...IDS, PRODUCTS + 1];

/** What a service says about itself, so far. */
export interface ServiceUsage {
  readonly cpuUs: number;
  /** To Redis; only counted where asked for. */
  readonly writes: number;
}

export interface ServiceOptions {
  readonly client: ClientKind;
  readonly server: BenchServer;
  /** Counting costs a little, so a service that is timed does not. */
  readonly countWrites?: boolean;
}

/** The environment of the example, and what it is told of its products, which it writes at its start if they are missing. */
export function exampleEnvironment({ url, prefix }: BenchServer, port: number): NodeJS.ProcessEnv {
  return {
    ...process.env,
    NODE_ENV: 'production',
    NODE_OPTIONS: '',
    HOST,
    PORT: String(port),
    LOG_LEVEL: 'warn',
    REDIS_URL: url,
    SEED_PREFIX: `${prefix}shop:`,
    SEED_PRODUCTS: String(PRODUCTS),
  };
}

/** The example as a process of its own. */
export class Service {
  readonly origin: string;
  readonly #child: Child;
  readonly #server: BenchServer;

  static async start(bundle: Bundle, options: ServiceOptions): Promise<Service> {
    const service = new Service(bundle, options, await freePort());
    try {
      await waitForHealth(service.#child, service.origin);
    } catch (error) {
      await service.stop();
      throw error;
    }
    return service;
  }

  private constructor(bundle: Bundle, { client, server, countWrites = false }: ServiceOptions, port: number) {
    this.origin = `http://${HOST}:${port}`;
    this.#server = server;
    this.#child = new Child(`the ${client} service`, bundle.files.service, {
      execArgv: ['--import', bundle.files.preload],
      env: {
        ...exampleEnvironment(server, port),
        REDIS_CLIENT: client === 'auto' ? 'auto-pipelining' : client,
        LIVE_PAGE: 'off',
        ...(countWrites ? { COUNT_WRITES_TO_PORT: new URL(server.url).port || '6379' } : {}),
      },
    });
  }

  /** Puts a route under load; CPU of the service and of Redis, and writes, are those of all requests together. */
  async drive(load: Load, route: RouteId, limit: LoadOrder['limit'], rate?: number) {
    const requests = IDS.map((id) => ({ path: `/${route}/${id}` }));
    const before = await this.#usage();
    const [result, serverCpuUs] = await this.#server.cpuDuring(() =>
      this.#whileRunning(load.run({ origin: this.origin, requests, connections: CONNECTIONS, limit, rate })),
    );
    const { cpuUs, writes } = await this.#usage();
    return { ...result, cpuUs: cpuUs - before.cpuUs, writes: writes - before.writes, serverCpuUs };
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }

  #usage(): Promise<ServiceUsage> {
    return this.#child.ask({});
  }

  async #whileRunning(result: Promise<LoadResult>): Promise<LoadResult> {
    try {
      return await result;
    } catch (error) {
      // If the service is gone, its last words say more than the load's.
      this.#child.assertRunning();
      throw error;
    }
  }
}

export async function waitForHealth(child: Child, origin: string): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline) {
    child.assertRunning();
    const response = await fetch(`${origin}/health`).catch(() => undefined);
    if (response?.ok) return;
    await sleep(25);
  }
  throw new Error(`${origin}/health did not answer with 200 within ${START_TIMEOUT_MS} ms`);
}
