import type { Metric, Registry, RegistryContentType } from 'prom-client';
import { describe, wrongOption } from '../errors.js';
import type { Coalesced } from '../handle.js';
import type { CoalescerStats } from '../stats.js';
import { COUNTERS, GAUGES, HISTOGRAMS, type HistogramMetric } from './metrics.js';

export type Labels = Readonly<Record<string, string | number>>;

/** As Prometheus and prom-client have it. */
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Label names that clients cannot have. */
const OWN_LABELS: readonly string[] = ['path', 'reason', 'le'];

/** Throws for labels that these metrics cannot have. */
export function checkLabels(labels: Labels): void {
  if (typeof labels !== 'object' || labels === null || Array.isArray(labels)) {
    throw wrongOption(`options.labels must be an object, got ${describe(labels)}`);
  }
  for (const [name, value] of Object.entries(labels)) {
    if (OWN_LABELS.includes(name)) {
      throw wrongOption(`options.labels.${name} is a label that these metrics already have; choose another name`);
    }
    if (!LABEL_NAME.test(name)) {
      throw wrongOption(
        `options.labels: a name must be letters, digits and _, and not begin with a digit, got ${describe(name)}`,
      );
    }
    if (typeof value !== 'string' && !Number.isFinite(value)) {
      throw wrongOption(`options.labels.${name} must be a string or a finite number, got ${describe(value)}`);
    }
  }
}

interface Value {
  readonly value: number;
  readonly labels: Labels;
  readonly metricName?: string;
}

/**
 * What prom-client asks of a metric. Its own classes count by themselves; the values of this one have been counted
 * already, and are read when the registry asks for them.
 */
class ReadMetric {
  readonly aggregator = 'sum';

  constructor(
    readonly type: 'counter' | 'gauge' | 'histogram',
    /** prom-client changes it, for OpenMetrics. */
    public name: string,
    readonly help: string,
    readonly values: () => Value[],
  ) {}

  async get(): Promise<object> {
    const { type, name, help, aggregator } = this;
    return { type, name, help, aggregator, values: this.values() };
  }

  reset(): void {}
}

/** One client on a registry. */
interface Collected {
  readonly client: Coalesced;
  readonly labels: Labels;
}

/** The metrics on one registry, and the clients that they are read from. */
export class RegisteredMetrics {
  readonly #clients = new Set<Collected>();
  readonly #metrics = new Map<string, ReadMetric>();
  readonly #labelNames: string;
  #readings: (readonly [Collected, CoalescerStats])[] | undefined;

  constructor(
    readonly register: Registry<RegistryContentType>,
    labels: Labels,
  ) {
    this.#labelNames = namesOf(labels);
    for (const [type, metrics] of [
      ['counter', COUNTERS],
      ['gauge', GAUGES],
    ] as const) {
      for (const [name, [help, read, label]] of Object.entries(metrics)) {
        const values = ([{ client, labels }, stats]: readonly [Collected, CoalescerStats]): Value[] => {
          const value = read(stats, client.coalescer);
          if (typeof value === 'number') return [{ value, labels: { ...labels } }];
          return Object.entries(value).map(([of, count]) => ({ value: count, labels: { ...labels, [label!]: of } }));
        };
        this.#metrics.set(name, new ReadMetric(type, name, help, () => this.#read().flatMap(values)));
      }
    }
    for (const [name, metric] of Object.entries(HISTOGRAMS)) {
      const values = ([{ client, labels }, stats]: readonly [Collected, CoalescerStats]) =>
        histogram(name, metric, metric.read(stats, client.coalescer), labels);
      this.#metrics.set(name, new ReadMetric('histogram', name, metric.help, () => this.#read().flatMap(values)));
    }
    for (const name of this.#metrics.keys()) {
      if (register.getSingleMetric(name) === undefined) continue;
      throw wrongOption(`options.register already has a metric named ${name}, which collectMetrics() did not create`);
    }
    for (const metric of this.#metrics.values()) register.registerMetric(metric as unknown as Metric);
  }

  /** Whether the registry still has them. */
  isRegistered(): boolean {
    return [...this.#metrics].every(
      ([name, metric]) => this.register.getSingleMetric<string>(name) === (metric as unknown),
    );
  }

  /** @returns a function that removes the client again. */
  add(added: Collected): () => void {
    this.#checkFits(added);
    this.#clients.add(added);
    this.#readings = undefined;
    return () => {
      if (!this.#clients.delete(added)) return;
      this.#readings = undefined;
      if (this.#clients.size > 0 || !this.isRegistered()) return;
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

/** In alphabetical order. */
function namesOf(labels: Labels): string {
  return Object.keys(labels).sort().join(', ');
}

/** `{client="cache"}` */
function shown(labels: Labels): string {
  const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([name, value]) => `${name}=${JSON.stringify(String(value))}`).join(', ')}}`;
}

/** Cumulated, as Prometheus has it. */
function histogram(
  name: string,
  { scale, exponents: [lowest, highest] }: HistogramMetric,
  { counts, sum }: ReturnType<HistogramMetric['read']>,
  labels: Labels,
): Value[] {
  const upTo = (bound: number) =>
    Object.entries(counts).reduce((total, [upper, count]) => (Number(upper) <= bound ? total + count : total), 0);
  const bucket = (le: string | number, bound: number) => ({
    metricName: `${name}_bucket`,
    value: upTo(bound),
    labels: { le, ...labels },
  });
  const bounds = Array.from({ length: highest - lowest + 1 }, (_, index) => 2 ** (lowest + index));
  const all = bucket('+Inf', Number.POSITIVE_INFINITY);
  return [
    ...bounds.map((bound) => bucket(bound / scale, bound)),
    all,
    { metricName: `${name}_sum`, value: sum, labels: { ...labels } },
    { metricName: `${name}_count`, value: all.value, labels: { ...labels } },
  ];
}
