import { spreadOf } from './judge.js';
import type { Panel } from './panel.js';
import type { CaseResult, RowResult, Spread, Verdict } from './results.js';
import { METRICS } from './rows.js';
import type { Latency } from './workload.js';

const FIGURES_HEAD = [
  'case',
  'arm',
  'per second',
  'CPU µs',
  'server CPU µs',
  'writes',
  'p50 / p95 / p99 / p99.9',
  'bytes',
];

export const VERDICT_HEAD = ['work', 'measure', 'measured', 'bar', 'holds', 'stretch', 'holds'];

/** The judged rows as text, for the terminal and for Markdown. */
export function verdictCells(row: RowResult): string[][] {
  return row.verdicts.map((verdict) => [
    row.cases.length > 1 ? `${row.title}: ${verdict.case}` : row.title,
    measureOf(verdict),
    measuredOf(verdict),
    limitOf(verdict, verdict.bar),
    yesNo(verdict.holds),
    limitOf(verdict, verdict.stretch),
    yesNo(verdict.stretchHolds),
  ]);
}

/** Medians, the range of the rounds behind throughput and CPU; without the columns that the row has no figures for. */
export function figures(row: RowResult): { head: string[]; rows: string[][] } {
  const rows = row.cases.flatMap(figureCells);
  const used = FIGURES_HEAD.map((_, column) => rows.some((cells) => cells[column] !== ''));
  if (row.cases.length === 1) used[0] = false;
  const keep = (cells: readonly string[]) => cells.filter((_, column) => used[column]);
  return { head: keep(FIGURES_HEAD), rows: rows.map(keep) };
}

function figureCells(result: CaseResult): string[][] {
  return result.contestants.map((one) => {
    // Latencies of the timed rounds where they are what the row is about.
    const latency = one.samples[0]?.latencyUs === undefined ? one.probe.latencyUs : medianLatency(one.samples);
    return [
      result.id,
      one.contestant,
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
export function panelCells(panel: Panel): { head: string[]; rows: string[][] } {
  const { x, series } = panel;
  const cell = (value: Spread | null | undefined) => ranged(value ?? undefined);
  if (series.length > x.values.length) {
    return {
      head: ['', ...x.values.map((place) => `${x.title}: ${place}`)],
      rows: series.map(({ name, values }) => [name, ...values.map(cell)]),
    };
  }
  return {
    head: [x.title, ...series.map(({ name }) => name)],
    rows: x.values.map((place, index) => [place, ...series.map(({ values }) => cell(values[index]))]),
  };
}

export function number(value: number | undefined): string {
  if (value === undefined) return '';
  if (value >= 1000) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(3)));
}

function measureOf({ metric, of, versus }: Verdict): string {
  const { title } = METRICS[metric];
  if (versus === 'absolute') return `${title}, ${of}`;
  return versus === 'best-case' ? `${title}, ${of}: × its minimum` : `${title}, ${of} / ${versus}`;
}

function measuredOf(verdict: Verdict): string {
  const { median, min, max } = verdict.measured;
  const text = `${amount(verdict, median)}`;
  return min === max ? text : `${text} (${number(min)}–${number(max)})`;
}

function limitOf(verdict: Verdict, limit: number | undefined): string {
  if (limit === undefined) return '';
  const inverse = limit < 0.7 ? ` (1/${number(1 / limit)})` : '';
  return `${verdict.op === '<=' ? '≤' : '≥'} ${amount(verdict, limit)}${inverse}`;
}

function amount(verdict: Verdict, value: number): string {
  return verdict.versus === 'absolute' ? `${number(value)} ${METRICS[verdict.metric].unit}` : `${number(value)}×`;
}

function yesNo(holds: boolean | undefined): string {
  return holds === undefined ? '' : holds ? 'yes' : 'NO';
}

function ranged(spread: Spread | undefined): string {
  if (spread === undefined) return '';
  const { median, min, max } = spread;
  return min === max ? number(median) : `${number(median)} (${number(min)}–${number(max)})`;
}

function latencyText({ p50, p95, p99, p999 }: Latency): string {
  return [p50, p95, p99, p999].map((us) => (us === undefined ? '–' : duration(us))).join(' / ');
}

function duration(us: number): string {
  return us >= 1000 ? `${number(us / 1000)} ms` : `${number(us)} µs`;
}

function medianLatency(samples: readonly { latencyUs?: Latency }[]): Latency | undefined {
  const sorted = samples.flatMap(({ latencyUs }) => latencyUs ?? []).sort((a, b) => a.p50 - b.p50);
  return sorted[sorted.length >> 1];
}
