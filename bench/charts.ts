/** Charts of a run, as SVG: drawn by ECharts on the server side, from the same JSON as the tables. */

import { type EChartsOption, init } from 'echarts';
import { number } from './format.js';
import { spreadOf } from './judge.js';
import type { Panel } from './panel.js';
import type { BenchReport, RowResult } from './results.js';

export interface Chart {
  /** Without a folder. */
  readonly file: string;
  readonly title: string;
  readonly svg: string;
}

const WIDTH = 860;
const HEIGHT = 380;
const BAR_HEIGHT = 26;
const LETTER = 7;
const LEGEND_ITEM = 60;
/** Rows that say more as a curve over their cases than as bars. */
const CURVES = ['sizes', 'concurrency', 'value-sizes'];

export function chartsOf(report: BenchReport): Chart[] {
  const rows = report.rows.flatMap((row) => chartOfRow(row) ?? []);
  const panels = (report.experiments ?? []).flatMap((experiment) =>
    [...experiment.publishedPanels, ...experiment.panels]
      .filter(({ chart }) => chart !== 'none')
      .map((panel) => chartOfPanel(`${experiment.id}-${panel.id}`, panel)),
  );
  return [...rows, ...panels];
}

/** Throughput of every arm; undefined where the row is not about throughput. */
function chartOfRow(row: RowResult): Chart | undefined {
  const names = [...new Set(row.cases.flatMap(({ contestants }) => contestants.map(({ contestant }) => contestant)))];
  const cases = row.cases.map(({ id }) => id);
  const aboutLatency = row.cases.every(({ contestants }) => contestants[0]?.samples[0]?.latencyUs !== undefined);
  const metric = aboutLatency && !row.id.startsWith('single') ? 'p99' : 'throughput';
  const values = names.map((name) =>
    row.cases.map(({ contestants }) => {
      const found = contestants.find(({ contestant }) => contestant === name);
      const median = found === undefined ? undefined : spreadOf(found, metric)?.median;
      return median ?? null;
    }),
  );
  if (values.flat().every((value) => value === null)) return undefined;
  const unit = metric === 'p99' ? 'p99, µs' : row.id.startsWith('fastify') ? 'requests a second' : 'commands a second';
  const single = cases.length === 1;
  const option = single
    ? bars(row.title, names, [{ name: unit, values: values.map(([value]) => value ?? null) }], unit, false)
    : CURVES.includes(row.id)
      ? curves(row.title, cases, '', named(names, values), unit, true)
      : bars(row.title, cases, named(names, values), unit, metric === 'p99' || row.id === 'values');
  return {
    file: `${row.id}.svg`,
    title: row.title,
    svg: draw(option, single ? names.length * BAR_HEIGHT + 110 : heightOf(option)),
  };
}

function chartOfPanel(name: string, panel: Panel): Chart {
  const series = panel.series.map((one) => ({
    name: one.name,
    values: one.values.map((value) => value?.median ?? null),
  }));
  const { x, y, title } = panel;
  const log = y.log === true;
  const option =
    panel.chart === 'line'
      ? curves(title, x.values, x.title, series, y.title, log)
      : bars(title, x.values, series, y.title, log);
  return { file: `${name}.svg`, title, svg: draw(option, heightOf(option)) };
}

interface Drawn {
  readonly name: string;
  readonly values: readonly (number | null)[];
}

function named(names: readonly string[], values: readonly (readonly (number | null)[])[]): Drawn[] {
  return names.map((name, index) => ({ name, values: values[index] ?? [] }));
}

/** Bars lie: names of arms are long. */
function bars(
  title: string,
  places: readonly string[],
  series: readonly Drawn[],
  unit: string,
  log: boolean,
): EChartsOption {
  return {
    ...common(title, series),
    xAxis: { ...valueAxis(unit, log), nameLocation: 'middle', nameGap: 28 },
    yAxis: { type: 'category', data: [...places], inverse: true },
    series: series.map(({ name, values }) => ({
      name,
      type: 'bar',
      data: [...values],
      label: { show: series.length < 4, position: 'right', formatter: ({ value }) => number(Number(value)) },
    })),
  };
}

function curves(
  title: string,
  places: readonly string[],
  placesTitle: string,
  series: readonly Drawn[],
  unit: string,
  log: boolean,
): EChartsOption {
  return {
    ...common(title, series),
    xAxis: { type: 'category', data: [...places], name: placesTitle, nameLocation: 'middle', nameGap: 28 },
    yAxis: { ...valueAxis(unit, log), nameTextStyle: { align: 'left' } },
    series: series.map(({ name, values }) => ({ name, type: 'line', data: [...values], symbolSize: 6 })),
  };
}

function common(title: string, series: readonly Drawn[]): EChartsOption {
  // Without a canvas, texts are measured too short: some room more for each.
  const widths = series.map(({ name }) => name.length * LETTER + LEGEND_ITEM);
  const legendLines = series.length > 1 ? Math.ceil(widths.reduce((sum, width) => sum + width, 0) / (WIDTH - 100)) : 0;
  return {
    animation: false,
    // Readable on a dark page too.
    backgroundColor: '#ffffff',
    title: { text: title, left: 12, top: 8, textStyle: { fontSize: 14 } },
    legend:
      series.length > 1
        ? { top: 34, left: 12, itemGap: 26, itemWidth: 18, textStyle: { fontSize: 11 } }
        : { show: false },
    grid: { left: 44, right: 90, top: 56 + legendLines * 32, bottom: 36, containLabel: true },
  };
}

function valueAxis(
  unit: string,
  log: boolean,
): { type: 'log' | 'value'; name: string; axisLabel: { formatter(value: number): string } } {
  return { type: log ? 'log' : 'value', name: unit, axisLabel: { formatter: short } };
}

function short(value: number): string {
  if (value >= 1e6) return `${number(value / 1e6)}M`;
  return value >= 1e3 ? `${number(value / 1e3)}k` : number(value) || '0';
}

/** Bars of several series need room for each. */
function heightOf({ series, yAxis }: EChartsOption): number {
  const places = Array.isArray(yAxis) || yAxis?.type !== 'category' ? 0 : (yAxis.data?.length ?? 0);
  const count = Array.isArray(series) ? series.length : 1;
  return Math.max(HEIGHT, places * (count * 13 + 10) + 130);
}

function draw(option: EChartsOption, height: number): string {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height });
  chart.setOption(option);
  const svg = chart.renderToSVGString();
  chart.dispose();
  return stable(svg);
}

/** ECharts numbers what it draws through the life of the process: numbered from one for each drawing, it is repeatable. */
function stable(svg: string): string {
  const ids = new Map<string, string>();
  return svg.replace(/zr\d+-(?:cls-\d+|[a-z]\d+)/g, (id) => {
    const known = ids.get(id) ?? `z${ids.size + 1}`;
    ids.set(id, known);
    return known;
  });
}
