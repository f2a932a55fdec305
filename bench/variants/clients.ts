import type { ClientOptions, VariantId } from './protocol.js';
import { watchVariant } from './watch.js';

/** What the workloads call; every library's own client is one, so that nothing stands between. */
export interface BenchClient {
  get(key: string): Promise<unknown>;
  set(key: string, value: string): Promise<unknown>;
  call?(name: string, ...args: string[]): Promise<unknown>;
  hget?(key: string, field: string): Promise<unknown>;
  hgetall?(key: string): Promise<unknown>;
  lrange?(key: string, start: number, stop: number): Promise<unknown>;
  zrange?(key: string, start: number, stop: number): Promise<unknown>;
  blpop?(key: string, seconds: number): Promise<unknown>;
  pipeline?(): unknown;
  multi?(): unknown;
  defineCommand?(name: string, definition: { lua: string; numberOfKeys?: number }): void;
  readonly coalescer?: { stats(): { fallThroughs: unknown } };
  /** What Prometheus would be told. */
  scrape?(): Promise<string>;
  /** Reads a whole burst in one call, as people write it by hand. */
  many?(keys: readonly string[]): Promise<readonly unknown[]>;
}

export interface OpenVariant {
  readonly client: BenchClient;
  /** Where `ioredis-coalesce` was loaded from, for the variants that load it. */
  readonly packagePath?: string;
  close(): void;
}

/** A variant that this version of the package does not have yet. */
export class UnsupportedError extends Error {}

