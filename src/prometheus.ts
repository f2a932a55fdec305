import { register as globalRegister, type Registry, type RegistryContentType } from 'prom-client';
import { CODES, describe, withCode } from './errors.js';
import type { Coalesced } from './handle.js';
import { CollectedClient, type Labels } from './prometheus/collected-client.js';
import { RegisteredMetrics } from './prometheus/registered-metrics.js';
import { processWide } from './util/process-wide.js';

export type { Labels } from './prometheus/collected-client.js';

export interface CollectOptions {
  /** prom-client's registry that the metrics go to. @default prom-client's global one */
  readonly register?: Registry<RegistryContentType>;
  /**
   * What tells this client from others on the same registry, such as `{ client: 'sessions' }`. The same names for all
   * of them. @default none, which is enough for one client
   */
  readonly labels?: Labels;
}

/** What has been registered, by registry. */
const registered = processWide('metrics', () => new WeakMap<object, RegisteredMetrics>());

/**
 * Exposes what `coalescer.stats()` counts as Prometheus metrics named `redis_coalesce_…`. Counters are read when the
 * registry is scraped, once a scrape; commands cost nothing more for it.
 *
 * A client that ended, or was detached, keeps its last counters until it is taken off the registry.
 *
 * @param client - a coalesced `Redis` or `Cluster`; a Cluster's nodes count together.
 * @returns a function that takes the client off the registry, and the metrics too when it was the last one.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `client` is not coalesced; `COALESCE_ERR_OPTION` for options that do
 *   not fit, or labels that other clients of the registry do not have or have already.
 */
export function collectMetrics(client: Coalesced, options: CollectOptions = {}): () => void {
  const { register = globalRegister, labels = {} } = options;
  const collected = new CollectedClient(client, labels);
  if (typeof (register as Partial<Registry> | null)?.registerMetric !== 'function') {
    throw withCode(
      new TypeError(`ioredis-coalesce: options.register must be a Registry of prom-client, got ${describe(register)}`),
      CODES.OPTION,
    );
  }
  let metrics = registered.get(register);
  // `register.clear()` has removed them behind our back.
  if (metrics === undefined || !metrics.isRegistered()) {
    metrics = new RegisteredMetrics(register, collected.labelNames);
    registered.set(register, metrics);
  }
  return metrics.add(collected);
}
