/** The example under load with several clients: every route of each, by turns. */

import { isDeepStrictEqual } from 'node:util';
import type { BenchServer } from '../suite/bench-server.js';
import type { Bundle } from '../suite/bundle.js';
import type { Cleanup } from '../suite/cleanup.js';
import type { Probe, Sample } from '../variants/protocol.js';
import { Load } from './load-process.js';
import { PROBED_IDS, Service } from './service.js';

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

interface Order {
  readonly server: BenchServer;
  readonly bundle: Bundle;
  /** Ends the processes. */
  readonly cleanup: Cleanup;
  readonly plan: Plan;
  readonly routes?: readonly RouteId[];
  /** The others' answers are compared with those of the first. */
  readonly clients: readonly ClientKind[];
  /** Called once the services have written their keys. */
  started?(): Promise<unknown>;
  /** Called before each step. */
  progress(label: string): void;
}

type Services = ReadonlyMap<ClientKind, Service>;

export function stepsOf({ rounds }: Plan, routes: number, clients: number): number {
  return routes * clients * (1 + 1 + rounds);
}

/** The keys are the server's, who removes them. */
export async function measureRoutes(order: Order): Promise<RouteResult[]> {
  const { bundle, cleanup, clients, plan, progress, routes = ROUTE_IDS } = order;
  const load = new Load(bundle.files.load);
  await cleanup.add(() => load.stop());
  const results = routes.flatMap((route) => clients.map((client) => ({ route, client, samples: [] as Sample[] })));

  // Services of their own for this: nothing of the counting is in those that are timed.
  const counting = await startAll(order, true);
  await assertSameAnswers(counting);
  const probes: Probe[] = [];
  for (const { route, client } of results) {
    progress(`counting socket writes: ${ROUTES[route]}, ${client}`);
    const { requests, writes } = await counting.get(client)!.drive(load, route, { requests: plan.countedRequests });
    probes.push({ writesPerCommand: writes / requests });
  }
  await Promise.all([...counting.values()].map((service) => service.stop()));

  const services = await startAll(order, false);
  await order.started?.();
  for (const { route, client } of results) {
    progress(`warming up: ${ROUTES[route]}, ${client}`);
    await services.get(client)!.drive(load, route, { seconds: plan.warmUpSeconds });
  }
  for (let round = 1; round <= plan.rounds; round += 1) {
    // Which one goes first changes from round to round: neither always has the warmer machine.
    for (const { route, client, samples } of round % 2 === 1 ? results : results.toReversed()) {
      progress(`round ${round} of ${plan.rounds}: ${ROUTES[route]}, ${client}`);
      const service = services.get(client)!;
      const { requests, seconds, latencyUs, cpuUs, serverCpuUs } = await service.drive(load, route, plan);
      samples.push({
        perSecond: requests / seconds,
        cpuUs: cpuUs / requests,
        serverCpuUs: serverCpuUs / requests,
        latencyUs,
      });
    }
  }
  return results.map((result, index) => ({ ...result, probe: probes[index]! }));
}

/** The first one writes the products; the others find them. */
async function startAll({ bundle, clients, server, cleanup }: Order, countWrites: boolean): Promise<Services> {
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
  const answer = async (service: Service, route: RouteId, id: number) => {
    const response = await fetch(`${service.origin}/${route}/${id}`);
    return { status: response.status, body: await response.json() };
  };
  const [first] = services.values();
  for (const id of PROBED_IDS) {
    const expected = await answer(first!, 'no-redis', id);
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
