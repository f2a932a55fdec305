import { register as globalRegister, type Registry, type RegistryContentType } from 'prom-client';
import { CODES, coded, describeType } from './errors.js';
import type { Coalesced } from './handle.js';
import { type Rules, resolve, rule } from './options.js';
import type { Labels } from './prometheus/metrics.js';
import { checkedLabels, RegisteredMetrics } from './prometheus/registered-metrics.js';
import { processWide } from './util/process-wide.js';

export type { Labels } from './prometheus/metrics.js';

export interface CollectOptions {
  /** prom-client's registry that the metrics go to. @default prom-client's global one */
  readonly register?: Registry<RegistryContentType>;
  /**
   * Labels that distinguish this client from others on the same registry, such as `{ client: 'sessions' }`. All clients
   * of a registry have the same label names. @default none, which is enough for one client
   */
  readonly labels?: Labels;
}

const OPTIONS: Rules<CollectOptions> = {
  register: rule(
    globalRegister,
    'a Registry of prom-client',
    (value) => typeof (value as Partial<Registry> | null)?.registerMetric === 'function',
  ),
  labels: { byDefault: {}, check: checkedLabels },
};

/** The metrics of each registry. */
const registered = processWide('metrics', () => new WeakMap<object, RegisteredMetrics>());

/**
 * Exposes the counters of `coalescer.stats()` as Prometheus metrics named `redis_coalesce_…`. They are read once per
 * scrape of the registry, and cost nothing per command.
 *
 * A client that ended, or was detached, keeps its last counters until it is removed from the registry.
 *
 * @param client - a coalesced `Redis` or `Cluster`; a Cluster's nodes count together.
 * @returns a function that removes the client from the registry, and the metrics too if it was the last client.
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `client` is not coalesced; `COALESCE_ERR_OPTION` for options that do
 *   not fit, or labels that other clients of the registry do not have or have already.
 */
export function collectMetrics(client: Coalesced, options: CollectOptions = {}): () => void {
  const { register, labels } = resolve(options, 'options', OPTIONS, 'an object') as Required<CollectOptions>;
  if (typeof (client as Partial<Coalesced> | null | undefined)?.coalescer?.stats !== 'function') {
    const expected = 'collectMetrics() expects a coalesced client, such as coalesce(new Redis())';
    throw coded(TypeError, CODES.CLIENT, `${expected}, got ${describeType(client)}`);
  }
  let metrics = registered.get(register);
  // `register.clear()` may have removed them.
  if (metrics === undefined || !metrics.isRegistered()) {
    metrics = new RegisteredMetrics(register, labels);
    registered.set(register, metrics);
  }
  return metrics.add({ client, labels });
}
