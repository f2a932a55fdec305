/** Charts of a run, from the same JSON as the tables; only of what says that it is drawn. */

import type { BarSeriesOption, EChartsOption } from 'echarts';
import { METRICS } from '../benchmarks/benchmark.js';
import { BENCHMARKS } from '../benchmarks/index.js';
import { compare } from '../suite/evaluate.js';
import { type BenchmarkResult, type BenchReport, type CaseResult, spreadOf, variantOf } from '../suite/results.js';
import { draw, labelOf, OTHER, OURS, PAPER, SOFT, type Style, stylesOf, unitOf, WIDTH } from './drawing.js';
import { type Figure, figureOf } from './figure.js';
import { heatMap } from './heat-map.js';
import { number, ranged } from './tables.js';

export interface Chart {
  /** Without a folder. */
  readonly file: string;
  readonly title: string;
  readonly svg: string;
}

const HEIGHT = 380;
const BAR_HEIGHT = 26;
/** Of several at a place. */
const THIN_BAR = 16;
const LETTER = 6.7;
const SAMPLE = 34;
const LEGEND_LINE = 22;

export function chartsOf({ benchmarks, experiments }: BenchReport): Chart[] {
  const ofBenchmarks = benchmarks.flatMap((result) => chartOfBenchmark(result) ?? []);
  const ofFigures = experiments.flatMap(({ id, figures }) =>
    figures.flatMap((figure) => (figure.chart === undefined ? [] : [chartOfFigure(`${id}-${figure.id}`, figure)])),
  );
  return [...ofBenchmarks, ...ofFigures];
}

function chartOfBenchmark(result: BenchmarkResult): Chart | undefined {
  const { cases, id } = result;
  const benchmark = BENCHMARKS.find((one) => one.id === id);
  if (benchmark?.chart === undefined) return undefined;
  const { chart, title } = benchmark;
  if (chart.kind === 'heat') return { file: `${id}.svg`, title, svg: heatMap(title, cases) };
  if (chart.kind === 'gains') return { file: `${id}.svg`, title, svg: gains(title, cases) };
  const metric = chart.metric ?? 'throughput';
  const perSecond = benchmark.routes === undefined ? 'commands/s' : 'requests/s';
  const unit = metric === 'throughput' ? perSecond : `${METRICS[metric].title}, ${METRICS[metric].unit}`;
  const names = [...new Set(cases.flatMap(({ variants }) => variants.map(({ variant }) => variant)))];
  const places = cases.map((one) => one.id);
  const at = (one: CaseResult, name: string) => {
    const variant = variantOf(one, name);
    return (variant && spreadOf(variant, metric)) ?? null;
  };
  // In a case alone, each variant is a place.
  const alone = cases.length === 1;
  const series = alone
    ? cases.map((one) => ({ name: one.id, values: names.map((name) => at(one, name)) }))
    : names.map((name) => ({ name, values: cases.map((one) => at(one, name)) }));
  const drawn = chart.kind === 'curves' && !alone ? 'line' : 'bar';
  const x = ['', alone ? names : places] as const;
  return chartOfFigure(id, figureOf(id, title, x, unit, series, { chart: drawn, log: chart.log }));
}

function chartOfFigure(name: string, { chart, series, title, x, y }: Figure): Chart {
  const alone = chart === 'bar' && series.length === 1 ? series[0] : undefined;
  // Of a series alone, each place has a bar in its own style.
  const names = alone === undefined ? series.map((one) => one.name) : x.values;
  const styles = stylesOf(names);
  const drawn = names.map((one, index): Drawn => {
    const values = alone === undefined ? series[index]!.values : [alone.values[index]];
    return { name: labelOf(one), style: styles[index]!, values: values.map((value) => value?.median ?? null) };
  });
  const head = { title, unit: unitOf(y.title), log: y.log === true };
  const svg = chart === 'line' ? curves(head, x, drawn) : bars(head, alone === undefined ? x.values : undefined, drawn);
  return { file: `${name}.svg`, title, svg };
}

interface Head {
  readonly title: string;
  /** With the direction that is better. */
  readonly unit: string;
  readonly log: boolean;
}

interface Drawn {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly style: Style;
}

/** A bar for each name; or several at each place, each with its name, which no shade of grey would tell as well. */
function bars(head: Head, places: readonly string[] | undefined, drawn: readonly Drawn[]): string {
  const names = drawn.map(({ name }) => name);
  const colourOf = ({ ours, colour }: Style) => ({ color: ours ? colour : OTHER });
  const one: BarSeriesOption = {
    type: 'bar',
    data: drawn.map(({ style, values: [value = null] }) => ({ value: value as number, itemStyle: colourOf(style) })),
    label: { formatter: ({ value }) => number(Number(value)) },
  };
  const several = drawn.map(({ name, values, style }): BarSeriesOption => {
    const label = { fontSize: 10, formatter: ({ value }: { value: unknown }) => `${name} ${number(Number(value))}` };
    return { name, type: 'bar', barCategoryGap: 14, data: values as number[], itemStyle: colourOf(style), label };
  });
  const room = places === undefined ? { names } : { names: places, right: widthOf(names) + 60 };
  const option: EChartsOption = {
    ...common(head, room),
    xAxis: valueAxis(head),
    yAxis: { ...placeAxis(places ?? names), inverse: true },
    series: places === undefined ? one : several,
  };
  const height = places === undefined ? 100 : places.length * 14 + 110;
  return draw(option, height + (places === undefined ? BAR_HEIGHT : places.length * THIN_BAR) * drawn.length);
}

