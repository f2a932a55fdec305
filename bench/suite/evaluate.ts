import { BENCHMARKS } from '../benchmarks/index.js';
import { TARGETS, type Target } from '../benchmarks/targets.js';
import { METRICS, type Metric } from '../variants/protocol.js';
import { type BenchmarkResult, type CaseResult, valuesOf, variantOf } from './results.js';
import { type Estimate, estimate, ratios } from './stats.js';

export interface TargetResult extends Target {
  /** What was measured: the benchmark and its case, or how many cases meet it. */
  readonly work: string;
  /** The ratio, round by round; or the figure itself, against a number. */
  readonly measured: Estimate;
  /** Unless the whole interval misses it. */
  readonly met: boolean;
}

export interface Comparison {
  readonly metric: Metric;
  readonly of: string;
  readonly versus: string | undefined;
}

/** The targets of the benchmarks at hand, each with what was measured. */
export function evaluate(results: readonly BenchmarkResult[], targets: readonly Target[] = TARGETS): TargetResult[] {
  return targets.flatMap((target) => {
    const result = results.find(({ id }) => id === target.benchmark);
    return result === undefined ? [] : evaluateTarget(target, result);
  });
}

function evaluateTarget(target: Target, { id, cases }: BenchmarkResult): TargetResult[] {
  const found = cases.flatMap((one) => {
    if (target.only?.test(one.id) === false) return [];
    const measured = compare(target, one);
    if (measured === undefined) return [];
    const met = target.op === '<=' ? measured.low <= target.target : measured.high >= target.target;
    return [{ id: one.id, measured, met }];
  });
  const title = titleOf(id);
  if (target.worst === undefined) {
    const named = (one: string) => (cases.length === 1 ? title : `${title}: ${one}`);
    return found.map(({ id: of, measured, met }) => ({ ...target, measured, met, work: named(of) }));
  }
  // That which misses it by most, or is the nearest to doing so.
  const distance = ({ measured: { low, high } }: (typeof found)[number]) => (target.op === '<=' ? -low : high);
  const [worst] = found.toSorted((a, b) => distance(a) - distance(b));
  if (worst === undefined) return [];
  const count = `${found.filter(({ met }) => met).length} of ${found.length}`;
  return [{ ...target, ...worst, work: `${title}: ${target.worst} (${count}; worst: ${worst.id})` }];
}

/** undefined where one of both was not measured */
export function compare({ metric, of, versus }: Comparison, result: CaseResult | undefined): Estimate | undefined {
  const variant = variantOf(result, of);
  if (variant === undefined) return undefined;
  const values = valuesOf(variant, metric);
  if (versus === undefined) return estimate(values);
  const other = variantOf(result, versus);
  return other === undefined ? undefined : estimate(ratios(values, valuesOf(other, metric)));
}

export function measureOf({ metric, of, versus }: Comparison): string {
  const { title } = METRICS[metric];
  return versus === undefined ? `${title}, ${of}` : `${title}, ${of} / ${versus}`;
}

export function titleOf(benchmark: string): string {
  return BENCHMARKS.find(({ id }) => id === benchmark)?.title ?? benchmark;
}
