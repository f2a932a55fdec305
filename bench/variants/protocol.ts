/** What a variant's process is asked to do, and what it answers. */

import type { Dataset } from './data.js';

export const VARIANTS = {
  plain: 'ioredis, its defaults',
  'plain-resp2': 'the same with `protocol: 2`',
  plain5: 'ioredis 5, its defaults',
  auto: 'ioredis with `enableAutoPipelining`',
  auto5: 'the same with ioredis 5',
  iovalkey: 'iovalkey, its defaults',
  'node-redis': 'node-redis, its defaults, among them a timeout of 5 s on every command',
  'node-redis-no-timeout': 'node-redis with `commandOptions: { timeout: 0 }`',
  'node-redis-resp2': 'the same with `RESP: 2`',
  'node-redis-cache': 'node-redis without timeouts, with its client-side cache',
  glide: 'valkey-glide; its core is native, and its writes are those to that core',
  pipeline: 'ioredis, each burst a `pipeline()` written by hand',
  mget: 'ioredis, each burst one MGET',
  cork: 'coalesced with `hotPath: false`: cork mode',
  coalesced: '`new Redis(url)` of this package, its defaults',
  'coalesced-resp2': 'the same with `protocol: 2`',
  'coalesced-timeout': 'the same with `commandTimeout: 5000`',
  'coalesced-immediate': "the same with `schedule: 'immediate'`",
  'coalesced-cache': 'the same with `cache: true`',
  'coalesced-batch-channel': 'the same with a subscriber of `ioredis-coalesce:batch`',
  'coalesced-prometheus': 'the same, scraped by Prometheus every 100 ms',
  'coalesced-command-channel': 'the same with a subscriber of `ioredis:command`',
  'coalesced-otel': 'the same under OpenTelemetry, one span per command',
  'plain-command-channel': 'ioredis with a subscriber of `ioredis:command`',
  'plain-otel': 'ioredis under OpenTelemetry, one span per command',
  reference: 'a bare socket with a minimal encoder and parser, one promise per command and one flush per turn',
  cluster: 'ioredis `Cluster`',
  'cluster-auto': 'the same with `enableAutoPipelining`',
  'cluster-node-redis': "node-redis's `createCluster`, without its timeout",
  'cluster-coalesced': '`new Cluster(nodes)` of this package',
} as const;
export type VariantId = keyof typeof VARIANTS;

/** `call` is `call('get', key)`. `mixed` is four GETs, then a SET. `stats` and `scrape` send nothing. */
export type OperationId =
  | 'get'
  | 'set'
  | 'setex'
  | 'call'
  | 'mixed'
  | 'hget'
  | 'hgetall'
  | 'lrange'
  | 'zrange'
  | 'script'
  | 'pipeline-8'
  | 'pipeline-200'
  | 'multi'
  | 'stats'
  | 'scrape';

export type Workload =
  /** `timed: 'burst'` takes the latency of whole bursts in the timed rounds; it costs next to nothing. */
  | {
      readonly kind: 'burst';
      readonly operation: OperationId;
      readonly size: number;
      readonly data: Dataset;
      readonly timed?: 'burst';
      readonly writes?: number;
    }
  | {
      readonly kind: 'loops';
      readonly loops: number;
      readonly data: Dataset;
      readonly operation?: OperationId;
      /** SETs per second to the same keys by another client meanwhile. */
      readonly writes?: number;
    }
  /** GETs that fall due by the clock, whatever became of the ones before: so many per second, in steps of 1 ms. */
  | { readonly kind: 'rate'; readonly perSecond: number; readonly data: Dataset }
  /** Memory per command in flight, single or in one pipeline; or per value that was read and is cached. */
  | {
      readonly kind: 'memory';
      readonly commands: number;
      readonly data: Dataset;
      readonly of?: 'gets' | 'pipeline' | 'cached values';
    }
  | { readonly kind: 'package'; readonly name: string; readonly concurrency: number; readonly data: Dataset };

/** In microseconds. */
export interface Latency {
  readonly p50: number;
  readonly p95?: number;
  readonly p99: number;
  readonly p999?: number;
}

/** What the clients are opened with beside their variant's own options. */
export interface ClientOptions {
  /** The authority that signed the server's certificate, in PEM; makes it TLS. */
  readonly ca?: string;
  /** Of the coalesced variants. */
  readonly coalesce?: Readonly<Record<string, number | boolean | string>>;
}

/** What a task measured, by name. */
export type Measurements = Readonly<Record<string, number | readonly number[]>>;

/** One timed round of one variant. */
export interface Sample {
  /** Commands, requests, or what the case says. */
  readonly perSecond?: number;
  /** CPU of the client's process, microseconds per command. */
  readonly cpuUs?: number;
  /** CPU of the server, microseconds per command. */
  readonly serverCpuUs?: number;
  readonly latencyUs?: Latency;
  /** Heap and external memory of the client per command in flight. */
  readonly bytes?: number;
}

/** A sample as it is taken: what its figures were divided by stays with the process that measured. */
export interface Measured extends Sample {
  readonly commands: number;
}

/** Measured once per case and variant, outside of the timed rounds, because measuring it costs. */
export interface Probe {
  readonly writesPerCommand?: number;
  readonly latencyUs?: Latency;
}

/** CPU that a process spent while it should have been idle. */
export interface Idle {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

export type Request =
  | {
      readonly type: 'open';
      readonly variant: VariantId;
      readonly url: string;
      readonly prefix: string;
      readonly options: ClientOptions;
    }
  /** Checks every value, then runs the workload untimed. */
  | { readonly type: 'prepare'; readonly workload: Workload; readonly seconds: number; readonly verify: boolean }
  | { readonly type: 'measure'; readonly workload: Workload; readonly seconds: number }
  | { readonly type: 'probe'; readonly workload: Workload; readonly seconds: number }
  /** Runs one of `tasks/`. */
  | { readonly type: 'task'; readonly name: string; readonly options: Readonly<Record<string, unknown>> }
  | { readonly type: 'close' };

export type Answer =
  /** `unsupported`: why this version of the package has no such variant. */
  | { readonly type: 'opened'; readonly packagePath?: string; readonly unsupported?: string }
  | { readonly type: 'prepared'; readonly idle: Idle }
  | { readonly type: 'measured'; readonly sample: Measured }
  | { readonly type: 'probed'; readonly probe: Probe }
  | { readonly type: 'done'; readonly measurements: Measurements }
  | { readonly type: 'closed' }
  | { readonly type: 'failed'; readonly message: string };
