import * as echarts from 'echarts';
import type { Metric, RouteSummary } from './summary.js';
import { VARIANTS, type Variant } from './types.js';

const WIDTH = 960;
const HEIGHT = 440;
const COLOURS: Record<Variant, string> = { plain: '#b45309', coalesced: '#0f766e' };
const PANELS: { metric: Metric; title: string; better: string }[] = [
  { metric: 'requestsPerSecond', title: 'Requests per second', better: 'higher is better' },
  { metric: 'p99Ms', title: '99th percentile, ms', better: 'lower is better' },
  { metric: 'redisCpuUsPerRequest', title: 'Redis CPU per request, µs', better: 'lower is better' },
];
const PANEL_WIDTH = 100 / PANELS.length;

/** The demo's table as a picture: a panel per figure, a pair of bars per route. */
export function renderChart(summary: readonly RouteSummary[], settings: string): string {
  const chart = echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: HEIGHT });
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: { fontFamily: "system-ui, 'DejaVu Sans', sans-serif" },
    title: [
      { text: 'The same Fastify handlers, a plain and a coalesced client', subtext: settings, left: 16, top: 10 },
      ...PANELS.map(({ title, better }, panel) => ({
        text: title,
        subtext: better,
        left: `${panel * PANEL_WIDTH + 2}%`,
        top: 84,
        itemGap: 4,
        textStyle: { fontSize: 14 },
      })),
    ],
    legend: { right: 20, top: 16 },
    grid: PANELS.map((_, panel) => ({
      left: `${panel * PANEL_WIDTH + 2}%`,
      width: `${PANEL_WIDTH - 4}%`,
      top: 140,
      bottom: 16,
      containLabel: true,
    })),
    xAxis: PANELS.map((_, panel) => ({
      type: 'category',
      gridIndex: panel,
      data: summary.map(({ title }) => title),
      axisTick: { show: false },
      axisLabel: { interval: 0, width: 56, overflow: 'break', fontSize: 10, lineHeight: 14 },
    })),
    yAxis: PANELS.map((_, panel) => ({
      type: 'value',
      gridIndex: panel,
      splitNumber: 4,
      splitLine: { lineStyle: { color: '#ececec' } },
    })),
    series: PANELS.flatMap(({ metric }, panel) =>
      VARIANTS.map((variant) => ({
        type: 'bar',
        name: variant,
        xAxisIndex: panel,
        yAxisIndex: panel,
        itemStyle: { color: COLOURS[variant], borderRadius: [3, 3, 0, 0] },
        barGap: '8%',
        barCategoryGap: '28%',
        data: summary.map((route) => round(route, variant, metric)),
      })),
    ),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  return svg;
}

/** Nothing where a route without Redis has no figure of Redis's: what the server does by itself is not its doing. */
function round({ route, ...figures }: RouteSummary, variant: Variant, metric: Metric): number | null {
  const ofRedis = metric === 'redisCpuUsPerRequest';
  return ofRedis && route === 'no-redis' ? null : Number(figures[variant][metric].toPrecision(4));
}
