/** Results as rows of cells, for the terminal and for Markdown. */

import { METRICS } from '../benchmarks/benchmark.js';
import { measureOf, type TargetResult } from '../suite/evaluate.js';
import { type BenchmarkResult, spreadOf, type VariantResult } from '../suite/results.js';
import { type Spread, spread } from '../suite/stats.js';
import type { Latency, Probe, Sample } from '../variants/protocol.js';
import { type Figure, say } from './figure.js';

export interface Cells {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const PERCENTILES = ['p50', 'p95', 'p99', 'p999'] as const;

/** Of a variant in a case; the others are medians, with the range of the rounds behind throughput and CPU. */
const RESULT_COLUMNS: Readonly<Record<string, (result: VariantResult, id: string) => string>> = {
  case: (_, id) => id,
  variant: ({ variant }) => variant,
  'per second': (result) => ranged(spreadOf(result, 'throughput')),
  'CPU µs': (result) => ranged(spreadOf(result, 'cpu')),
  'server CPU µs': (result) => number(spreadOf(result, 'serverCpu')?.median),
  writes: ({ probe }) => number(probe.writesPerCommand),
  // Of the timed rounds where they were taken there.
  'p50 / p95 / p99 / p99.9': ({ probe, samples }) => latencyText(latenciesOf(samples, probe)),
  bytes: (result) => number(spreadOf(result, 'memory')?.median),
};

export function targetCells(results: readonly TargetResult[]): Cells {
  return {
    head: ['benchmark', 'measure', 'measured', 'target', '', 'further', ''],
    rows: results.map((result) => [
      result.case === '' ? result.title : `${result.title}: ${result.case}`,
      measureOf(result),
      measuredOf(result),
      limitOf(result, result.target),
      metOf(result.met),
      limitOf(result, result.further),
      metOf(result.furtherMet),
    ]),
  };
}

/** Without the columns that it has no figures for. */
export function resultCells({ cases }: BenchmarkResult): Cells {
  const rows = cases.flatMap(({ id, variants }) =>
    variants.map((one) => Object.values(RESULT_COLUMNS).map((cell) => cell(one, id))),
  );
  const keep = (cells: readonly string[]) =>
    cells.filter((_, column) => rows.some((row) => row[column] !== '') && (column > 0 || cases.length > 1));
  return { head: keep(Object.keys(RESULT_COLUMNS)), rows: rows.map(keep) };
}

/** A row for each place on the axis, a column for each series; turned round where that makes the table narrower. */
export function figureCells({ x, series }: Figure): Cells {
  if (series.length > x.values.length) {
    return {
      head: ['', ...x.values.map((place) => `${x.title}: ${place}`)],
      rows: series.map(({ name, values }) => [name, ...values.map((value) => ranged(value ?? undefined))]),
    };
  }
  return {
    head: [x.title, ...series.map(({ name }) => name)],
    rows: x.values.map((place, index) => [place, ...series.map(({ values }) => ranged(values[index] ?? undefined))]),
  };
}

export function number(value: number | undefined): string {
  return value === undefined ? '' : say(value);
}

export function ranged(value: Spread | undefined): string {
  if (value === undefined) return '';
  const { median, min, max } = value;
  return min === max ? number(median) : `${number(median)} (${number(min)}–${number(max)})`;
}

function measuredOf(result: TargetResult): string {
  const { median, min, max } = result.measured;
  const text = amount(result, median);
  return min === max ? text : `${text} (${number(min)}–${number(max)})`;
}

function limitOf(result: TargetResult, limit: number | undefined): string {
  if (limit === undefined) return '';
  const inverse = result.versus !== undefined && limit < 0.7 ? ` (1/${number(1 / limit)})` : '';
  return `${result.op === '<=' ? '≤' : '≥'} ${amount(result, limit)}${inverse}`;
}

function amount({ metric, versus }: TargetResult, value: number): string {
  return versus === undefined ? `${number(value)} ${METRICS[metric].unit}` : `${number(value)}×`;
}

function metOf(met: boolean | undefined): string {
  return met === undefined ? '' : met ? 'met' : 'not met';
}

/** Each percentile's median over the rounds; they may be of different rounds. */
function latencyText(rounds: readonly Latency[]): string {
  if (rounds.length === 0) return '';
  const medians = PERCENTILES.map((percentile) => spread(rounds.flatMap((round) => round[percentile] ?? []))?.median);
  return medians.map((us) => (us === undefined ? '–' : duration(us))).join(' / ');
}

function duration(us: number): string {
  return us >= 1000 ? `${number(us / 1000)} ms` : `${number(us)} µs`;
}

function latenciesOf(samples: readonly Sample[], probe: Probe): Latency[] {
  const timed = samples.flatMap(({ latencyUs }) => latencyUs ?? []);
  return timed.length === 0 && probe.latencyUs !== undefined ? [probe.latencyUs] : timed;
}
