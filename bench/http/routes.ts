/** The example under load with several clients: every route of each, by turns. */

import { isDeepStrictEqual } from 'node:util';
import type { BenchServer } from '../suite/bench-server.js';
import { type Bundle, bundlePrograms } from '../suite/bundle.js';
import type { Probe, Sample } from '../variants/protocol.js';
import { Child } from './child.js';
import { Cleanup } from './cleanup.js';
import type { LoadRequest, LoadResult } from './load.js';
import { PRODUCTS, Service } from './service.js';

export const ROUTES = {
  sequential: '8 sequential awaits',
  parallel: '8 in Promise.all',
  pipeline: 'hand-written pipeline',
  'no-redis': 'no Redis at all',
} as const;
export type RouteId = keyof typeof ROUTES;
export const ROUTE_IDS = Object.keys(ROUTES) as RouteId[];

export const CLIENT_KINDS = ['plain', 'auto', 'coalesced', 'cached'] as const;
export type ClientKind = (typeof CLIENT_KINDS)[number];

/** Concurrent HTTP connections. */
export const CONNECTIONS = 30;

// Spread over the products, few enough that autocannon prepares them in no time.
export const IDS: readonly number[] = Array.from({ length: 20 }, (_, index) => 1 + index * 23);
const UNKNOWN_ID = PRODUCTS + 1;

export interface Plan {
  readonly rounds: number;
  /** Of a timed run. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** Requests per route in the pass that counts socket writes. */
  readonly countedRequests: number;
}

/** One route of one service; figures are per request, CPU is that of the service and of Redis. */
export interface RouteResult {
  readonly route: RouteId;
  readonly client: ClientKind;
  readonly samples: Sample[];
  readonly probe: Probe;
}

export interface Order {
  readonly server: BenchServer;
  readonly plan: Plan;
  readonly routes?: readonly RouteId[];
  /** The first is what the others' answers are compared with. */
  readonly clients: readonly ClientKind[];
  /** Called once the services have written their keys. */
  started?(): Promise<unknown>;
  /** Called before each step. */
  progress(label: string): void;
  /** Ends the run early: it rejects once everything is cleaned up. */
  readonly signal?: AbortSignal;
}

type Services = ReadonlyMap<ClientKind, Service>;

interface Run extends Order {
  readonly routes: readonly RouteId[];
  readonly bundle: Bundle;
  readonly load: Child;
  readonly cleanup: Cleanup;
}

export function stepsOf({ rounds }: Plan, routes: number, clients: number): number {
  return routes * clients * (1 + 1 + rounds);
}

/** No process is left, however it ends; the keys are the server's, who removes them. */
export async function measureRoutes(order: Order): Promise<RouteResult[]> {
  const cleanup = new Cleanup();
  const abort = (): void => {
    // A failure of it is reported below, by the same promise.
    cleanup.run().catch(() => {});
  };
  order.signal?.addEventListener('abort', abort);
  try {
    order.signal?.throwIfAborted();
    const bundle = await bundlePrograms();
    await cleanup.add(() => bundle.remove());
    const load = startLoad(bundle);
    await cleanup.add(() => load.stop());
    return await measure({ routes: ROUTE_IDS, ...order, bundle, load, cleanup });
  } finally {
    order.signal?.removeEventListener('abort', abort);
    await cleanup.run();
  }
}

export function startLoad(bundle: Bundle): Child {
  return new Child('the load process', bundle.files.load, {
    execArgv: [],
    env: { ...process.env, NODE_OPTIONS: '' },
  });
}

