/** Results as rows of cells, for the terminal and for Markdown. */

import { measureOf, type TargetResult } from '../suite/evaluate.js';
import { type BenchmarkResult, spreadOf } from '../suite/results.js';
import type { Spread } from '../suite/stats.js';
import { METRICS, type Metric } from '../variants/protocol.js';

export interface Cells {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Shown with the range of the rounds; the others are medians. */
const RANGED: readonly Metric[] = ['throughput', 'cpu'];
const METRIC_IDS = Object.keys(METRICS) as Metric[];

export function targetCells(results: readonly TargetResult[]): Cells {
  return {
    head: ['work', 'measure', 'measured', 'target', ''],
    rows: results.map((result) => [
      result.work,
      measureOf(result),
      withUnit(result, ranged(result.measured)),
      `${result.op === '<=' ? '≤' : '≥'} ${withUnit(result, say(result.target))}`,
      result.met ? 'met' : '**missed**',
    ]),
  };
}

/** Of each variant in each case, with a column for each metric that was measured. */
export function resultCells({ cases }: BenchmarkResult): Cells {
  const all = cases.flatMap(({ variants }) => variants);
  const metrics = METRIC_IDS.filter((metric) => all.some((one) => spreadOf(one, metric) !== undefined));
  const headOf = (metric: Metric) => [METRICS[metric].title, METRICS[metric].unit].join(' ').trim();
  const alone = cases.length === 1;
  return {
    head: [...(alone ? [] : ['case']), 'variant', ...metrics.map(headOf)],
    rows: cases.flatMap(({ id, variants }) =>
      variants.map((one) => [
        ...(alone ? [] : [id]),
        one.variant,
        ...metrics.map((metric) => {
          const found = spreadOf(one, metric);
          return RANGED.includes(metric) ? ranged(found) : say(found?.median);
        }),
      ]),
    ),
  };
}

/** `12,345` or `1.23`; empty where nothing was measured. */
export function say(value: number | undefined): string {
  if (value === undefined) return '';
  return value >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

export function ranged(value: Spread | undefined): string {
  if (value === undefined) return '';
  const { median, min, max } = value;
  return min === max ? say(median) : `${say(median)} (${say(min)}–${say(max)})`;
}

/** `1.23×`, of a ratio. */
export function times(value: Spread | undefined): string {
  return value === undefined ? '' : `${say(value.median)}×`;
}

/** Of a figure or a ratio, and perhaps its range in brackets. */
export function withUnit({ metric, versus }: Pick<TargetResult, 'metric' | 'versus'>, text: string): string {
  const [median, range] = text.split(' (');
  const unit = versus === undefined ? ` ${METRICS[metric].unit}` : '×';
  return `${median}${unit}${range === undefined ? '' : ` (${range}`}`;
}
