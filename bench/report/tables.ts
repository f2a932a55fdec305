/** Results as rows of cells, for the terminal and for Markdown. */

import { METRICS } from '../benchmarks/benchmark.js';
import { measureOf, type TargetResult } from '../suite/evaluate.js';
import { type BenchmarkResult, type CaseResult, spreadOf } from '../suite/results.js';
import type { Spread } from '../suite/stats.js';
import type { Latency, Sample } from '../variants/protocol.js';
import { type Figure, say } from './figure.js';

export interface Cells {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const RESULT_HEAD = [
  'case',
  'variant',
  'per second',
  'CPU µs',
  'server CPU µs',
  'writes',
  'p50 / p95 / p99 / p99.9',
  'bytes',
];

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

/** Medians, the range of the rounds behind throughput and CPU; without the columns that it has no figures for. */
export function resultCells(result: BenchmarkResult): Cells {
  const rows = result.cases.flatMap(rowsOf);
  const used = RESULT_HEAD.map((_, column) => rows.some((cells) => cells[column] !== ''));
  if (result.cases.length === 1) used[0] = false;
  const keep = (cells: readonly string[]) => cells.filter((_, column) => used[column]);
  return { head: keep(RESULT_HEAD), rows: rows.map(keep) };
}

function rowsOf({ id, variants }: CaseResult): string[][] {
  return variants.map((one) => {
    // Latencies of the timed rounds where they were taken there.
    const latency = medianLatency(one.samples) ?? one.probe.latencyUs;
    return [
      id,
      one.variant,
      ranged(spreadOf(one, 'throughput')),
      ranged(spreadOf(one, 'cpu')),
      number(spreadOf(one, 'serverCpu')?.median),
      number(one.probe.writesPerCommand),
      latency === undefined ? '' : latencyText(latency),
      number(spreadOf(one, 'memory')?.median),
    ];
  });
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

function latencyText({ p50, p95, p99, p999 }: Latency): string {
  return [p50, p95, p99, p999].map((us) => (us === undefined ? '–' : duration(us))).join(' / ');
}

function duration(us: number): string {
  return us >= 1000 ? `${number(us / 1000)} ms` : `${number(us)} µs`;
}

function medianLatency(samples: readonly Sample[]): Latency | undefined {
  const sorted = samples.flatMap(({ latencyUs }) => latencyUs ?? []).sort((a, b) => a.p50 - b.p50);
  return sorted[sorted.length >> 1];
}
