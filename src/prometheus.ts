import { register as globalRegister, type Registry, type RegistryContentType } from 'prom-client';
import { CODES, coded, describe, describeType, wrongOption } from './errors.js';
import type { Coalesced } from './handle.js';
import { checkLabels, type Labels, RegisteredMetrics } from './prometheus/registered-metrics.js';
import { processWide } from './util/process-wide.js';

export type { Labels } from './prometheus/registered-metrics.js';

export interface CollectOptions {
  /** prom-client's registry that the metrics go to. @default prom-client's global one */
  readonly register?: Registry<RegistryContentType>;
  /**
   * Labels that distinguish this client from others on the same registry, such as `{ client: 'sessions' }`. All clients
   * of a registry have the same label names. @default none, which is enough for one client
   */
  readonly labels?: Labels;
}

const OPTIONS: readonly string[] = ['register', 'labels'] satisfies (keyof CollectOptions)[];

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
  checkOptions(options);
  const { register = globalRegister, labels = {} } = options;
  if (typeof (client as Partial<Coalesced> | null | undefined)?.coalescer?.stats !== 'function') {
    const expected = 'collectMetrics() expects a coalesced client, such as coalesce(new Redis())';
    throw coded(TypeError, CODES.CLIENT, `${expected}, got ${describeType(client)}`);
  }
  checkLabels(labels);
  if (typeof (register as Partial<Registry> | null)?.registerMetric !== 'function') {
    throw wrongOption(`options.register must be a Registry of prom-client, got ${describe(register)}`);
  }
  let metrics = registered.get(register);
  // `register.clear()` may have removed them.
  if (metrics === undefined || !metrics.isRegistered()) {
    metrics = new RegisteredMetrics(register, labels);
    registered.set(register, metrics);
  }
  return metrics.add({ client, labels });
}

function checkOptions(options: object): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw wrongOption(`options must be an object, got ${describe(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!OPTIONS.includes(key)) {
      throw wrongOption(`options.${key} is not an option; the options are ${OPTIONS.join(', ')}`);
    }
  }
}