/** A bar for each case: throughput of coalesced divided by that of plain, with the range of the rounds. */
function gains(title: string, cases: readonly CaseResult[]): string {
  const found = cases.flatMap((one) => {
    const gain = compare({ metric: 'throughput', of: 'coalesced', versus: 'plain' }, one);
    return gain === undefined ? [] : [{ id: one.id, gain }];
  });
  const names = found.map(({ id }) => id);
  const steps = { interval: 0.5, max: Math.ceil(2 * Math.max(1, ...found.map(({ gain }) => gain.median))) / 2 };
  const head = { title, unit: 'throughput ÷ that of ioredis (range of the rounds), more is better', log: false };
  const option: EChartsOption = {
    ...common(head, { names, right: 120 }),
    xAxis: { ...valueAxis(head), ...steps, axisLabel: { formatter: '{value}×' } },
    yAxis: { ...placeAxis(names), inverse: true },
    series: {
      type: 'bar',
      data: found.map(({ gain: { median } }) => {
        return { value: median, itemStyle: { color: median < 1 ? OTHER : OURS } };
      }),
      label: { backgroundColor: PAPER, formatter: ({ dataIndex }) => ranged(found[dataIndex]!.gain) },
      markLine: {
        silent: true,
        // Behind the bars and their labels.
        z: 1,
        symbol: 'none',
        data: [{ xAxis: 1 }],
        lineStyle: { color: SOFT, type: 'dashed' },
        label: { formatter: 'ioredis', position: 'start', color: SOFT },
      },
    },
  };
  return draw(option, 110 + BAR_HEIGHT * found.length);
}

function curves(head: Head, x: Figure['x'], drawn: readonly Drawn[]): string {
  // In columns as wide as the widest: they do not run into each other.
  const column = widthOf(drawn.map(({ name }) => name)) + SAMPLE + 24;
  const columns = Math.max(1, Math.floor((WIDTH - 24) / column));
  const legendLines = Math.ceil(drawn.length / columns);
  const option: EChartsOption = {
    ...common(head, { legendLines, right: 30 }),
    legend: drawn.map(({ name }, index) => ({
      data: [name],
      top: 52 + Math.floor(index / columns) * LEGEND_LINE,
      left: 12 + (index % columns) * column,
      itemWidth: SAMPLE,
      textStyle: { fontSize: 11 },
    })),
    xAxis: { ...placeAxis(x.values), name: x.title, nameLocation: 'middle', nameGap: 28 },
    yAxis: valueAxis(head),
    series: drawn.map(({ name, values, style }) => ({
      name,
      type: 'line',
      data: values as number[],
      symbol: style.symbol,
      symbolSize: 7,
      z: style.ours ? 3 : 2,
      itemStyle: { color: style.colour },
      lineStyle: { type: style.dash, width: style.ours ? 3 : 1.5 },
    })),
  };
  return draw(option, HEIGHT + (legendLines - 1) * LEGEND_LINE);
}

/** Without a canvas, ECharts measures texts too short. */
function widthOf(texts: readonly string[]): number {
  return Math.ceil(Math.max(...texts.map((text) => text.length)) * LETTER);
}

/** @param room - `names`: those beside the bars. */
function common(
  { title, unit }: Head,
  room: { names?: readonly string[]; legendLines?: number; right?: number },
): EChartsOption {
  const { names, legendLines = 0, right = 90 } = room;
  const left = names === undefined ? { left: 20, containLabel: true } : { left: 24 + widthOf(names) };
  const top = 62 + legendLines * LEGEND_LINE + (legendLines > 0 ? 10 : 0);
  return {
    title: { text: title, subtext: unit, itemGap: 6 },
    grid: { ...left, bottom: names === undefined ? 30 : 34, right, top },
  };
}

function placeAxis(places: readonly string[]) {
  const data = places.map((place) => (/^\d{4,}$/.test(place) ? Number(place).toLocaleString('en-US') : place));
  return { type: 'category' as const, data };
}

function valueAxis({ log }: Head) {
  return { type: log ? ('log' as const) : ('value' as const), axisLabel: { formatter: short } };
}

function short(value: number): string {
  if (value >= 1e6) return `${number(value / 1e6)}M`;
  return value >= 1e3 ? `${number(value / 1e3)}k` : number(value) || '0';
}
