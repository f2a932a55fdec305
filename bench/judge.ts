import type { CaseResult, ContestantResult, RowResult, Spread, Verdict } from './results.js';
import { type Bar, FLAT_FROM, type Metric, type Row } from './rows.js';
import type { Sample } from './workload.js';

const READ: Record<Metric, (sample: Sample) => number | undefined> = {
  throughput: (sample) => sample.perSecond,
  cpu: (sample) => sample.cpuUs,
  serverCpu: (sample) => sample.serverCpuUs,
  p50: (sample) => sample.latencyUs?.p50,
  p99: (sample) => sample.latencyUs?.p99,
  memory: (sample) => sample.bytes,
};

export function judge(row: Row, cases: readonly CaseResult[]): RowResult {
  const verdicts = row.bars.flatMap((bar) =>
    bar.versus === 'best-case'
      ? flatness(bar, cases)
      : cases.flatMap((result) => {
          const measured = compare(bar, result);
          return measured === undefined ? [] : [verdict(bar, result.id, measured)];
        }),
  );
  return { id: row.id, title: row.title, cases, verdicts };
}

/** Median and range of a metric over the rounds; undefined where it was not measured. */
export function spreadOf(result: ContestantResult, metric: Metric): Spread | undefined {
  return spread(values(result, metric));
}

export function spread(samples: readonly number[]): Spread | undefined {
  if (samples.length === 0) return undefined;
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, min: sorted[0]!, max: sorted.at(-1)! };
}

/** Round by round, because what disturbs a round disturbs both of its arms. */
export function compare(bar: Pick<Bar, 'metric' | 'of' | 'versus'>, result: CaseResult): Spread | undefined {
  const of = find(result, bar.of);
  if (of === undefined) return undefined;
  if (bar.versus === 'absolute') return spreadOf(of, bar.metric);
  const versus = find(result, bar.versus);
  return versus === undefined ? undefined : spread(ratios(of, versus, bar.metric));
}

/** The worst of the cases that should be flat, against the best of all. */
function flatness(bar: Bar, cases: readonly CaseResult[]): Verdict[] {
  const measured = cases.flatMap((result) => {
    const of = find(result, bar.of);
    const median = of === undefined ? undefined : spreadOf(of, bar.metric)?.median;
    return of === undefined || median === undefined ? [] : [{ id: result.id, of, median }];
  });
  const best = measured.reduce<(typeof measured)[number] | undefined>(
    (a, b) => (a === undefined || b.median < a.median ? b : a),
    undefined,
  );
  if (best === undefined) return [];
  const worst = measured
    .filter(({ id }) => Number(id) >= FLAT_FROM)
    .flatMap(({ id, of }) => {
      const ratio = spread(ratios(of, best.of, bar.metric));
      return ratio === undefined ? [] : [{ id, ratio }];
    })
    .sort((a, b) => b.ratio.median - a.ratio.median)[0];
  return worst === undefined ? [] : [verdict(bar, `${worst.id}, the worst from ${FLAT_FROM} on`, worst.ratio)];
}

function verdict(bar: Bar, caseId: string, measured: Spread): Verdict {
  const meets = (limit: number) => (bar.op === '<=' ? measured.median <= limit : measured.median >= limit);
  return {
    ...bar,
    case: caseId,
    measured,
    ...(bar.bar === undefined ? {} : { holds: meets(bar.bar) }),
    ...(bar.stretch === undefined ? {} : { stretchHolds: meets(bar.stretch) }),
  };
}

function find(result: CaseResult, contestant: string): ContestantResult | undefined {
  return result.contestants.find((candidate) => candidate.contestant === contestant);
}

function values(result: ContestantResult, metric: Metric): number[] {
  return result.samples.flatMap((sample) => READ[metric](sample) ?? []);
}

function ratios(of: ContestantResult, versus: ContestantResult, metric: Metric): number[] {
  const others = values(versus, metric);
  return values(of, metric).flatMap((value, round) => {
    const other = others[round];
    return other === undefined || other === 0 ? [] : [value / other];
  });
}
