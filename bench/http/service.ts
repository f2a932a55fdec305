import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../tools/free-port.js';
import type { BenchServer } from '../suite/bench-server.js';
import type { Bundle } from '../suite/bundle.js';
import { Child } from './child.js';
import type { ClientKind } from './routes.js';

const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 15_000;

export const PRODUCTS = 500;

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
  readonly countWrites: boolean;
}

/** What the example is told of its products, which it writes at its start if they are missing. */
export function shopEnvironment({ url, prefix }: BenchServer): NodeJS.ProcessEnv {
  return { REDIS_URL: url, SEED_PREFIX: `${prefix}shop:`, SEED_PRODUCTS: String(PRODUCTS) };
}

/** The example as a process of its own. */
export class Service {
  readonly origin: string;
  readonly #child: Child;

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

  private constructor(bundle: Bundle, options: ServiceOptions, port: number) {
    this.origin = `http://${HOST}:${port}`;
    this.#child = new Child(`the ${options.client} service`, bundle.files.service, {
      execArgv: ['--import', bundle.files.preload],
      env: {
        ...process.env,
        NODE_ENV: 'production',
        NODE_OPTIONS: '',
        HOST,
        PORT: String(port),
        LOG_LEVEL: 'warn',
        REDIS_CLIENT: options.client === 'auto' ? 'auto-pipelining' : options.client,
        ...shopEnvironment(options.server),
        LIVE_PAGE: 'off',
        ...(options.countWrites ? { COUNT_WRITES_TO_PORT: new URL(options.server.url).port || '6379' } : {}),
      },
    });
  }

  usage(): Promise<ServiceUsage> {
    return this.#child.ask<ServiceUsage>({});
  }

  /** Throws, with what the service said, if it is not running. */
  assertRunning(): void {
    this.#child.assertRunning();
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }
}

export async function waitForHealth(child: Child, origin: string): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline) {
    child.assertRunning();
    const response = await fetch(`${origin}/health`).catch(() => undefined);
    if (response?.ok) {
      return;
    }
    await sleep(25);
  }
  throw new Error(`${origin}/health did not answer with 200 within ${START_TIMEOUT_MS} ms`);
}