async function measure(run: Run): Promise<RouteResult[]> {
  const { clients, plan, progress, routes, server } = run;
  const writes = await countWrites(run);
  const services = await startAll(run, false);
  await run.started?.();
  const results = routes.flatMap((route) =>
    clients.map((client): RouteResult => {
      return {
        route,
        client,
        samples: [],
        probe: { writesPerCommand: writes.get(`${route} ${client}`) ?? Number.NaN },
      };
    }),
  );
  for (const { route, client } of results) {
    progress(`warming up: ${ROUTES[route]}, ${client}`);
    await drive(run, services.get(client)!, route, { seconds: plan.warmUpSeconds });
  }
  for (let round = 1; round <= plan.rounds; round += 1) {
    // Which one goes first changes from round to round: neither always has the warmer machine.
    for (const { route, client, samples } of round % 2 === 1 ? results : results.toReversed()) {
      progress(`round ${round} of ${plan.rounds}: ${ROUTES[route]}, ${client}`);
      const redisBefore = await server.cpuUs();
      const serviceBefore = await services.get(client)!.usage();
      const { requests, seconds, p50Ms, p99Ms } = await drive(run, services.get(client)!, route, {
        seconds: plan.seconds,
      });
      const serviceAfter = await services.get(client)!.usage();
      samples.push({
        perSecond: requests / seconds,
        cpuUs: (serviceAfter.cpuUs - serviceBefore.cpuUs) / requests,
        serverCpuUs: ((await server.cpuUs()) - redisBefore) / requests,
        latencyUs: { p50: p50Ms * 1000, p99: p99Ms * 1000 },
      });
    }
  }
  return results;
}

/** Services of their own for this: nothing of the counting is in those that are timed. */
async function countWrites(run: Run): Promise<Map<string, number>> {
  const services = await startAll(run, true);
  const counts = new Map<string, number>();
  await assertSameAnswers(services);
  for (const route of run.routes) {
    for (const client of run.clients) {
      run.progress(`counting socket writes: ${ROUTES[route]}, ${client}`);
      const before = await services.get(client)!.usage();
      const { requests } = await drive(run, services.get(client)!, route, { requests: run.plan.countedRequests });
      counts.set(`${route} ${client}`, ((await services.get(client)!.usage()).writes - before.writes) / requests);
    }
  }
  await Promise.all([...services.values()].map((service) => service.stop()));
  return counts;
}

/** The first one writes the products; the others find them. */
async function startAll({ bundle, clients, server, cleanup }: Run, countWrites: boolean): Promise<Services> {
  const start = async (client: ClientKind): Promise<Service> => {
    const service = await Service.start(bundle, { client, server, countWrites });
    await cleanup.add(() => service.stop());
    return service;
  };
  const services = new Map<ClientKind, Service>();
  for (const client of clients) services.set(client, await start(client));
  return services;
}

/** Faster counts for nothing if the answers differ. */
async function assertSameAnswers(services: Services): Promise<void> {
  for (const id of [...IDS, UNKNOWN_ID]) {
    const expected = await answer([...services.values()][0]!, 'no-redis', id);
    for (const route of ROUTE_IDS) {
      for (const [client, service] of services) {
        const got = await answer(service, route, id);
        if (isDeepStrictEqual(got, expected)) continue;
        const texts = [expected, got].map((one) => JSON.stringify(one));
        throw new Error(`/${route}/${id} of the ${client} service: expected ${texts[0]}, got ${texts[1]}`);
      }
    }
  }
}

async function answer(service: Service, route: RouteId, id: number): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${service.origin}/${route}/${id}`);
  return { status: response.status, body: await response.json() };
}

async function drive(
  { load }: Run,
  service: Service,
  route: RouteId,
  limit: LoadRequest['limit'],
): Promise<LoadResult> {
  try {
    return await load.ask<LoadResult>(loadOf(service.origin, route, limit));
  } catch (error) {
    // If the service is gone, its last words say more than the load's.
    service.assertRunning();
    throw error;
  }
}

export function loadOf(origin: string, route: RouteId, limit: LoadRequest['limit'], rate?: number): LoadRequest {
  const requests = IDS.map((id) => ({ path: `/${route}/${id}` }));
  return { origin, requests, connections: CONNECTIONS, limit, ...(rate === undefined ? {} : { rate }) };
}
