import type { EChartsOption } from 'echarts';
import { PRODUCTION_PLACES, shareCase } from '../benchmarks/production.js';
import { type CaseResult, medianOf, variantOf } from '../suite/results.js';
import { draw, labelOf, stylesOf, WIDTH } from './drawing.js';
import { say } from './tables.js';

const SHARE = 60;
const CLIENTS = ['plain', 'cork', 'coalesced', 'reference'] as const;
const METRICS = {
  cpu: 'CPU of Node per request, µs',
  serverCpu: 'CPU of Redis per request, µs',
  p99: '99th percentile, µs',
} as const;
const NAMES_WIDTH = 90;
const PANEL = (WIDTH - NAMES_WIDTH - 16) / Object.keys(METRICS).length;
/** Beside the longest bar, for its value. */
const VALUE = 56;
const TOP = 110;
const BAR = 15;
const LEGEND_COLUMN = 205;

/** A panel for each measure, a row for each place, a bar for each client. */
export function bars(title: string, cases: readonly CaseResult[]): string {
  const metrics = Object.keys(METRICS) as (keyof typeof METRICS)[];
  const left = (index: number) => NAMES_WIDTH + index * PANEL;
  const height = PRODUCTION_PLACES.length * (CLIENTS.length * BAR + 16);
  const styles = stylesOf(CLIENTS);
  const caseAt = (place: string) => cases.find(({ id }) => id === `${place}: ${shareCase(SHARE)}`);
  const option: EChartsOption = {
    title: [
      { text: title, subtext: `at ${SHARE} % of what ioredis manages; less is better` },
      ...metrics.map((metric, index) => ({
        text: METRICS[metric],
        left: left(index) - 6,
        top: TOP - 24,
        textStyle: { fontSize: 11 },
      })),
    ],
    legend: CLIENTS.map((client, index) => ({ data: [labelOf(client)], top: 56, left: 12 + index * LEGEND_COLUMN })),
    grid: metrics.map((_, index) => ({ left: left(index), width: PANEL - VALUE, top: TOP, height })),
    xAxis: metrics.map((_, gridIndex) => ({ type: 'value', gridIndex, splitNumber: 3, axisLabel: { show: false } })),
    yAxis: metrics.map((_, gridIndex) => ({
      type: 'category',
      gridIndex,
      inverse: true,
      data: [...PRODUCTION_PLACES],
      axisLabel: { show: gridIndex === 0, fontSize: 11 },
    })),
    series: metrics.flatMap((metric, index) =>
      CLIENTS.map((client, of) => ({
        type: 'bar',
        name: labelOf(client),
        xAxisIndex: index,
        yAxisIndex: index,
        itemStyle: { color: styles[of]!.colour },
        barGap: '8%',
        barCategoryGap: 14,
        label: { fontSize: 11, formatter: ({ value }: { value: unknown }) => say(Number(value)) },
        data: PRODUCTION_PLACES.map((place) => (medianOf(variantOf(caseAt(place), client), metric) ?? null) as number),
      })),
    ),
  };
  return draw(option, TOP + height + 16);
}
