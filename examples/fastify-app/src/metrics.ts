import type { Redis } from 'ioredis';
import type { Coalesced } from 'ioredis-coalesce';
import { collectMetrics } from 'ioredis-coalesce/prometheus';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

export interface Metrics {
  registry: Registry;
  requestSeconds: Histogram<'method' | 'route' | 'status'>;
  /** Adds a client's counters, under its name; a plain client has none. */
  collect(client: string, redis: Redis): void;
}

/** A registry per application, so that two in one process do not clash; `redis` is the shop's client. */
export function createMetrics(redis: Redis): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const requestSeconds = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'How long requests took, by route and status',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
    registers: [registry],
  });
  new Gauge({
    name: 'redis_up',
    help: 'Whether the connection to Redis is ready',
    registers: [registry],
    collect() {
      this.set(redis.status === 'ready' ? 1 : 0);
    },
  });
  const collect = (client: string, from: Redis): void => {
    if (isCoalesced(from)) collectMetrics(from, { register: registry, labels: { client } });
  };
  collect('shop', redis);
  return { registry, requestSeconds, collect };
}

export function isCoalesced(redis: Redis): redis is Redis & Coalesced {
  return 'coalescer' in redis;
}
