/** Charts of a run, from the same JSON as the tables; only of what says that it is drawn. */

import type { EChartsOption } from 'echarts';
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
  const file = `${id}.svg`;
  if (chart.kind === 'heat') return { file, title, svg: heatMap(result) };
  const metric = chart.metric ?? 'throughput';
  const unit = UNITS[metric] ?? metric;
  const names = [...new Set(cases.flatMap(({ variants }) => variants.map(({ variant }) => variant)))];
  const colours = coloursOf(names, cases.length === 1);
  const all = names.map((name, index): Drawn => {
    const values = cases.map((one) => {
      const found = variantOf(one, name);
      return (found && spreadOf(found, metric)?.median) ?? null;
    });
    return { name: labelOf(name), colour: colours[index]!, values };
  });
  const places = cases.map((one) => one.id);
  if (chart.kind === 'curves') {
    const option = curves(title, places, '', all, unit, chart.log === true);
    return { file, title, svg: draw(option, HEIGHT) };
  }
  if (cases.length > 1) {
    const option = bars(title, places, all, unit, chart.log === true);
    return { file, title, svg: draw(option, heightOf(option)) };
  }
  // One bar for each variant, of which each is a place.
  const data = all.map(({ colour, values: [value = null] }) => ({ value, colour }));
  const option = bars(
    title,
    names.map(labelOf),
    [{ name: unit, values: data.map(({ value }) => value), colours }],
    unit,
    false,
  );
  return { file, title, svg: draw(option, names.length * BAR_HEIGHT + 110) };
}

function chartOfFigure(name: string, { chart, series, title, x, y }: Figure): Chart {
  const colours = coloursOf(series.map((one) => one.name));
  const drawn = series.map((one, index): Drawn => {
    return {
      name: labelOf(one.name),
      colour: colours[index]!,
      values: one.values.map((value) => value?.median ?? null),
    };
  });
  const log = y.log === true;
  const option =
    chart === 'line'
      ? curves(title, x.values, x.title, drawn, y.title, log)
      : bars(title, x.values, drawn, y.title, log);
  return { file: `${name}.svg`, title, svg: draw(option, heightOf(option)) };
}

interface Drawn {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly colour?: string;
  /** One for each value. */
  readonly colours?: readonly string[];
}

/** Bars lie: names of variants are long. */
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
    series: series.map(({ name, values, colour, colours }) => ({
      name,
      type: 'bar',
      data: values.map((value, index) => ({
        value: value as number,
        itemStyle: { color: colours?.[index] ?? colour! },
      })),
      ...(colour === undefined ? {} : { itemStyle: { color: colour } }),
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
    series: series.map(({ name, values, colour }) => ({
      name,
      type: 'line',
      data: [...values],
      symbolSize: 6,
      itemStyle: { color: colour! },
    })),
  };
}

function common(title: string, series: readonly Drawn[]): EChartsOption {
  // Without a canvas, texts are measured too short: some room more for each.
  const widths = series.map(({ name }) => name.length * LETTER + LEGEND_ITEM);
  const legendLines = series.length > 1 ? Math.ceil(widths.reduce((sum, width) => sum + width, 0) / (WIDTH - 100)) : 0;
  return {
    title: { text: title, left: 12, top: 8, textStyle: { fontSize: 14 } },
    legend:
      series.length > 1
        ? { top: 34, left: 12, itemGap: 26, itemWidth: 18, textStyle: { fontSize: 11 } }
        : { show: false },
    grid: { left: 44, right: 90, top: 60 + legendLines * 36, bottom: 36, containLabel: true },
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
