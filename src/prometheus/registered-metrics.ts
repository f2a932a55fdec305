import { Counter, Gauge, Histogram, type Registry, type RegistryContentType } from 'prom-client';
import { CODES, describe, describeType, withCode } from '../errors.js';
import type { Coalesced } from '../handle.js';
import {
  type HistogramMetric,
  METRICS,
  type MetricDefinition,
  type Reading,
  type ScalarMetric,
  wrongOption,
} from './metrics.js';

export type Labels = Readonly<Record<string, string | number>>;

/** As Prometheus and prom-client have it. */
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
/** Label names that clients cannot have. */
const OWN_LABELS: readonly string[] = ['path', 'reason', 'le'];

/** One client on a registry. */
export class CollectedClient {
  /** In alphabetical order. */
  readonly labelNames: readonly string[];

  constructor(
    readonly client: Coalesced,
    readonly labels: Labels,
  ) {
    if (!isCoalesced(client)) {
      throw withCode(
        new TypeError(
          `ioredis-coalesce: collectMetrics() expects a coalesced client, such as coalesce(new Redis()), got ${describeType(client)}`,
        ),
        CODES.CLIENT,
      );
    }
    checkLabels(labels);
    this.labelNames = Object.keys(labels).sort();
  }

  read(): Reading {
    // Another one after detach() and coalesce(); its counters begin at zero.
    const { coalescer } = this.client;
    return { stats: coalescer.stats(), maxInFlight: coalescer.options.maxInFlight, attached: coalescer.enabled };
  }

  /** `{client="cache"}` */
  describeLabels(): string {
    const pairs = this.labelNames.map((name) => `${name}=${JSON.stringify(String(this.labels[name]))}`);
    return `{${pairs.join(', ')}}`;
  }
}

function isCoalesced(client: Coalesced): boolean {
  return typeof (client as Partial<Coalesced> | null | undefined)?.coalescer?.stats === 'function';
}

function checkLabels(labels: Labels): void {
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

type Exposed = Awaited<ReturnType<Histogram['get']>>;
type ExposedValue = Exposed['values'][number];

/**
 * prom-client's histogram, except that its values are not observed one by one: they have been counted already, in
 * buckets whose bounds are powers of two, and are read when the registry asks for them.
 */
export class CountedHistogram extends Histogram {
  readonly #metric: HistogramMetric;
  readonly #readings: () => Iterable<readonly [CollectedClient, Reading]>;

  constructor(
    metric: HistogramMetric,
    labelNames: readonly string[],
    register: Registry<RegistryContentType>,
    readings: () => Iterable<readonly [CollectedClient, Reading]>,
  ) {
    const { name, help } = metric;
    super({ name, help, labelNames: [...labelNames], registers: [register as Registry] });
    this.#metric = metric;
    this.#readings = readings;
  }

  override async get(): Promise<Exposed> {
    const { name, help } = this.#metric;
    // prom-client declares the type of metrics as an enum that does not exist at run time.
    return {
      name,
      help,
      type: 'histogram' as unknown as Exposed['type'],
      aggregator: 'sum',
      values: this.#values(),
      collect() {},
    };
  }

  /** prom-client asks for this instead of `get()` when it writes text; not in its types. */
  getForPromString(): Promise<Exposed> {
    return this.get();
  }

  #values(): ExposedValue[] {
    const values: ExposedValue[] = [];
    for (const [{ labels }, reading] of this.#readings()) {
      const { counts, sum } = this.#metric.read(reading);
      const { name, scale } = this.#metric;
      const add = (suffix: string, value: number, own: Record<string, string | number> = {}) =>
        void values.push({ metricName: `${name}_${suffix}`, value, labels: { ...own, ...labels } });
      for (const bound of boundsOf(this.#metric)) add('bucket', countUpTo(bound, counts), { le: bound / scale });
      const count = countUpTo(Number.POSITIVE_INFINITY, counts);
      add('bucket', count, { le: '+Inf' });
      add('sum', sum);
      add('count', count);
    }
    return values;
  }
}

/** In the counted unit. */
function boundsOf({ exponents: [lowest, highest] }: HistogramMetric): number[] {
  return Array.from({ length: highest - lowest + 1 }, (_, index) => 2 ** (lowest + index));
}

function countUpTo(bound: number, counts: Readonly<Record<string, number>>): number {
  return Object.entries(counts).reduce((sum, [upper, count]) => (Number(upper) <= bound ? sum + count : sum), 0);
}

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
