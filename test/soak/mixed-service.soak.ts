/** Two services whose connections are cut, and whose Redis is killed now and then, for the whole time. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { expect, it, onTestFinished } from 'vitest';
import { bundled } from '../helpers/bundled.js';
import { growth } from '../helpers/hostile/memory.js';
import { sleep } from '../helpers/hosts.js';
import { startServer } from '../helpers/redis.js';
import { Relay } from '../helpers/relay.js';
import { soakScale } from './duration.js';
import type { Sample } from './programs/mixed-service.js';

const MINUTES = 15 * soakScale();
const SAMPLES = Math.max(12, Math.round(2 * MINUTES));
/** Of Redis, and of the connections, in samples. */
const RESTART_EVERY = 10;
const DOWN_MS = 2_000;

class CuttingProxy extends Relay {
  protected treat() {
    // Nothing is predicted where the server is near.
    return { delay: () => 1 };
  }
}

async function sample(child: ChildProcess, message: 'sample' | 'end'): Promise<Sample> {
  child.send(message);
  const [answer] = (await once(child, 'message')) as [Sample];
  return answer;
}

it(`services with Fastify and BullMQ, for ${MINUTES} minutes`, async () => {
  let server = await startServer();
  onTestFinished(() => server.stop());
  const proxy = new CuttingProxy(server.port);
  await proxy.listen();
  onTestFinished(() => proxy.close());
  const program = await bundled(new URL('programs/mixed-service.ts', import.meta.url).pathname);
  const services = ['traced', 'cached'].map((kind) => {
    const child = fork(program, [proxy.url, kind], { execArgv: ['--expose-gc'] });
    onTestFinished(() => void child.kill());
    return { kind, child, heaps: [] as number[], last: undefined as Sample | undefined };
  });
  for (let at = 1; at <= SAMPLES; at += 1) {
    await sleep((MINUTES * 60_000) / SAMPLES / 2);
    if (at % RESTART_EVERY === 0) {
      const { port } = server;
      await server.kill();
      await sleep(DOWN_MS);
      server = await startServer({ port });
    } else if (at % 2 === 0) proxy.reset();
    else {
      proxy.stall();
      await sleep(200);
      proxy.resume();
    }
    await sleep((MINUTES * 60_000) / SAMPLES / 2);
    for (const service of services) {
      const { heapMiB, wrong, ...rest } = await sample(service.child, at === SAMPLES ? 'end' : 'sample');
      service.heaps.push(heapMiB);
      service.last = { heapMiB, wrong, ...rest };
      console.log(`${service.kind}: heap ${heapMiB.toFixed(1)} MiB, ${JSON.stringify(rest)}, ${wrong.length} wrong`);
    }
  }
  for (const { kind, heaps, last } of services) {
    console.log(`${kind}: heap grown by ${(growth(heaps) * 100).toFixed(1)} %`);
    expect(last, kind).toMatchObject({ wrong: [], open: 0 });
    expect(last?.jobs, kind).toBeGreaterThan(0);
    expect(last?.observed, kind).toBeGreaterThan(last?.requests ?? 0);
    expect(growth(heaps), kind).toBeLessThan(0.1);
  }
  expect(services[1]?.last?.predictionsUsed).toBeGreaterThan(0);
});
