import { setTimeout as sleep } from 'node:timers/promises';
import { gateOf, keysOf, type Sample, valuesOf, type Workload } from '../workload.js';
import type { BenchClient } from './clients.js';

const SETTLE_MS = 100;
/** The gate opens by itself should the parent fail to open it. */
const GATE_SECONDS = 60;

/** The parent opens the gate when it is told that everything is counted. */
export type OpenGate = () => Promise<void>;

/**
 * Memory of commands that await their reply. A BLPOP goes first on the connection: the server answers nothing that
 * comes after it until the list gets an element, and nobody else on that server has to wait.
 */
export async function measureMemory(
  client: BenchClient,
  workload: Extract<Workload, { kind: 'memory' }>,
  prefix: string,
  openGate: OpenGate,
): Promise<Sample> {
  if (client.blpop === undefined) throw new Error('the workload "memory" needs a client with blpop()');
  const keys = keysOf(prefix, workload.data, 'get');
  const values = valuesOf(workload.data);
  const replies = new Array<Promise<unknown> | undefined>(workload.commands).fill(undefined);
  const gate = client.blpop(gateOf(prefix), GATE_SECONDS);
  await sleep(SETTLE_MS);

  const start = performance.now();
  const before = memoryInUse();
  for (let index = 0; index < workload.commands; index += 1) {
    replies[index] = client.get(keys[index % keys.length]!);
  }
  await sleep(SETTLE_MS);
  const bytes = (memoryInUse() - before) / workload.commands;

  await openGate();
  await gate;
  for (const [index, reply] of (await Promise.all(replies)).entries()) {
    if (reply !== values[index % values.length]) {
      throw new Error(`${keys[index % keys.length]} should hold its own value, got ${String(reply).slice(0, 60)}`);
    }
  }
  return { commands: workload.commands, seconds: (performance.now() - start) / 1000, bytes };
}

function memoryInUse(): number {
  collectGarbage();
  // `arrayBuffers` is part of `external`.
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error('the arms need node --expose-gc');
  globalThis.gc();
  globalThis.gc();
}