/** Of ioredis and iovalkey, of any version. */
interface IoredisLike {
  once(event: 'ready', listener: () => void): unknown;
  once(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  disconnect(): void;
}

type Open = (url: string, options: ClientOptions) => Promise<OpenVariant>;
type NodeRedisOptions = import('redis').RedisClientOptions;
type IoredisOptions = { protocol?: 2; enableAutoPipelining?: boolean; commandTimeout?: number };

/** Each loads only the library that it measures. */
const OPEN: Readonly<Record<VariantId, Open>> = {
  plain: ioredis({}),
  'plain-resp2': ioredis({ protocol: 2 }),
  'plain-command-channel': ioredis({}),
  'plain-otel': ioredis({}),
  auto: ioredis({ enableAutoPipelining: true }),
  plain5: async (url) => opened(new (await import('ioredis5')).Redis(url)),
  auto5: async (url) => opened(new (await import('ioredis5')).Redis(url, { enableAutoPipelining: true })),
  iovalkey: async (url) => opened(new (await import('iovalkey')).Redis(url)),
  'node-redis': nodeRedis({}),
  // node-redis puts a default of 5 s on every command unless this says 0.
  'node-redis-no-timeout': nodeRedis({ commandOptions: { timeout: 0 } }),
  'node-redis-resp2': nodeRedis({ commandOptions: { timeout: 0 }, RESP: 2 }),
  'node-redis-cache': nodeRedis({
    commandOptions: { timeout: 0 },
    RESP: 3,
    clientSideCache: { ttl: 0, maxEntries: 10_000, evictPolicy: 'LRU' },
  }),
  glide: openGlide,
  pipeline: byHand(async (redis, keys) => {
    const pipeline = redis.pipeline();
    for (const key of keys) pipeline.get(key);
    return ((await pipeline.exec()) ?? []).map(([error, value]) => {
      if (error) throw error;
      return value;
    });
  }),
  mget: byHand((redis, keys) => redis.mget(keys as string[])),
  cork: coalesced({}, { hotPath: false }),
  coalesced: coalesced({}),
  'coalesced-resp2': coalesced({ protocol: 2 }),
  'coalesced-timeout': coalesced({ commandTimeout: 5000 }),
  'coalesced-immediate': coalesced({}, { schedule: 'immediate' }),
  'coalesced-cache': coalesced({}, { cache: true }),
  'coalesced-batch-channel': coalesced({}),
  'coalesced-prometheus': coalesced({}),
  'coalesced-command-channel': coalesced({}),
  'coalesced-otel': coalesced({}),
  reference: async (url) => {
    const client = await (await import('./reference.js')).ReferenceClient.open(url);
    return { client, close: () => client.close() };
  },
  cluster: cluster(false),
  'cluster-auto': cluster(true),
  'cluster-coalesced': async (url, { coalesce }) => {
    const { Cluster } = await import('ioredis-coalesce');
    const client = new Cluster([nodeOf(url)], coalesce === undefined ? {} : { coalesce });
    return { ...(await opened(client)), packagePath: import.meta.resolve('ioredis-coalesce') };
  },
  'cluster-node-redis': async (url) => {
    const { createCluster } = await import('redis');
    const client = createCluster({ rootNodes: [{ url }], commandOptions: { timeout: 0 } });
    client.on('error', failFast);
    await client.connect();
    return { client: client as unknown as BenchClient, close: () => client.destroy() };
  },
};

export async function openVariant(variant: VariantId, url: string, options: ClientOptions): Promise<OpenVariant> {
  const watching = await watchVariant(variant);
  const open = await OPEN[variant](url, options);
  await watching(open.client);
  return open;
}

function ioredis(own: IoredisOptions): Open {
  return async (url, { ca }) => {
    const { Redis } = await import('ioredis');
    return opened(new Redis(url, { ...own, ...tlsOf(ca) }));
  };
}

function coalesced(own: IoredisOptions, ownCoalesce: ClientOptions['coalesce'] = {}): Open {
  return async (url, { ca, coalesce = {} }) => {
    const { Redis } = await import('ioredis-coalesce');
    const packagePath = import.meta.resolve('ioredis-coalesce');
    try {
      const options = { ...own, ...tlsOf(ca), coalesce: { ...ownCoalesce, ...coalesce } };
      return { ...(await opened(new Redis(url, options))), packagePath };
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      throw code === 'COALESCE_ERR_OPTION' ? new UnsupportedError(message) : error;
    }
  };
}

/** One call written by hand for each burst, on a plain client. */
function byHand(many: (redis: import('ioredis').Redis, keys: readonly string[]) => Promise<readonly unknown[]>): Open {
  return async (url) => {
    const { Redis } = await import('ioredis');
    const redis = new Redis(url);
    const { close } = await opened(redis);
    const client: BenchClient = {
      get: (key) => redis.get(key),
      set: (key, value) => redis.set(key, value),
      many: (keys) => many(redis, keys),
    };
    return { client, close };
  };
}

function nodeRedis(own: Omit<NodeRedisOptions, 'RESP'> & { RESP?: 2 | 3 }): Open {
  return async (url, { ca }) => {
    const { createClient } = await import('redis');
    const client = createClient({
      url,
      ...own,
      ...(ca === undefined ? {} : { socket: { tls: true, ca } }),
    } as NodeRedisOptions);
    client.on('error', failFast);
    await client.connect();
    // Its names for the same commands, as methods of the same object.
    const { blPop: blpop, hGet: hget, hGetAll: hgetall, lRange: lrange, zRange: zrange } = client;
    return {
      client: Object.assign(client, { blpop, hget, hgetall, lrange, zrange }) as unknown as BenchClient,
      close: () => client.destroy(),
    };
  };
}

async function openGlide(url: string): Promise<OpenVariant> {
  const { GlideClient, Logger } = await import('@valkey/valkey-glide');
  Logger.init('error');
  const { host, port } = nodeOf(url);
  // It refuses further commands at 1,000 unanswered ones unless this says more; 250 ms is its default timeout.
  const client = await GlideClient.createClient({
    addresses: [{ host, port }],
    inflightRequestsLimit: 1_000_000,
    requestTimeout: 60_000,
  });
  return { client: client as unknown as BenchClient, close: () => client.close() };
}

function cluster(enableAutoPipelining: boolean): Open {
  return async (url) => opened(new (await import('ioredis')).Cluster([nodeOf(url)], { enableAutoPipelining }));
}

async function opened(client: IoredisLike): Promise<OpenVariant> {
  await new Promise<void>((resolve, reject) => {
    client.once('error', reject);
    client.once('ready', () => {
      client.off('error', reject);
      resolve();
    });
  });
  // Their overloads are too many for a common type.
  return { client: client as unknown as BenchClient, close: () => client.disconnect() };
}

function nodeOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port || 6379) };
}

function tlsOf(ca: string | undefined): { tls?: { ca: string } } {
  return ca === undefined ? {} : { tls: { ca } };
}

/** A connection that breaks makes the round worthless. */
function failFast(error: Error): void {
  throw error;
}
