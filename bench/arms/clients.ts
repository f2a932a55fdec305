import type { ArmId, ClientOptions, Operation } from '../workload.js';

/** What the workloads call; every library's own client is one, so that nothing stands between. */
export interface BenchClient {
  get(key: string): Promise<unknown>;
  set(key: string, value: string): Promise<unknown>;
  call?(name: string, ...args: string[]): Promise<unknown>;
  hget?(key: string, field: string): Promise<unknown>;
  hgetall?(key: string): Promise<unknown>;
  lrange?(key: string, start: number, stop: number): Promise<unknown>;
  blpop?(key: string, seconds: number): Promise<unknown>;
  /** Reads a whole burst in one call, as people write it by hand. */
  many?(keys: readonly string[]): Promise<readonly unknown[]>;
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
export function openArm(arm: ArmId, url: string, options: ClientOptions): Promise<OpenArm> {
  switch (arm) {
    case 'plain':
      return openIoredis(url, options, {});
    case 'plain-resp2':
      return openIoredis(url, options, { protocol: 2 });
    case 'auto':
      return openIoredis(url, options, { enableAutoPipelining: true });
    case 'plain5':
      return openIoredis5(url, false);
    case 'auto5':
      return openIoredis5(url, true);
    case 'iovalkey':
      return openIovalkey(url);
    case 'node-redis':
      return openNodeRedis(url, options, {});
    // node-redis puts a default of 5 s on every command unless this says 0.
    case 'node-redis-no-timeout':
      return openNodeRedis(url, options, { commandOptions: { timeout: 0 } });
    case 'node-redis-resp2':
      return openNodeRedis(url, options, { commandOptions: { timeout: 0 }, RESP: 2 });
    case 'glide':
      return openGlide(url);
    case 'pipeline':
      return openPipeline(url);
    case 'mget':
      return openMget(url);
    case 'cork':
      return openCoalesced(url, options, { coalesce: { hotPath: false } });
    case 'coalesced':
      return openCoalesced(url, options, {});
    case 'coalesced-resp2':
      return openCoalesced(url, options, { protocol: 2 });
    case 'coalesced-timeout':
      return openCoalesced(url, options, { commandTimeout: 5000 });
    case 'reference':
      return openReference(url);
    case 'cluster':
      return openCluster(url, false);
    case 'cluster-auto':
      return openCluster(url, true);
    case 'cluster-coalesced':
      return openCoalescedCluster(url, options);
    case 'cluster-node-redis':
      return openNodeRedisCluster(url);
  }
}

/** For error messages: what a client of this arm cannot be asked for. */
export function lacks(operation: Operation): Error {
  return new Error(`the operation "${operation}" needs a client that has it`);
}

async function openIoredis(
  url: string,
  { ca }: ClientOptions,
  own: { protocol?: 2; enableAutoPipelining?: boolean },
): Promise<OpenArm> {
  const { Redis } = await import('ioredis');
  return opened(new Redis(url, { ...own, ...tlsOf(ca) }));
}

async function openIoredis5(url: string, enableAutoPipelining: boolean): Promise<OpenArm> {
  const { Redis } = await import('ioredis5');
  return opened(new Redis(url, { enableAutoPipelining }));
}

async function openIovalkey(url: string): Promise<OpenArm> {
  const { Redis } = await import('iovalkey');
  return opened(new Redis(url));
}

async function openCoalesced(
  url: string,
  { ca, coalesce }: ClientOptions,
  own: { protocol?: 2; commandTimeout?: number; coalesce?: { hotPath: boolean } },
): Promise<OpenArm> {
  const { Redis } = await import('ioredis-coalesce');
  const client = new Redis(url, { ...own, ...tlsOf(ca), ...(coalesce === undefined ? {} : { coalesce }) });
  return { ...(await opened(client)), packagePath: import.meta.resolve('ioredis-coalesce') };
}

/** A pipeline written by hand for each burst. */
async function openPipeline(url: string): Promise<OpenArm> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url);
  const { close } = await opened(redis);
  const many = async (keys: readonly string[]) => {
    const pipeline = redis.pipeline();
    for (const key of keys) pipeline.get(key);
    return ((await pipeline.exec()) ?? []).map(([error, value]) => {
      if (error) throw error;
      return value;
    });
  };
  return { client: { get: (key) => redis.get(key), set: (key, value) => redis.set(key, value), many }, close };
}

async function openMget(url: string): Promise<OpenArm> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(url);
  const { close } = await opened(redis);
  const many = (keys: readonly string[]) => redis.mget(keys as string[]);
  return { client: { get: (key) => redis.get(key), set: (key, value) => redis.set(key, value), many }, close };
}

async function openNodeRedis(
  url: string,
  { ca }: ClientOptions,
  own: { commandOptions?: { timeout: number }; RESP?: 2 },
): Promise<OpenArm> {
  const { createClient } = await import('redis');
  const client = createClient({ url, ...own, ...(ca === undefined ? {} : { socket: { tls: true, ca } }) });
  client.on('error', failFast);
  await client.connect();
  // Its names for the same commands, as methods of the same object.
  const { blPop: blpop, hGet: hget, hGetAll: hgetall, lRange: lrange } = client;
  return {
    client: Object.assign(client, { blpop, hget, hgetall, lrange }) as unknown as BenchClient,
    close: () => client.destroy(),
  };
}

async function openGlide(url: string): Promise<OpenArm> {
  const { GlideClient, Logger } = await import('@valkey/valkey-glide');
  Logger.init('error');
  const { hostname, port } = new URL(url);
  const addresses = [{ host: hostname, port: Number(port || 6379) }];
  // It refuses further commands at 1,000 unanswered ones unless this says more; 250 ms is its default time-out.
  const client = await GlideClient.createClient({
    addresses,
    inflightRequestsLimit: 1_000_000,
    requestTimeout: 60_000,
  });
  return { client: client as unknown as BenchClient, close: () => client.close() };
}

async function openReference(url: string): Promise<OpenArm> {
  const { ReferenceClient } = await import('./reference.js');
  const client = await ReferenceClient.open(url);
  return { client, close: () => client.close() };
}

async function openCluster(url: string, enableAutoPipelining: boolean): Promise<OpenArm> {
  const { Cluster } = await import('ioredis');
  return opened(new Cluster([nodeOf(url)], { enableAutoPipelining }));
}

async function openCoalescedCluster(url: string, { coalesce }: ClientOptions): Promise<OpenArm> {
  const { Cluster } = await import('ioredis-coalesce');
  const client = new Cluster([nodeOf(url)], coalesce === undefined ? {} : { coalesce });
  return { ...(await opened(client)), packagePath: import.meta.resolve('ioredis-coalesce') };
}

async function openNodeRedisCluster(url: string): Promise<OpenArm> {
  const { createCluster } = await import('redis');
  const client = createCluster({ rootNodes: [{ url }], commandOptions: { timeout: 0 } });
  client.on('error', failFast);
  await client.connect();
  return { client: client as unknown as BenchClient, close: () => client.destroy() };
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

function nodeOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

function tlsOf(ca: string | undefined): { tls?: { ca: string } } {
  return ca === undefined ? {} : { tls: { ca } };
}

/** A connection that breaks makes the round worthless. */
function failFast(error: Error): void {
  throw error;
}
