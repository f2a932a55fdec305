import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../tools/free-port.js';
import type { Bundle } from './bundle.js';
import { Child } from './child.js';
import type { ServiceUsage, Variant } from './types.js';

const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 15_000;

export interface ServiceOptions {
  variant: Variant;
  redisUrl: string;
  prefix: string;
  products: number;
  /** Counting costs a little, so a service that is timed does not. */
  countWrites: boolean;
}

/** The example as a process of its own. */
export class Service {
  readonly origin: string;
  readonly #child: Child;

  static async start(bundle: Bundle, options: ServiceOptions): Promise<Service> {
    const service = new Service(bundle, options, await freePort());
    try {
      await service.#ready();
    } catch (error) {
      await service.stop();
      throw error;
    }
    return service;
  }

  private constructor(bundle: Bundle, options: ServiceOptions, port: number) {
    this.origin = `http://${HOST}:${port}`;
    this.#child = new Child(`the ${options.variant} service`, bundle.service, {
      execArgv: ['--import', bundle.preload],
      env: {
        ...process.env,
        NODE_ENV: 'production',
        NODE_OPTIONS: '',
        HOST,
        PORT: String(port),
        LOG_LEVEL: 'warn',
        COALESCE: options.variant === 'coalesced' ? 'on' : 'off',
        REDIS_URL: options.redisUrl,
        SEED_PREFIX: options.prefix,
        SEED_PRODUCTS: String(options.products),
        LIVE_PAGE: 'off',
        ...(options.countWrites ? { COUNT_WRITES_TO_PORT: new URL(options.redisUrl).port || '6379' } : {}),
      },
    });
  }

  async usage(): Promise<ServiceUsage> {
    return (await this.#child.ask({})) as ServiceUsage;
  }

  /** Throws, with what the service said, if it is not running. */
  assertRunning(): void {
    this.#child.assertRunning();
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }

  #ready(): Promise<void> {
    return waitForHealth(this.#child, this.origin);
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
