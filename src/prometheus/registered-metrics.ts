import type { Metric, Registry, RegistryContentType } from 'prom-client';
import { wrongOption } from '../errors.js';
import type { Coalesced } from '../handle.js';
import { checked } from '../options.js';
import type { CoalescerStats } from '../stats.js';
import { type Labels, METRICS } from './metrics.js';

/** As Prometheus and prom-client have it. */
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Label names that clients cannot have. */
const OWN_LABELS: readonly string[] = ['path', 'reason', 'le'];

/** Throws for labels that these metrics cannot have. */
export function checkedLabels(value: unknown, name: string): Labels {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const labels = checked<Labels>(value, name, 'an object', isObject);
  for (const [label, content] of Object.entries(labels)) {
    if (OWN_LABELS.includes(label)) {
      throw wrongOption(`${name}.${label} is a label that these metrics already have; choose another name`);
    }
    checked(label, `${name}: a name`, 'letters, digits and _, and not begin with a digit', LABEL_NAME.test(label));
    const isContent = typeof content === 'string' || Number.isFinite(content);
    checked(content, `${name}.${label}`, 'a string or a finite number', isContent);
  }
  return labels;
}

/** One client on a registry. */
interface Collected {
  readonly client: Coalesced;
  readonly labels: Labels;
}

/** The metrics on one registry, and the clients that they are read from. */
export class RegisteredMetrics {
  readonly #clients = new Set<Collected>();
  readonly #metrics = new Map<string, Metric>();
  readonly #labelNames: string;
  #readings: (readonly [Collected, CoalescerStats])[] | undefined;

  constructor(
    readonly register: Registry<RegistryContentType>,
    labels: Labels,
  ) {
    this.#labelNames = namesOf(labels);
    for (const [type, metrics] of METRICS) {
      for (const [name, [help, read]] of Object.entries(metrics)) {
        const values = () =>
          this.#read().flatMap(([{ client, labels: own }, stats]) => {
            const found = read(stats, client.coalescer);
            const samples = typeof found === 'number' ? [{ value: found }] : found;
            return samples.map(({ value, labels, suffix }) => ({
              value,
              labels: { ...labels, ...own },
              ...(suffix && { metricName: `${name}${suffix}` }),
            }));
          });
        this.#metrics.set(name, readMetric(type, name, help, values));
      }
    }
    for (const name of this.#metrics.keys()) {
      if (register.getSingleMetric(name) === undefined) continue;
      throw wrongOption(`options.register already has a metric named ${name}, which collectMetrics() did not create`);
    }
    for (const metric of this.#metrics.values()) register.registerMetric(metric);
  }

  /** Whether the registry still has them. */
  isRegistered(): boolean {
    return [...this.#metrics].every(([name, metric]) => this.register.getSingleMetric(name) === metric);
  }

  /** @returns a function that removes the client again. */
  add(added: Collected): () => void {
    this.#checkFits(added);
    this.#clients.add(added);
    return () => {
      if (!this.#clients.delete(added) || this.#clients.size > 0 || !this.isRegistered()) return;
      for (const name of this.#metrics.keys()) this.register.removeSingleMetric(name);
    };
  }

  #checkFits({ client, labels }: Collected): void {
    const names = namesOf(labels);
    if (names !== this.#labelNames) {
      throw wrongOption(
        'options.labels must have the same names as for the other clients on this registry, ' +
          `${this.#labelNames || 'none'}, got ${names || 'none'}`,
      );
    }
    for (const present of this.#clients) {
      if (present.client === client) {
        throw wrongOption(
          `collectMetrics() expects a client only once per registry, got one that is registered as ${shown(present.labels)}`,
        );
      }
      if (shown(present.labels) === shown(labels)) {
        throw wrongOption(
          `options.labels must be different for each client on a registry, got ${shown(labels)} for a second one`,
        );
      }
    }
  }

  /** One snapshot for all metrics of a scrape: the registry reads them before the next microtask. */
  #read(): readonly (readonly [Collected, CoalescerStats])[] {
    if (this.#readings === undefined) {
      // After detach() and coalesce() a client has another coalescer, whose counters begin at zero.
      this.#readings = Array.from(this.#clients, (one) => [one, one.client.coalescer.stats()]);
      queueMicrotask(() => {
        this.#readings = undefined;
      });
    }
    return this.#readings;
  }
}

/**
 * What prom-client asks of a metric. Its own classes count by themselves; the values of this one have been counted
 * already, and are read when the registry asks for them.
 */
function readMetric(type: string, name: string, help: string, values: () => object[]): Metric {
  const described = { type, name, help, aggregator: 'sum' };
  const metric = {
    ...described,
    // prom-client changes the name, for OpenMetrics.
    get: async () => ({ ...described, name: metric.name, values: values() }),
    reset: () => {},
  };
  return metric as unknown as Metric;
}

/** In alphabetical order. */
function namesOf(labels: Labels): string {
  return Object.keys(labels).sort().join(', ');
}

/** `{client="cache"}` */
function shown(labels: Labels): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([name, value]) => `${name}=${JSON.stringify(String(value))}`).join(', ')}}`;
}
