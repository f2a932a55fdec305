import { draw, OURS } from '../report/drawing.js';
import type { Figures, Measure, RouteSummary } from './demo-summary.js';
import { CLIENT_KINDS, type ClientKind } from './routes.js';

const WIDTH = 960;
const HEIGHT = 440;
const COLOURS: Record<ClientKind, string> = { plain: '#94a3b8', coalesced: OURS };
const MEASURES: { measure: Measure; title: string; better: string }[] = [
  { measure: 'perSecond', title: 'Requests per second', better: 'higher is better' },
  { measure: 'p99Ms', title: '99th percentile, ms', better: 'lower is better' },
  { measure: 'redisCpuUs', title: 'Redis CPU per request, µs', better: 'lower is better' },
];
const SHARE = 100 / MEASURES.length;

/** The demo's table as a picture: a chart per measure, a pair of bars per route. */
export function renderChart(summary: readonly RouteSummary[], settings: string): string {
  const option = {
    title: [
      { text: 'The same Fastify handlers, a plain and a coalesced client', subtext: settings, left: 16, top: 10 },
      ...MEASURES.map(({ title, better }, index) => ({
        text: title,
        subtext: better,
        left: `${index * SHARE + 2}%`,
        top: 84,
        itemGap: 4,
        textStyle: { fontSize: 14 },
      })),
    ],
    legend: { right: 20, top: 16 },
    grid: MEASURES.map((_, index) => ({
      left: `${index * SHARE + 2}%`,
      width: `${SHARE - 4}%`,
      top: 140,
      bottom: 16,
      containLabel: true,
    })),
    xAxis: MEASURES.map((_, gridIndex) => ({
      type: 'category' as const,
      gridIndex,
      data: summary.map(({ title }) => title),
      axisTick: { show: false },
      axisLabel: { interval: 0, width: 56, overflow: 'break' as const, fontSize: 10, lineHeight: 14 },
    })),
    yAxis: MEASURES.map((_, gridIndex) => ({
      type: 'value' as const,
      gridIndex,
      splitNumber: 4,
      splitLine: { lineStyle: { color: '#ececec' } },
    })),
    series: MEASURES.flatMap(({ measure }, index) =>
      CLIENT_KINDS.map((client) => ({
        type: 'bar' as const,
        name: client,
        xAxisIndex: index,
        yAxisIndex: index,
        itemStyle: { color: COLOURS[client], borderRadius: [3, 3, 0, 0] },
        barGap: '8%',
        barCategoryGap: '28%',
        data: summary.map((route) => figureOf(route, route[client], measure) as number),
      })),
    ),
  };
  return draw(option, HEIGHT, WIDTH);
}

/** Nothing where a route without Redis has no figure of Redis's: what the server does by itself is not its doing. */
function figureOf({ route }: RouteSummary, figures: Figures, measure: Measure): number | null {
  return measure === 'redisCpuUs' && route === 'no-redis' ? null : Number(figures[measure].toPrecision(4));
}
