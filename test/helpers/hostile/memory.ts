import { once } from 'node:events';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { cold } from '../cold.js';
import { type Client, type Host, ready, until } from '../hosts.js';
import { startServer } from '../redis.js';
import { heapNow } from './heap.js';

export interface MemoryOptions {
  readonly host: Host;
  /** @default 'coalesced' */
  readonly kind?: 'plain' | 'coalesced';
  readonly commands: number;
  readonly reconnects: number;
  readonly samples: number;
  readonly progress?: (commands: number, reconnects: number, heap: number) => void;
}

export interface MemoryUse {
  readonly commands: number;
  readonly reconnects: number;
  /** Bytes of live objects at even distances. */
  readonly heaps: readonly number[];
}

const MOST_AT_ONCE = 500;

/** Commands of all kinds on one client whose connection breaks with commands in flight, again and again. */
export async function useMemory(options: MemoryOptions): Promise<MemoryUse> {
  const { host, commands, reconnects, samples } = options;
  const server = await startServer();
  const client: Client = new host.Redis(server.url, { retryStrategy: () => 1, maxRetriesPerRequest: null });
  client.on('error', () => {});
  if (options.kind !== 'plain') coalesce(client);
  let connections = 0;
  client.on('ready', () => void connections++);
  try {
    await once(client, 'ready');
    await client.set('key', 'value '.repeat(10));
    const perReconnect = Math.ceil(commands / reconnects);
    const heaps: number[] = [];
    let issued = 0;
    for (let broken = 1; broken <= reconnects; broken += 1) {
      for (let left = perReconnect; left > 0; ) {
        const size = Math.min(left, MOST_AT_ONCE);
        left -= size;
        issued += size;
        const burst = Array.from({ length: size }, (_, index) => issue(client, issued + index));
        if (left === 0) await breakConnection(client, () => connections);
        await Promise.all(burst);
      }
      await ready(client);
      if (Math.floor((broken * samples) / reconnects) > heaps.length) {
        const heap = heapNow();
        heaps.push(heap);
        options.progress?.(issued, connections - 1, heap);
      }
    }
    return { commands: issued, reconnects: connections - 1, heaps };
  } finally {
    client.disconnect();
    await server.stop();
  }
}

function issue(client: Client, number: number): Promise<unknown> {
  switch (number % 50) {
    case 0:
      return cold(client, 'GET', 'key') as Promise<unknown>;
    case 1:
      return client.mget('key', `none ${number}`);
    case 2:
      return client.hset('hash', 'field', number);
    case 3:
      return client.getBuffer('key');
    // An error is a reply too.
    case 4:
      return client.hget('key', 'field').catch(() => {});
    default:
      return client.get('key');
  }
}

/** With commands of this turn on their way. */
async function breakConnection(client: Client, connections: () => number): Promise<void> {
  const before = connections();
  await new Promise(setImmediate);
  (client as unknown as { stream: { destroy(): void } }).stream.destroy();
  await until(() => connections() > before, 'a new connection', 60_000);
}

/** What the heap grew by from the second quarter of the run to its last, as a share. */
export function growth(heaps: readonly number[]): number {
  const quarter = Math.floor(heaps.length / 4);
  if (quarter === 0) throw new Error(`expected 4 samples or more, got ${heaps.length}`);
  const mean = (list: readonly number[]): number => list.reduce((sum, heap) => sum + heap, 0) / list.length;
  return mean(heaps.slice(-quarter)) / mean(heaps.slice(quarter, 2 * quarter)) - 1;
}
