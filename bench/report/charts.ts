/** Charts of a run, from the same JSON as the tables; only of what says that it is drawn. */

import type { BarSeriesOption, EChartsOption } from 'echarts';
import type { Metric } from '../benchmarks/benchmark.js';
import { BENCHMARKS } from '../benchmarks/index.js';
import { type BenchmarkResult, type BenchReport, spreadOf, variantOf } from '../suite/results.js';
import { coloursOf, draw, labelOf, WIDTH } from './drawing.js';
import type { Figure } from './figure.js';
import { heatMap } from './heat-map.js';
import { number } from './tables.js';

export interface Chart {
  /** Without a folder. */
  readonly file: string;
  readonly title: string;
  readonly svg: string;
}

const HEIGHT = 380;
const BAR_HEIGHT = 26;
const LETTER = 7;
const LEGEND_ITEM = 60;
const UNITS: Readonly<Partial<Record<Metric, string>>> = {
  throughput: 'per second, more is better',
  p99: 'p99, µs, less is better',
};

export function chartsOf({ benchmarks, experiments }: BenchReport): Chart[] {
  const ofBenchmarks = benchmarks.flatMap((result) => chartOfBenchmark(result) ?? []);
  const ofFigures = experiments.flatMap(({ id, figures }) =>
    figures.flatMap((figure) => (figure.chart === undefined ? [] : [chartOfFigure(`${id}-${figure.id}`, figure)])),
  );
  return [...ofBenchmarks, ...ofFigures];
}

function chartOfBenchmark(result: BenchmarkResult): Chart | undefined {
  const { cases, id, title } = result;
  const chart = BENCHMARKS.find((one) => one.id === id)?.chart;
  if (chart === undefined) return undefined;
  if (chart.kind === 'heat') return { file: `${id}.svg`, title, svg: heatMap(result) };
  const metric = chart.metric ?? 'throughput';
  const names = [...new Set(cases.flatMap(({ variants }) => variants.map(({ variant }) => variant)))];
  const series = names.map((name) => {
    const found = cases.map((one) => variantOf(one, name));
    return { name, values: found.map((variant) => (variant && spreadOf(variant, metric)) ?? null) };
  });
  const figure: Figure = {
    id,
    title,
    chart: chart.kind === 'curves' ? 'line' : 'bar',
    x: { title: '', values: cases.map((one) => one.id) },
    y: { title: UNITS[metric] ?? metric, ...(chart.log === undefined ? {} : { log: chart.log }) },
    series,
  };
  return cases.length === 1 ? chartOfVariants(id, figure) : chartOfFigure(id, figure);
}

/** One bar for each series, at its only place. */
function chartOfVariants(name: string, { series, title, y }: Figure): Chart {
  const names = series.map((one) => one.name);
  const bars: Drawn = { name: y.title, values: series.map(({ values }) => values[0]?.median ?? null) };
  const option = optionOf({ title, y, x: { title: '', values: names.map(labelOf) } }, [
    { ...bars, colours: coloursOf(names, true) },
  ]);
  return { file: `${name}.svg`, title, svg: draw(option, names.length * BAR_HEIGHT + 110) };
}

function chartOfFigure(name: string, figure: Figure): Chart {
  const { chart, series, title, x } = figure;
  const colours = coloursOf(series.map((one) => one.name));
  const drawn = series.map((one, index): Drawn => {
    return {
      name: labelOf(one.name),
      colour: colours[index]!,
      values: one.values.map((value) => value?.median ?? null),
    };
  });
  // Bars of several series need room for each.
  const height = chart === 'line' ? HEIGHT : Math.max(HEIGHT, x.values.length * (series.length * 13 + 10) + 130);
  return { file: `${name}.svg`, title, svg: draw(optionOf(figure, drawn), height) };
}

interface Drawn {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly colour?: string;
  /** One for each value. */
  readonly colours?: readonly string[];
}

/** Bars lie, unless a line is asked for: names of variants are long. */
function optionOf(
  { chart, title, x, y }: Pick<Figure, 'chart' | 'title' | 'x' | 'y'>,
  series: readonly Drawn[],
): EChartsOption {
  const values = {
    type: y.log ? ('log' as const) : ('value' as const),
    name: y.title,
    axisLabel: { formatter: short },
  };
  const places = { type: 'category' as const, data: [...x.values] };
  const middle = { nameLocation: 'middle' as const, nameGap: 28 };
  const shared = common(title, series);
  if (chart === 'line') {
    return {
      ...shared,
      xAxis: { ...places, name: x.title, ...middle },
      yAxis: { ...values, nameTextStyle: { align: 'left' } },
      series: series.map(({ name, values: data, colour }) => {
        return { name, type: 'line', data: [...data], symbolSize: 6, itemStyle: { color: colour! } };
      }),
    };
  }
  return {
    ...shared,
    xAxis: { ...values, ...middle },
    yAxis: { ...places, inverse: true },
    series: series.map((one) => barsOf(one, series.length < 4)),
  };
}

function barsOf({ name, values, colour, colours }: Drawn, labelled: boolean): BarSeriesOption {
  return {
    name,
    type: 'bar',
    data: values.map((value, index) => {
      return { value: value as number, itemStyle: { color: colours?.[index] ?? colour! } };
    }),
    ...(colour === undefined ? {} : { itemStyle: { color: colour } }),
    label: { show: labelled, position: 'right', formatter: ({ value }) => number(Number(value)) },
  };
}

function common(title: string, series: readonly Drawn[]): EChartsOption {
  // Without a canvas, texts are measured too short: some room more for each.
  const widths = series.map(({ name }) => name.length * LETTER + LEGEND_ITEM);
  const several = series.length > 1;
  const legendLines = several ? Math.ceil(widths.reduce((sum, width) => sum + width, 0) / (WIDTH - 100)) : 0;
  return {
    title: { text: title, left: 12, top: 8, textStyle: { fontSize: 14 } },
    legend: several ? { top: 34, left: 12, itemGap: 26, itemWidth: 18, textStyle: { fontSize: 11 } } : { show: false },
    grid: { left: 44, right: 90, top: 60 + legendLines * 36, bottom: 36, containLabel: true },
  };
}

function short(value: number): string {
  if (value >= 1e6) return `${number(value / 1e6)}M`;
  return value >= 1e3 ? `${number(value / 1e3)}k` : number(value) || '0';
}
