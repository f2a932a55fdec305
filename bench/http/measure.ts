import { isDeepStrictEqual } from 'node:util';
import { type Bundle, bundlePrograms } from './bundle.js';
import { Cleanup } from './cleanup.js';
import { LoadProcess } from './load-process.js';
import { Service } from './service.js';
import { PRODUCTS, Shop } from './shop.js';
import {
  type FastifyRow,
  type LoadRequest,
  type LoadResult,
  type Plan,
  ROUTES,
  type RouteId,
  VARIANTS,
  type Variant,
} from './types.js';

// Spread over the products, few enough that autocannon prepares them in no time.
const IDS = Array.from({ length: 20 }, (_, index) => 1 + index * 23);
const UNKNOWN_ID = PRODUCTS + 1;

type Services = Record<Variant, Service>;

export interface Order {
  redisUrl: string;
  plan: Plan;
  /** Called before each step. */
  progress(label: string): void;
  /** Ends the run early: it rejects once everything is cleaned up. */
  signal?: AbortSignal;
}

export interface Measured {
  rows: FastifyRow[];
  /** Name and version. */
  server: string;
}

interface Run extends Order {
  shop: Shop;
  cleanup: Cleanup;
}

export function stepsOf({ rounds }: Plan): number {
  return ROUTES.length * VARIANTS.length * (1 + 1 + rounds);
}

/** Runs the example with both clients and drives every route. No process and no key is left, however it ends. */
export async function measure(order: Order): Promise<Measured> {
  const cleanup = new Cleanup();
  const abort = (): void => {
    // A failure of it is reported below, by the same promise.
    cleanup.run().catch(() => {});
  };
  order.signal?.addEventListener('abort', abort);
  try {
    order.signal?.throwIfAborted();
    const shop = await Shop.open(order.redisUrl);
    await cleanup.add(() => shop.close());
    return { server: await shop.version(), rows: await measureRows({ ...order, shop, cleanup }) };
  } finally {
    order.signal?.removeEventListener('abort', abort);
    await cleanup.run();
  }
}

async function measureRows(run: Run): Promise<FastifyRow[]> {
  const bundle = await bundlePrograms();
  await run.cleanup.add(() => bundle.remove());
  await run.shop.fill();
  const load = new LoadProcess(bundle);
  await run.cleanup.add(() => load.stop());

  const writes = await countWrites(run, bundle, load);
  const services = await startBoth(run, bundle, false);
  await warmUp(run, load, services);

  const rows: FastifyRow[] = [];
  for (let round = 1; round <= run.plan.rounds; round += 1) {
    // Who goes first changes from round to round: neither always has the warmer machine.
    const variants = round % 2 === 1 ? VARIANTS : VARIANTS.toReversed();
    for (const { id: route, title } of ROUTES) {
      for (const variant of variants) {
        run.progress(`round ${round} of ${run.plan.rounds}: ${title}, ${variant}`);
        const service = services[variant];
        const redisBefore = await run.shop.cpuUs();
        const serviceBefore = await service.usage();
        const result = await drive(run, load, service, route, { seconds: run.plan.seconds });
        const serviceCpuUs = (await service.usage()).cpuUs - serviceBefore.cpuUs;
        const redisCpuUs = (await run.shop.cpuUs()) - redisBefore;
        rows.push({
          route,
          variant,
          round,
          requestsPerSecond: result.requests / result.seconds,
          p50Ms: result.p50Ms,
          p99Ms: result.p99Ms,
          serviceCpuUsPerRequest: serviceCpuUs / result.requests,
          redisCpuUsPerRequest: redisCpuUs / result.requests,
          writesPerRequest: writes.get(`${route} ${variant}`) ?? Number.NaN,
        });
      }
    }
  }
  return rows;
}

/** Services of their own for this: nothing of the counting is in those that are timed. */
async function countWrites(run: Run, bundle: Bundle, load: LoadProcess): Promise<Map<string, number>> {
  const services = await startBoth(run, bundle, true);
  const counts = new Map<string, number>();
  await assertSameAnswers(services);
  for (const { id: route, title } of ROUTES) {
    for (const variant of VARIANTS) {
      run.progress(`counting socket writes: ${title}, ${variant}`);
      const before = await services[variant].usage();
      const { requests } = await drive(run, load, services[variant], route, { requests: run.plan.countedRequests });
      counts.set(`${route} ${variant}`, ((await services[variant].usage()).writes - before.writes) / requests);
    }
  }
  await Promise.all(VARIANTS.map((variant) => services[variant].stop()));
  return counts;
}

async function warmUp(run: Run, load: LoadProcess, services: Services): Promise<void> {
  for (const { id: route, title } of ROUTES) {
    for (const variant of VARIANTS) {
      run.progress(`warming up: ${title}, ${variant}`);
      await drive(run, load, services[variant], route, { seconds: run.plan.warmUpSeconds });
    }
  }
}

async function startBoth(run: Run, bundle: Bundle, counting: boolean): Promise<Services> {
  const start = async (variant: Variant): Promise<Service> => {
    const { redisUrl, shop } = run;
    const options = { variant, redisUrl, prefix: shop.prefix, products: PRODUCTS, countWrites: counting };
    const service = await Service.start(bundle, options);
    await run.cleanup.add(() => service.stop());
    return service;
  };
  const [plain, coalesced] = await Promise.all([start('plain'), start('coalesced')]);
  return { plain, coalesced };
}

/** Faster counts for nothing if the answers differ. */
async function assertSameAnswers(services: Services): Promise<void> {
  for (const id of [...IDS, UNKNOWN_ID]) {
    const expected = await answer(services.plain, 'no-redis', id);
    for (const { id: route } of ROUTES) {
      for (const variant of VARIANTS) {
        const got = await answer(services[variant], route, id);
        if (!isDeepStrictEqual(got, expected)) {
          throw new Error(
            `/${route}/${id} of the ${variant} service: expected ${JSON.stringify(expected)}, got ${JSON.stringify(got)}`,
          );
        }
      }
    }
  }
}

async function answer(service: Service, route: RouteId, id: number): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${service.origin}/${route}/${id}`);
  return { status: response.status, body: await response.json() };
}

async function drive(
  { plan }: Run,
  load: LoadProcess,
  service: Service,
  route: RouteId,
  limit: LoadRequest['limit'],
): Promise<LoadResult> {
  const paths = IDS.map((id) => `/${route}/${id}`);
  try {
    return await load.run({ origin: service.origin, paths, connections: plan.connections, limit });
  } catch (error) {
    // If the service is gone, its last words say more than the load's.
    service.assertRunning();
    throw error;
  }
}
