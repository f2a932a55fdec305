import { METRICS, type Metric } from '../benchmarks/benchmark.js';
import { TARGETS, type Target } from '../benchmarks/targets.js';
import { type BenchmarkResult, type CaseResult, valuesOf, variantOf } from './results.js';
import { isClear, ratios, type Spread, spread } from './stats.js';

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

/** The cases of a benchmark that have a target of which the rounds do not tell whether it is met. */
export function unclearCases(benchmark: string, cases: readonly CaseResult[]): Set<string> {
  const unclear = new Set<string>();
  for (const target of TARGETS) {
    const { target: limit, versusCase } = target;
    if (target.benchmark !== benchmark || limit === undefined) continue;
    for (const [{ id }, values] of measuredFor(target, cases)) {
      if (isClear(values, limit)) continue;
      unclear.add(id);
      if (versusCase !== undefined) unclear.add(versusCase);
    }
  }
  return unclear;
}

/** The cases that a target is for, each with what was measured, round by round, where it was. */
function measuredFor(target: Target, cases: readonly CaseResult[]): [CaseResult, number[]][] {
  const versusCase = cases.find(({ id }) => id === target.versusCase);
  return cases.flatMap((result): [CaseResult, number[]][] => {
    if (target.only !== undefined && !result.id.startsWith(target.only)) return [];
    if (target.except?.some((name) => result.id.startsWith(name))) return [];
    const values = byRound(target, result, versusCase);
    return values.length === 0 ? [] : [[result, values]];
  });
}

function evaluateTarget(target: Target, { cases, title }: BenchmarkResult): TargetResult[] {
  const found = measuredFor(target, cases).map(([{ id }, values]) => resultOf(target, title, id, spread(values)!));
  if (target.worst === undefined || found.length === 0) return found;
  const sign = target.op === '<=' ? -1 : 1;
  const worst = found.toSorted((a, b) => sign * (a.measured.median - b.measured.median))[0]!;
  const met = found.filter((one) => one.met !== false).length;
  return [{ ...worst, case: `${worst.case}, the worst case; ${met} of ${found.length} meet it` }];
}

interface Comparison {
  readonly metric: Metric;
  readonly of: string;
  readonly versus: string | undefined;
}

/** undefined where one of both was not measured */
export function compare(comparison: Comparison, result: CaseResult): Spread | undefined {
  return spread(byRound(comparison, result));
}

/** Figures or ratios; none where one of both variants was not measured. */
function byRound({ metric, of, versus }: Comparison, result: CaseResult, versusCase = result): number[] {
  const variant = variantOf(result, of);
  if (variant === undefined) return [];
  const values = valuesOf(variant, metric);
  if (versus === undefined) return values;
  const other = variantOf(versusCase, versus);
  return other === undefined ? [] : ratios(values, valuesOf(other, metric));
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
