/** What is measured, and what it should come to, as data. */

import type { RouteId, Variant } from './http/types.js';
import type { ArmId, Workload } from './workload.js';

export const METRICS = {
  throughput: { title: 'throughput', unit: '/s' },
  cpu: { title: 'client CPU', unit: 'µs' },
  serverCpu: { title: 'server CPU', unit: 'µs' },
  p50: { title: 'median latency', unit: 'µs' },
  p99: { title: 'p99 latency', unit: 'µs' },
  memory: { title: 'memory', unit: 'B' },
} as const;
export type Metric = keyof typeof METRICS;

/** The server driven by its own benchmark tool: no Node in the way. */
export const SERVER_LIMIT = 'redis-benchmark';
export type HttpVariant = 'plain' | 'coalesced' | 'pipeline' | 'no-redis';
export type Contestant = ArmId | HttpVariant | typeof SERVER_LIMIT;

export interface Bar {
  readonly metric: Metric;
  readonly of: Contestant;
  /** `absolute`: compared with the number itself. `best-case`: each case with the row's best one. */
  readonly versus: Contestant | 'absolute' | 'best-case';
  readonly op: '<=' | '>=';
  readonly bar?: number;
  readonly stretch?: number;
}

export interface Case {
  readonly id: string;
  readonly workload: Workload;
}

interface RowBase {
  readonly id: string;
  readonly title: string;
  readonly bars: readonly Bar[];
}

/**
 * What the row runs against; the run's own server if it is not said. `cluster` has 3 masters; `cluster-of-one` is for
 * comparing a Cluster with a client of one node at the same server.
 */
export type ServerKind = 'cluster' | 'cluster-of-one' | 'tls';

export interface ClientRow extends RowBase {
  readonly kind: 'client';
  readonly server?: ServerKind;
  /** Rows beside the design's table: fewer and shorter rounds, so that the whole stays within half an hour. */
  readonly brief?: true;
  readonly contestants: readonly (ArmId | typeof SERVER_LIMIT)[];
  readonly cases: readonly Case[];
}

/** A row of the Fastify bench: which route, and which client, each contestant is. */
export interface HttpRow extends RowBase {
  readonly kind: 'http';
  readonly contestants: Readonly<Partial<Record<HttpVariant, { route: RouteId; client: Variant }>>>;
}

export type Row = ClientRow | HttpRow;

/** Sizes from which the CPU per command should be flat. */
export const FLAT_FROM = 50;
