import { Counter, Gauge, type Registry, type RegistryContentType } from 'prom-client';
import type { CollectedClient } from './collected-client.js';
import { CountedHistogram } from './counted-histogram.js';
import { METRICS, type MetricDefinition, type Reading, type ScalarMetric } from './metrics.js';
import { wrongOption } from './wrong-option.js';

/** The metrics on one registry, and the clients that they are read from. */
export class RegisteredMetrics {
  readonly #clients = new Set<CollectedClient>();
  readonly #metrics: readonly object[];
  #readings: Map<CollectedClient, Reading> | undefined;

  constructor(
    readonly register: Registry<RegistryContentType>,
    readonly labelNames: readonly string[],
  ) {
    const taken = METRICS.find(({ name }) => register.getSingleMetric(name) !== undefined);
    if (taken !== undefined) {
      throw wrongOption(
        `options.register already has a metric named ${taken.name}, which collectMetrics() did not create`,
      );
    }
    this.#metrics = METRICS.map((metric) => this.#create(metric));
  }

  /** Whether the registry still has them. */
  isRegistered(): boolean {
    return METRICS.every(({ name }, index) => this.register.getSingleMetric(name) === this.#metrics[index]);
  }

  /** @returns a function that removes the client again. */
  add(added: CollectedClient): () => void {
    this.#checkFits(added);
    this.#clients.add(added);
    this.#readings = undefined;
    return () => {
      if (!this.#clients.delete(added)) return;
      this.#readings = undefined;
      if (this.#clients.size > 0 || !this.isRegistered()) return;
      for (const { name } of METRICS) this.register.removeSingleMetric(name);
    };
  }

  #checkFits(added: CollectedClient): void {
    if (added.labelNames.join() !== this.labelNames.join()) {
      throw wrongOption(
        `options.labels must have the same names as for the other clients on this registry, ${listed(this.labelNames)}, ` +
          `got ${listed(added.labelNames)}`,
      );
    }
    for (const present of this.#clients) {
      if (present.client === added.client) {
        throw wrongOption(
          `collectMetrics() expects a client only once per registry, got one that is registered as ${present.describeLabels()}`,
        );
      }
      if (present.describeLabels() === added.describeLabels()) {
        throw wrongOption(
          `options.labels must be different for each client on a registry, got ${added.describeLabels()} for a second one`,
        );
      }
    }
  }

  #create(metric: MetricDefinition): object {
    const readings = () => this.#read();
    if (metric.type === 'histogram') return new CountedHistogram(metric, this.labelNames, this.register, readings);
    const { name, help, label, type } = metric;
    const labelNames = label === undefined ? [...this.labelNames] : [...this.labelNames, label];
    const config = { name, help, labelNames, registers: [this.register as Registry] };
    if (type === 'counter') {
      return new Counter({
        ...config,
        collect() {
          this.reset();
          setAll(metric, readings(), (labels, value) => this.inc(labels, value));
        },
      });
    }
    return new Gauge({
      ...config,
      collect() {
        this.reset();
        setAll(metric, readings(), (labels, value) => this.set(labels, value));
      },
    });
  }

  /** One snapshot for all metrics of a scrape: the registry reads them before the next microtask. */
  #read(): Map<CollectedClient, Reading> {
    if (this.#readings === undefined) {
      this.#readings = new Map(Array.from(this.#clients, (collected) => [collected, collected.read()]));
      queueMicrotask(() => {
        this.#readings = undefined;
      });
    }
    return this.#readings;
  }
}

function setAll(
  { label, read }: ScalarMetric,
  readings: Iterable<readonly [CollectedClient, Reading]>,
  set: (labels: Record<string, string | number>, value: number) => void,
): void {
  for (const [{ labels }, reading] of readings) {
    const values = read(reading);
    if (typeof values === 'number') set({ ...labels }, values);
    else for (const [name, value] of Object.entries(values)) set({ ...labels, [label as string]: name }, value);
  }
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ');
}
