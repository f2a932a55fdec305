import { type EventEmitter, once } from 'node:events';
import type { ClientOptions } from './protocol.js';

/** What the workloads call; every library's own client is one, so that nothing stands between. */
export interface BenchClient {
  get(key: string): Promise<unknown>;
  set(key: string, value: string): Promise<unknown>;
  /** SET … EX. */
  setFor?(key: string, value: string, seconds: number): Promise<unknown>;
  call?(name: string, ...args: string[]): Promise<unknown>;
  hget?(key: string, field: string): Promise<unknown>;
  hgetall?(key: string): Promise<unknown>;
  smembers?(key: string): Promise<unknown>;
  lrange?(key: string, start: number, stop: number): Promise<unknown>;
  zrange?(key: string, start: number, stop: number): Promise<unknown>;
  blpop?(key: string, seconds: number): Promise<unknown>;
  pipeline?(): unknown;
  multi?(): unknown;
  defineCommand?(name: string, definition: { lua: string; numberOfKeys?: number }): void;
  readonly coalescer?: { stats(): { fallbacks: unknown }; flush(): void };
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

/** ioredis and iovalkey, of any version. */
type Library = { Redis: new (url: string, options: IoredisOptions) => IoredisLike };
type IoredisLike = EventEmitter & { disconnect(): void };

type Open = (url: string, options: ClientOptions) => Promise<OpenVariant>;
type CoalesceOptions = import('ioredis-coalesce').CoalesceOptions;
type NodeRedisOptions = import('redis').RedisClientOptions;
type IoredisOptions = { enableAutoPipelining?: boolean; commandTimeout?: number; tls?: { ca: string } };

/** What each is, and how it is opened; each loads only the library that it measures. */
export const VARIANTS = {
  plain: ['ioredis, its defaults', ioredis({})],
  plain5: ['ioredis 5, its defaults', ioredis({}, () => import('ioredis5'))],
  auto: ['ioredis with `enableAutoPipelining`', ioredis({ enableAutoPipelining: true })],
  auto5: ['the same with ioredis 5', ioredis({ enableAutoPipelining: true }, () => import('ioredis5'))],
  iovalkey: ['iovalkey, its defaults', ioredis({}, () => import('iovalkey'))],
  'node-redis': ['node-redis, its defaults, among them a timeout of 5 s on every command', nodeRedis({})],
  // node-redis puts a default of 5 s on every command unless this says 0.
  'node-redis-no-timeout': [
    'node-redis with `commandOptions: { timeout: 0 }`',
    nodeRedis({ commandOptions: { timeout: 0 } }),
  ],
  'node-redis-cache': ['node-redis without timeouts, with a client-side cache of 10,000', nodeRedisCache(10_000)],
  'node-redis-small-cache': ['the same, of 100', nodeRedisCache(100)],
  glide: ['valkey-glide; its core is native, and its writes are those to that core', openGlide],
  pipeline: [
    'ioredis, each burst a `pipeline()` written by hand',
    byHand(async (redis, keys) => {
      const pipeline = redis.pipeline();
      for (const key of keys) pipeline.get(key);
      return ((await pipeline.exec()) ?? []).map(([error, value]) => {
        if (error) throw error;
        return value;
      });
    }),
  ],
  mget: ['ioredis, each burst one MGET', byHand((redis, keys) => redis.mget(keys as string[]))],
  cork: ['coalesced with `fastPath: false`: the cork', coalesced({}, { fastPath: false })],
  coalesced: ['`new Redis(url)` of this package, its defaults', coalesced({})],
  'coalesced-timeout': ['the same with `commandTimeout: 5000`', coalesced({ commandTimeout: 5000 })],
  'coalesced-no-poll': ['the same with `busyPoll: false`', coalesced({}, { busyPoll: false })],
  'coalesced-tick': ["the same with `schedule: 'tick'`", coalesced({}, { schedule: 'tick' })],
  'coalesced-fused': ['the same with `fuseReads: true`', coalesced({}, { fuseReads: true })],
  'coalesced-cache': ['the same with `cache: true`', coalesced({}, { cache: true })],
  'coalesced-prefetch': ['the same with `cache: { prefetch: true }`', coalesced({}, { cache: { prefetch: true } })],
  'coalesced-small-cache': [
    'the same with `cache: { maxEntries: 100 }`',
    coalesced({}, { cache: { maxEntries: 100 } }),
  ],
  'coalesced-1000-in-flight': ['the same with `maxInFlight: 1000`', coalesced({}, { maxInFlight: 1000 })],
  'coalesced-batch-channel': ['the same with a subscriber of `ioredis-coalesce:batch`', coalesced({})],
  'coalesced-prometheus': ['the same, scraped by Prometheus every 100 ms', coalesced({})],
  'cork-otel': ['corked, under OpenTelemetry', coalesced({}, { fastPath: false })],
  'coalesced-otel': ['the same under OpenTelemetry, one span per command', coalesced({})],
  'plain-otel': ['ioredis under OpenTelemetry, one span per command', ioredis({})],
  'auto-otel': ['the same with `enableAutoPipelining`', ioredis({ enableAutoPipelining: true })],
  'span-otel': ['OpenTelemetry alone: around a `sendCommand` that sends nothing', spansAlone],
  reference: [
    'a bare socket with a minimal encoder and parser, one promise per command and one flush per turn',
    async (url, { ca }) => {
      const client = await (await import('./reference.js')).ReferenceClient.open(url, ca);
      return { client, close: () => client.close() };
    },
  ],
  cluster: ['ioredis `Cluster`', cluster(false)],
  'cluster-auto': ['the same with `enableAutoPipelining`', cluster(true)],
  'cluster-node-redis': [
    "node-redis's `createCluster`, without its timeout",
    async (url) => {
      const { createCluster } = await import('redis');
      return openedNodeRedis(createCluster({ rootNodes: [{ url }], commandOptions: { timeout: 0 } }));
    },
  ],
  'cluster-cork': ['ioredis `Cluster`, corked', cluster(false, true)],
  'cluster-coalesced': [
    '`new Cluster(nodes)` of this package',
    async (url) => {
      const { Cluster } = await import('ioredis-coalesce');
      return { ...(await opened(new Cluster([nodeOf(url)]))), packagePath: import.meta.resolve('ioredis-coalesce') };
    },
  ],
} satisfies Readonly<Record<string, readonly [text: string, Open]>>;
export type VariantId = keyof typeof VARIANTS;

function ioredis(own: IoredisOptions, load: () => Promise<Library> = () => import('ioredis')): Open {
  return async (url, { ca }) => opened(new (await load()).Redis(url, { ...own, ...tlsOf(ca) }));
}

function coalesced(own: IoredisOptions, coalesce: CoalesceOptions = {}): Open {
  return async (url, { ca }) => {
    const { Redis } = await import('ioredis-coalesce');
    const packagePath = import.meta.resolve('ioredis-coalesce');
    try {
      const options = { ...own, ...tlsOf(ca), coalesce };
      return { ...(await opened(new Redis(url, options))), packagePath };
    } catch (error) {
      const { code, message } = error as Error & { code?: string };
      throw code === 'COALESCE_ERR_OPTION' ? new UnsupportedError(message) : error;
    }
  };
}

/** What a span per command costs by itself: all replies of a turn come at its end. */
async function spansAlone(url: string): Promise<OpenVariant> {
  const { IORedisInstrumentation } = await import('@opentelemetry/instrumentation-ioredis');
  class Client {
    readonly options = { host: '127.0.0.1', port: 6379 };
    connect(): void {}
    sendCommand(command: { readonly promise: Promise<unknown> }): Promise<unknown> {
      return command.promise;
    }
  }
  const instrumentation = new IORedisInstrumentation({ requireParentSpan: false, enabled: false });
  const [definition] = (
    instrumentation as unknown as { init(): { patch?(module: unknown, version: string): void }[] }
  ).init();
  definition?.patch?.(Client, '6.0.0');
  const inner = new Client();
  const { client: real, close } = await ioredis({})(url, {});
  const values = new Map<string, unknown>();
  let waiting: { args: string[]; resolve(reply: unknown): void }[] = [];
  const send = (name: string, ...args: string[]): Promise<unknown> => {
    let resolve: (reply: unknown) => void = () => {};
    const promise = new Promise<unknown>((settle) => {
      resolve = settle;
    });
    const command = { name, args, promise, resolve, reject: () => {} };
    if (waiting.push(command) === 1) {
      setImmediate(() => {
        const commands = waiting;
        waiting = [];
        for (const each of commands) each.resolve(values.get(each.args[0] as string));
      });
    }
    return inner.sendCommand(command);
  };
  const read = async (key: string): Promise<unknown> => {
    const value = await real.get(key);
    values.set(key, value);
    return value;
  };
  return {
    client: {
      get: (key) => (values.has(key) ? send('get', key) : read(key)),
      set: (key, value) => {
        values.set(key, value);
        return send('set', key, value);
      },
    },
    close,
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

function nodeRedisCache(maxEntries: number): Open {
  const clientSideCache = { ttl: 0, maxEntries, evictPolicy: 'LRU' } as const;
  return nodeRedis({ commandOptions: { timeout: 0 }, RESP: 3, clientSideCache });
}

function nodeRedis(own: Omit<NodeRedisOptions, 'RESP'> & { RESP?: 3 }): Open {
  return async (url, { ca }) => {
    const { createClient } = await import('redis');
    const tls = ca === undefined ? {} : { socket: { tls: true, ca } };
    const client = createClient({ url, ...own, ...tls } as NodeRedisOptions);
    // Its names for the same commands, as methods of the same object.
    const { blPop: blpop, hGet: hget, hGetAll: hgetall, lRange: lrange, sMembers: smembers, zRange: zrange } = client;
    const setFor = (key: string, value: string, EX: number) => client.set(key, value, { EX });
    return openedNodeRedis(Object.assign(client, { blpop, hget, hgetall, lrange, smembers, zrange, setFor }));
  };
}

async function openedNodeRedis(
  client: EventEmitter & { connect(): Promise<unknown>; destroy(): void },
): Promise<OpenVariant> {
  // A connection that breaks makes the round worthless.
  client.on('error', (error) => {
    throw error;
  });
  await client.connect();
  return { client: client as unknown as BenchClient, close: () => client.destroy() };
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

function cluster(enableAutoPipelining: boolean, isCorked = false): Open {
  return async (url) => {
    const client = new (await import('ioredis')).Cluster([nodeOf(url)], { enableAutoPipelining });
    if (isCorked) (await import('ioredis-coalesce/cork')).cork(client);
    return opened(client);
  };
}

async function opened(client: IoredisLike): Promise<OpenVariant> {
  await once(client, 'ready');
  // Their overloads are too many for a common type.
  const redis = client as unknown as import('ioredis').Redis;
  const setFor = (key: string, value: string, seconds: number) => redis.set(key, value, 'EX', seconds);
  return { client: Object.assign(redis, { setFor }) as unknown as BenchClient, close: () => client.disconnect() };
}

function nodeOf(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port || 6379) };
}

function tlsOf(ca: string | undefined): { tls?: { ca: string } } {
  return ca === undefined ? {} : { tls: { ca } };
}
