import type { LoadResult } from '../../examples/fastify-app/src/live/load.js';

export type { LoadRequest, LoadResult } from '../../examples/fastify-app/src/live/load.js';

export const ROUTES = [
  { id: 'sequential', title: '8 sequential awaits' },
  { id: 'parallel', title: '8 in Promise.all' },
  { id: 'pipeline', title: 'hand-written pipeline' },
  { id: 'no-redis', title: 'no Redis at all' },
] as const;

export type RouteId = (typeof ROUTES)[number]['id'];

export const VARIANTS = ['plain', 'coalesced'] as const;

export type Variant = (typeof VARIANTS)[number];

/** Concurrent HTTP connections. */
export const CONNECTIONS = 30;

/** One timed run of one route of one service. */
export interface FastifyRow {
  route: RouteId;
  variant: Variant;
  /** From 1. */
  round: number;
  requestsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  serviceCpuUsPerRequest: number;
  redisCpuUsPerRequest: number;
  /** Counted in an untimed pass of its own, so the same in every round. */
  writesPerRequest: number;
}

export interface Plan {
  connections: number;
  rounds: number;
  /** How long each timed run takes. */
  seconds: number;
  warmUpSeconds: number;
  /** Requests per route in the pass that counts socket writes. */
  countedRequests: number;
}

/** What a service says about itself, so far. */
export interface ServiceUsage {
  cpuUs: number;
  /** To Redis; only counted where asked for. */
  writes: number;
}

/** What the load process answers. */
export type LoadAnswer = LoadResult | { error: string };
