import { METRICS, type Metric } from '../benchmarks/benchmark.js';
import { TARGETS, type Target } from '../benchmarks/targets.js';
import { type BenchmarkResult, type CaseResult, spreadOf, valuesOf, variantOf } from './results.js';
import { ratios, type Spread, spread } from './stats.js';

export interface TargetResult extends Target {
  readonly title: string;
  readonly case: string;
  /** The ratio, round by round; or the figure itself, against a number. */
  readonly measured: Spread;
  readonly met: boolean | undefined;
  readonly furtherMet: boolean | undefined;
}

/** The targets of the benchmarks at hand, each with what was measured. */
export function evaluate(results: readonly BenchmarkResult[]): TargetResult[] {
  return TARGETS.flatMap((target) => {
    const result = results.find(({ id }) => id === target.benchmark);
    return result === undefined ? [] : evaluateTarget(target, result);
  });
}

export function targetsMissed(results: readonly BenchmarkResult[]): number {
  return evaluate(results).filter(({ met }) => met === false).length;
}

function evaluateTarget(target: Target, { cases, title }: BenchmarkResult): TargetResult[] {
  const versusCase = cases.find(({ id }) => id === target.versusCase);
  const found = cases.flatMap((result) => {
    if (target.only !== undefined && !result.id.startsWith(target.only)) return [];
    if (target.except?.some((name) => result.id.startsWith(name))) return [];
    const measured = compare(target, result, versusCase);
    return measured === undefined ? [] : [resultOf(target, title, result.id, measured)];
  });
  if (target.worst === undefined || found.length === 0) return found;
  const sign = target.op === '<=' ? -1 : 1;
  const worst = found.toSorted((a, b) => sign * (a.measured.median - b.measured.median))[0]!;
  const met = found.filter((one) => one.met !== false).length;
  return [{ ...worst, case: `${worst.case}, the worst case; ${met} of ${found.length} meet it` }];
}

/** undefined where one of both was not measured */
export function compare(
  { metric, of, versus }: { readonly metric: Metric; readonly of: string; readonly versus: string | undefined },
  result: CaseResult,
  versusCase = result,
): Spread | undefined {
  const variant = variantOf(result, of);
  if (variant === undefined) return undefined;
  if (versus === undefined) return spreadOf(variant, metric);
  const other = variantOf(versusCase, versus);
  return other && spread(ratios(valuesOf(variant, metric), valuesOf(other, metric)));
}

function resultOf(target: Target, title: string, id: string, measured: Spread): TargetResult {
  const meets = (limit: number | undefined) =>
    limit === undefined ? undefined : target.op === '<=' ? measured.median <= limit : measured.median >= limit;
  return { ...target, title, case: id, measured, met: meets(target.target), furtherMet: meets(target.further) };
}

export function measureOf({ metric, of, versus, versusCase }: Target): string {
  const { title } = METRICS[metric];
  if (versus === undefined) return `${title}, ${of}`;
  return versusCase === undefined ? `${title}, ${of} / ${versus}` : `${title}, ${of} / ${versus} at ${versusCase}`;
}
