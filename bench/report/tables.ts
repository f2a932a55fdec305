/** Results as rows of cells, for the terminal and for Markdown. */

import { compare, measureOf, type TargetResult } from '../suite/evaluate.js';
import { type BenchmarkResult, medianOf } from '../suite/results.js';
import { PRECISION } from '../suite/rounds.js';
import { type Estimate, isClear } from '../suite/stats.js';
import { METRICS, type Metric } from '../variants/protocol.js';

export interface Cells {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const METRIC_IDS = Object.keys(METRICS) as Metric[];

export function targetCells(results: readonly TargetResult[]): Cells {
  return {
    head: ['work', 'measure', 'measured', 'target', ''],
    rows: results.map((result) => [
      result.work,
      measureOf(result),
      ranged(result.measured, unitOf(result)),
      limitOf(result),
      result.met ? 'met' : '**missed**',
    ]),
  };
}

/**
 * Of each variant in each case: medians of each metric that was measured, but for `without`; then ratios to the case's
 * first variant.
 */
export function resultCells(
  { cases }: BenchmarkResult,
  without: readonly Metric[] = [],
  nameOf = (variant: string) => variant,
): Cells {
  const all = cases.flatMap(({ variants }) => variants);
  const metrics = METRIC_IDS.filter(
    (metric) => !without.includes(metric) && all.some((one) => medianOf(one, metric) !== undefined),
  );
  const divided = metrics.filter((metric) => metric in PRECISION && cases.some(({ variants }) => variants.length > 1));
  const headOf = (metric: Metric) => [METRICS[metric].title, METRICS[metric].unit].join(' ').trim();
  const alone = cases.length === 1;
  return {
    head: [
      ...(alone ? [] : ['case']),
      ...['variant', ...metrics.map(headOf)],
      ...divided.map((metric) => `${METRICS[metric].title} ÷ the first`),
    ],
    rows: cases.flatMap((one) =>
      one.variants.map((of, index) => [
        ...(alone ? [] : [one.id]),
        ...[nameOf(of.variant), ...metrics.map((metric) => say(medianOf(of, metric)))],
        ...divided.map((metric) =>
          index === 0 ? '' : times(compare({ metric, of: of.variant, versus: one.variants[0]!.variant }, one)),
        ),
      ]),
    ),
  };
}

/** `12,345` or `1.23`; empty where nothing was measured. */
export function say(value: number | undefined): string {
  if (value === undefined) return '';
  return value >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

/** `0.71× (0.69–0.73)` */
export function ranged(found: Estimate | undefined, unit = ''): string {
  if (found === undefined) return '';
  const interval = Number.isFinite(found.high) ? ` (${say(found.low)}–${say(found.high)})` : '';
  return `${say(found.value)}${unit}${interval}`;
}

/** A ratio with its interval; in words where that includes 1. */
export function times(found: Estimate | undefined): string {
  if (found === undefined || isClear(found) || !Number.isFinite(found.high)) return ranged(found, '×');
  return `no clear difference (${say(found.low)}–${say(found.high)})`;
}

export function limitOf(result: Pick<TargetResult, 'metric' | 'op' | 'target' | 'versus'>): string {
  return `${result.op === '<=' ? '≤' : '≥'} ${say(result.target)}${unitOf(result)}`;
}

function unitOf({ metric, versus }: Pick<TargetResult, 'metric' | 'versus'>): string {
  return versus === undefined ? ` ${METRICS[metric].unit}` : '×';
}
