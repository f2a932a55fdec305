import type { EChartsOption } from 'echarts';
import { draw, OTHER, OURS } from '../report/drawing.js';
import { DEMO_CLIENTS, type DemoClient, type Figures, type Measure, type RouteSummary } from './demo-summary.js';

const WIDTH = 960;
const NAMES: Record<DemoClient, string> = {
  plain: 'ioredis',
  corked: 'ioredis-coalesce, the cork',
  coalesced: 'ioredis-coalesce',
  cached: 'ioredis-coalesce, cached',
};
const COLOURS: Record<DemoClient, string> = {
  plain: OTHER,
  corked: '#7dd3c7',
  coalesced: OURS,
  cached: '#14b8a6',
};
const MEASURES: { measure: Measure; title: string }[] = [
  { measure: 'perSecond', title: 'Requests per second, more is better' },
  { measure: 'p99Ms', title: '99th percentile, ms, less is better' },
  { measure: 'redisCpuUs', title: 'Redis CPU per request, µs, less is better' },
];
const NAMES_WIDTH = 156;
const PANEL = (WIDTH - NAMES_WIDTH - 16) / MEASURES.length;
/** Beside the longest bar, for its value. */
const VALUE = 52;
const TOP = 118;
const BAR = 15;

/** The demo's table as a picture: a panel per measure, a row per route, a bar per client. */
export function renderChart(summary: readonly RouteSummary[], settings: string): string {
  const left = (index: number) => NAMES_WIDTH + index * PANEL;
  // A run may be without one of them.
  const clients = DEMO_CLIENTS.filter((client) => summary.some((route) => Number.isFinite(route[client].perSecond)));
  const height = summary.length * (clients.length * BAR + 16);
  const option: EChartsOption = {
    title: [
      {
        text: 'The same Fastify handlers on different Redis clients',
        subtext: settings,
        top: 10,
        textStyle: { fontSize: 17 },
        subtextStyle: { fontSize: 11 },
      },
      ...MEASURES.map(({ title }, index) => ({
        text: title,
        left: left(index) - 6,
        top: TOP - 28,
        textStyle: { fontSize: 12 },
      })),
    ],
    // One at a time: without a canvas, texts are measured too short, and names would run into each other.
    legend: clients.map((client, index) => ({ data: [NAMES[client]], left: 12 + [0, 90, 290, 430][index]!, top: 60 })),
    grid: MEASURES.map((_, index) => ({ left: left(index), width: PANEL - VALUE, top: TOP, height })),
    xAxis: MEASURES.map((_, gridIndex) => ({ type: 'value', gridIndex, splitNumber: 3, axisLabel: { show: false } })),
    yAxis: MEASURES.map((_, gridIndex) => ({
      type: 'category',
      gridIndex,
      inverse: true,
      data: summary.map(({ title }) => title),
      axisLabel: { show: gridIndex === 0, fontSize: 12 },
    })),
    series: MEASURES.flatMap(({ measure }, index) =>
      clients.map((client) => ({
        type: 'bar',
        name: NAMES[client],
        xAxisIndex: index,
        yAxisIndex: index,
        itemStyle: { color: COLOURS[client] },
        barGap: '8%',
        barCategoryGap: 14,
        label: {
          fontSize: 11,
          formatter: ({ value }: { value: unknown }) => (typeof value === 'number' ? digits(value) : ''),
        },
        data: summary.map((route) => figureOf(route, route[client], measure) as number),
      })),
    ),
  };
  return draw(option, TOP + height + 16, WIDTH);
}

/** Null for the CPU of Redis on a route without Redis: the server's own work is not caused by that route. */
function figureOf({ route }: RouteSummary, figures: Figures, measure: Measure): number | null {
  const value = figures[measure];
  const none = (measure === 'redisCpuUs' && route === 'no-redis') || !Number.isFinite(value);
  return none ? null : Number(value.toPrecision(4));
}

function digits(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(value >= 10 ? 3 : 2);
}
