import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchClient } from './clients.js';
import { gateOf } from './data.js';
import { Data, ioredisOf } from './operations.js';
import type { Measured, MemoryWorkload } from './protocol.js';

const SETTLE_MS = 100;
/** The gate opens by itself should the parent fail to open it. */
const GATE_SECONDS = 60;
const BURST = 500;

/**
 * Memory per command in flight, or per value kept in a client-side cache.
 *
 * For what is in flight, a BLPOP goes first on the connection: the server answers nothing that comes after it until the
 * list gets an element, and no other client of that server has to wait.
 *
 * @param openGate - gives the list its element, once everything is counted.
 */
export async function measureMemory(
  client: BenchClient,
  { commands, data: shape, of }: MemoryWorkload,
  prefix: string,
  openGate: () => Promise<void>,
): Promise<Measured> {
  const data = new Data(prefix, shape, 'get');
  if (of === 'cached values') return cachedValues(client, commands, data);
  if (client.blpop === undefined) throw new Error('the workload "memory" needs a client with blpop()');
  const replies = new Array<Promise<unknown> | undefined>(of === 'pipeline' ? 1 : commands).fill(undefined);
  const opened = client.blpop(gateOf(prefix), GATE_SECONDS);
  await sleep(SETTLE_MS);

  const before = memoryInUse();
  if (of === 'pipeline') {
    const pipeline = ioredisOf(client).pipeline();
    for (let index = 0; index < commands; index += 1) pipeline.get(data.key(index));
    replies[0] = pipeline.exec();
  } else {
    for (let index = 0; index < commands; index += 1) replies[index] = client.get(data.key(index));
  }
  await sleep(SETTLE_MS);
  const bytes = (memoryInUse() - before) / commands;

  await openGate();
  await opened;
  const all = await Promise.all(replies);
  const values = of === 'pipeline' ? (all[0] as [Error | null, unknown][]).map(([, value]) => value) : all;
  for (const [index, value] of values.entries()) {
    if (value === data.value(index)) continue;
    throw new Error(`${data.key(index)} should hold its own value, got ${String(value).slice(0, 60)}`);
  }
  return { commands, memory: bytes };
}

/** Keys of the data read so far: each round reads others, or its values would be cached already. */
let keysRead = 0;

/** Key and value are part of what is counted. */
async function cachedValues(client: BenchClient, commands: number, data: Data): Promise<Measured> {
  const before = memoryInUse();
  for (let first = 0; first < commands; first += BURST) {
    const indexes = Array.from({ length: Math.min(BURST, commands - first) }, (_, offset) => keysRead + first + offset);
    await Promise.all(indexes.map((index) => client.get(data.key(index))));
  }
  keysRead += commands;
  await sleep(SETTLE_MS);
  return { commands, memory: (memoryInUse() - before) / commands };
}

function memoryInUse(): number {
  collectGarbage();
  // `arrayBuffers` is part of `external`.
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error('the variants need node --expose-gc');
  globalThis.gc();
  globalThis.gc();
}
