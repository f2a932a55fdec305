import { execFileSync } from 'node:child_process';
import type { CacheOptions, CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { type CoalescedClient, ioredis6, ready, until } from '../hosts.js';
import { uniquePrefix } from '../redis.js';

export const hitsOf = (client: CoalescedClient): number => client.coalescer.stats().cache?.hits ?? 0;

/** A client that Redis tells of changes by now; of keys with the prefix `other:`, too. */
export async function cached(
  url: string,
  cache: boolean | CacheOptions,
  options = {},
  coalesceOptions: CoalesceOptions = {},
): Promise<CoalescedClient> {
  const client = await ready(ioredis6.createCoalesced(url, options, { ...coalesceOptions, cache }));
  const key = `other:${uniquePrefix('armed')}`;
  await until(() => {
    void client.get(key).catch(() => {});
    return hitsOf(client) > 0;
  }, 'a read is answered from memory');
  await client.ping();
  return client;
}

/** Whether this read is answered without a command. */
export async function fromMemory(client: CoalescedClient, read: () => Promise<unknown>): Promise<boolean> {
  const before = hitsOf(client);
  await read();
  return hitsOf(client) === before + 1;
}

/** Reads until the answer comes from memory, and nothing is on its way. */
export async function keep(client: CoalescedClient, ...reads: (() => Promise<unknown>)[]): Promise<void> {
  for (const read of reads) {
    for (let attempt = 0; !(await fromMemory(client, read)); attempt += 1) {
      if (attempt === 10) throw new Error('expected a read to be answered from memory, it never was');
    }
  }
  await client.ping();
}

/** Synchronous work. */
export function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

/** Another process changes a key, and has had the reply, while this one does not let its loop turn. */
export function elsewhere(url: string, program: string): void {
  execFileSync(process.execPath, [
    '--input-type=module',
    '-e',
    `import { Redis } from 'ioredis'; const c = new Redis(${JSON.stringify(url)}); ${program}; await c.quit();`,
  ]);
}
