import type { ArmId } from '../workload.js';

/** What the workloads call; every library's own client is one, so that nothing stands between. */
export interface BenchClient {
  get(key: string): Promise<string | null>;
  set(key: string, value: string): Promise<unknown>;
  call?(name: string, ...args: string[]): Promise<unknown>;
  blpop?(key: string, seconds: number): Promise<unknown>;
}

export interface OpenArm {
  readonly client: BenchClient;
  /** Where `ioredis-coalesce` was loaded from, for the arms that load it. */
  readonly packagePath?: string;
  close(): void;
}

interface IoredisLike extends BenchClient {
  readonly status: string;
  once(event: 'ready', listener: () => void): unknown;
  once(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  disconnect(): void;
}

/** Each arm loads only the library that it measures. */
export function openArm(arm: ArmId, url: string): Promise<OpenArm> {
  switch (arm) {
    case 'plain':
      return openIoredis(url, false);
    case 'auto':
      return openIoredis(url, true);
    case 'node-redis':
      return openNodeRedis(url, true);
    case 'node-redis-no-timeout':
      return openNodeRedis(url, false);
    case 'cork':
      return openCoalesced(url, { coalesce: { hotPath: false } });
    case 'coalesced':
      return openCoalesced(url, {});
    case 'coalesced-timeout':
      return openCoalesced(url, { commandTimeout: 5000 });
    case 'reference':
      return openReference(url);
  }
}

async function openIoredis(url: string, enableAutoPipelining: boolean): Promise<OpenArm> {
  const { Redis } = await import('ioredis');
  return opened(new Redis(url, { enableAutoPipelining }));
}

async function openCoalesced(
  url: string,
  options: { commandTimeout?: number; coalesce?: { hotPath: boolean } },
): Promise<OpenArm> {
  const { Redis } = await import('ioredis-coalesce');
  return { ...(await opened(new Redis(url, options))), packagePath: import.meta.resolve('ioredis-coalesce') };
}

async function openNodeRedis(url: string, timeouts: boolean): Promise<OpenArm> {
  const { createClient } = await import('redis');
  // node-redis puts a default of 5 s on every command unless this says 0.
  const client = createClient(timeouts ? { url } : { url, commandOptions: { timeout: 0 } });
  client.on('error', failFast);
  await client.connect();
  return { client, close: () => client.destroy() };
}

async function openReference(url: string): Promise<OpenArm> {
  const { ReferenceClient } = await import('./reference.js');
  const client = await ReferenceClient.open(url);
  return { client, close: () => client.close() };
}

async function opened(client: IoredisLike): Promise<OpenArm> {
  await new Promise<void>((resolve, reject) => {
    client.once('error', reject);
    client.once('ready', () => {
      client.off('error', reject);
      resolve();
    });
  });
  return { client, close: () => client.disconnect() };
}

/** A connection that breaks makes the round worthless. */
function failFast(error: Error): void {
  throw error;
}
