import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../tools/free-port.js';
import type { BenchServer } from '../suite/bench-server.js';
import { Child } from '../suite/child.js';
import type { Rig } from '../suite/rig.js';
import type { ClientKind, RouteId } from './example.js';
import type { Load, LoadOrder, LoadResult } from './load-process.js';

const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 15_000;

const PRODUCTS = 500;
// Spread over the products, few enough that autocannon prepares them in no time.
const IDS: readonly number[] = Array.from({ length: 20 }, (_, index) => 1 + index * 23);
/** Of products, the last of which is unknown. */
export const PROBED_IDS: readonly number[] = [...IDS, PRODUCTS + 1];

export interface UsageOrder {
  /** The port of Redis, from the first time on; counting costs a little, so not before the service was timed. */
  readonly countWritesTo?: number;
}

/** What a service says about itself, so far. */
export interface ServiceUsage {
  readonly cpuUs: number;
  /** To Redis; only counted where asked for. */
  readonly writes: number;
}

/**
 * The environment of the example, and what it is told of its products, which it writes at its start if they are
 * missing.
 */
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

export type Service = Awaited<ReturnType<typeof startService>>;

/** The example as a process of its own. */
export async function startService({ bundle, server }: Pick<Rig, 'bundle' | 'server'>, client: ClientKind) {
  const port = await freePort();
  const origin = `http://${HOST}:${port}`;
  const child = new Child(`the ${client} service`, bundle.files.service, {
    execArgv: ['--import', bundle.files.preload],
    execPath: bundle.nodePath,
    env: {
      ...exampleEnvironment(server, port),
      ...(client === 'corked' ? { REDIS_CLIENT: 'coalesced', IOREDIS_COALESCE: 'cork' } : { REDIS_CLIENT: client }),
      LIVE_PAGE: 'off',
    },
  });
  await waitForHealth(child, origin, server);
  const usage = (order: UsageOrder) => child.ask<ServiceUsage>(order);
  return {
    child,
    origin,
    /** Puts a route under load; CPU of the service and of Redis, and writes, are those of all requests together. */
    async drive(load: Load, route: RouteId, order: Omit<LoadOrder, 'origin' | 'requests'>, countWrites = false) {
      const requests = IDS.map((id) => ({ path: `/${route}/${id}` }));
      const redisPort = Number(new URL(server.url).port || 6379);
      const before = await usage(countWrites ? { countWritesTo: redisPort } : {});
      const [result, serverCpuUs] = await server.cpuDuring<LoadResult>(() =>
        load.run({ origin, requests, ...order }).catch((error) => {
          // If the service is gone, its last words say more than the load's.
          child.assertRunning();
          throw error;
        }),
      );
      const { cpuUs, writes } = await usage({});
      return { ...result, cpuUs: cpuUs - before.cpuUs, writes: writes - before.writes, serverCpuUs };
    },
  };
}

/** Waits for the service, then sets an expiry on the run's keys: they go away even if the run is killed. */
export async function waitForHealth(child: Child, origin: string, server: BenchServer): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline) {
    child.assertRunning();
    const response = await fetch(`${origin}/health`).catch(() => undefined);
    if (response?.ok) return void (await server.expireAll());
    await sleep(25);
  }
  child.kill();
  throw new Error(`${origin}/health did not answer with 200 within ${START_TIMEOUT_MS} ms`);
}
