import { Histogram, type Registry, type RegistryContentType } from 'prom-client';
import type { CollectedClient } from './collected-client.js';
import type { HistogramMetric, Reading } from './metrics.js';

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
