/** What a variant's process runs, and what is measured of it. */

import type { Dataset, OperationId } from './data.js';

interface Burst {
  readonly kind: 'burst';
  readonly operation: OperationId;
  readonly size: number;
  readonly data: Dataset;
  /** SETs per second to the same keys by another client meanwhile. */
  readonly writes?: number;
  /** Another client reads a key meanwhile, again a millisecond after each reply. */
  readonly bystander?: true;
}

interface Loops extends Pick<Burst, 'data' | 'writes'> {
  readonly kind: 'loops';
  readonly loops: number;
  readonly operation?: OperationId;
  /** Shared by the loops, in turn. @default 1 */
  readonly connections?: number;
}

/** Memory per command in flight, single or in one pipeline; or per value that was read and is cached. */
export interface MemoryWorkload extends Pick<Burst, 'data'> {
  readonly kind: 'memory';
  readonly commands: number;
  readonly of?: 'pipeline' | 'cached values';
}

export interface PackageWorkload extends Pick<Burst, 'data'> {
  readonly kind: 'package';
  readonly name: string;
  readonly concurrency: number;
}

/**
 * An HTTP service that sends some commands for each request, in `Promise.all`. Requests come at random times (Poisson)
 * at a mean rate; where there is none, each connection sends its next request as soon as it has a response.
 */
export interface ServiceWorkload extends Pick<Burst, 'data'> {
  readonly kind: 'service';
  /** `request`: the seven commands of a request of production, in three round trips, by Fastify. */
  readonly operation: 'get' | 'hget' | 'request';
  /** Per request, of as many keys. */
  readonly commands: number;
  /** HTTP connections; those of a service's first workload stay. @default 50 */
  readonly connections?: number;
  /** Requests per second; with 0 the figures are per second. */
  readonly rate?: number;
  /** Of the rate that the case's first variant manages, which is measured first. */
  readonly share?: number;
}

export type TimedWorkload = Burst | Loops;
export type Workload = TimedWorkload | MemoryWorkload | PackageWorkload | ServiceWorkload;

/** What the clients are opened with beside their variant's own options. */
export interface ClientOptions {
  /** The authority that signed the server's certificate, in PEM; makes it TLS. */
  readonly ca?: string;
}

/** Each with what it is called, and its unit. Times are in microseconds. */
export const METRICS = {
  throughput: { title: 'throughput', unit: '/s' },
  /** Of the client's process, per command or per request. */
  cpu: { title: 'client CPU', unit: 'µs' },
  serverCpu: { title: 'server CPU', unit: 'µs' },
  /** Of a burst; of the commands of one loop among the loops; of a request. */
  p50: { title: 'median latency', unit: 'µs' },
  p99: { title: 'p99 latency', unit: 'µs' },
  p999: { title: 'p99.9 latency', unit: 'µs' },
  utilization: { title: 'event loop utilization', unit: '' },
  /** Heap and external memory of the client per command in flight. */
  memory: { title: 'memory', unit: 'B' },
  /** Socket writes per command, counted once, because counting costs. */
  writes: { title: 'writes per command', unit: '' },
  bystander: { title: 'p99 of another client', unit: 'µs' },
  /** Of what makes the load of a service, per request, and how late that sends one. */
  loadCpu: { title: 'CPU of the load', unit: 'µs' },
  late: { title: 'median lateness of a request', unit: 'µs' },
} as const satisfies Readonly<Record<string, { title: string; unit: string }>>;
export type Metric = keyof typeof METRICS;

/** Of one timed round of one variant. */
export type Sample = Partial<Readonly<Record<Metric, number>>>;

/** A sample as it is taken. */
export interface Measured extends Sample {
  /** Commands or requests that the figures were divided by. */
  readonly commands: number;
}
