/** Routes of the example as what is measured: a service for each client, and one process that puts them under load. */

import { isDeepStrictEqual } from 'node:util';
import type { Rig } from '../suite/rig.js';
import type { Runnable } from '../suite/variant-process.js';
import type { PackageWorkload, Workload } from '../variants/protocol.js';
import type { ClientKind, RouteId } from './example.js';
import { Load, type LoadOrder } from './load-process.js';
import { PROBED_IDS, type Service, startService } from './service.js';

const COUNTED_PER_SECOND = 3000;
const LEAST_COUNTED = 120;

/**
 * The keys belong to `server`, which removes them at the end. Whatever fails, no process of theirs outlives the run.
 */
export async function routesOf({ bundle, cleanup, server }: Pick<Rig, 'bundle' | 'cleanup' | 'server'>) {
  // It lives as long as the services, so that it warms up once.
  const load = new Load(bundle.files.load);
  await cleanup.add(async () => load.kill());
  const start = async (client: ClientKind) => {
    const service = await startService({ bundle, server }, client);
    await cleanup.add(async () => service.child.kill());
    return service;
  };
  const services = new Map<ClientKind, Promise<Service>>();
  const open = async (route: RouteId, client: ClientKind): Promise<Runnable> => {
    const starting = services.get(client) ?? start(client);
    services.set(client, starting);
    const service = await starting;
    const drive = (workload: Workload, limit: LoadOrder['limit'], countWrites = false) => {
      const { concurrency: connections } = workload as PackageWorkload;
      return service.drive(load, route, { connections, limit }, countWrites);
    };
    return {
      isKept: true,
      async prepare(workload, seconds, verify) {
        if (verify) await assertSameAnswers(service, route, client);
        await drive(workload, { seconds });
      },
      async measure(workload, length) {
        const { requests, seconds, p50, p99, p999, cpuUs, serverCpuUs } = await drive(workload, { seconds: length });
        const ofCpu = { cpu: cpuUs / requests, serverCpu: serverCpuUs / requests };
        return { commands: requests, throughput: requests / seconds, ...ofCpu, p50, p99, p999 };
      },
      /** A number of requests, not of seconds: at the end of a time, requests in flight would have written, too. */
      async probe(workload, seconds) {
        const wanted = Math.max(LEAST_COUNTED, Math.round(COUNTED_PER_SECOND * seconds));
        const { requests, writes } = await drive(workload, { requests: wanted }, true);
        return { writes: writes / requests };
      },
      close: async () => {},
      kill() {
        load.kill();
        service.child.kill();
      },
    };
  };
  const close = async () => {
    const all = await Promise.all(services.values());
    await Promise.all([load, ...all.map(({ child }) => child)].map((child) => child.stop()));
  };
  return { open, close };
}

/** A faster route is no gain if its answers differ. */
async function assertSameAnswers({ origin }: Service, route: RouteId, client: ClientKind): Promise<void> {
  const answer = async (from: RouteId, id: number) => {
    const response = await fetch(`${origin}/${from}/${id}`);
    return { status: response.status, body: await response.json() };
  };
  for (const id of PROBED_IDS) {
    const [expected, got] = await Promise.all([answer('no-redis', id), answer(route, id)]);
    if (isDeepStrictEqual(got, expected)) continue;
    const texts = [expected, got].map((one) => JSON.stringify(one));
    throw new Error(`/${route}/${id} of the ${client} service: expected ${texts[0]}, got ${texts[1]}`);
  }
}
