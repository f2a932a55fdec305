import type { EChartsOption } from 'echarts';
import { burstCase, loopsCase, NEAR } from '../benchmarks/schedule.js';
import { compare } from '../suite/evaluate.js';
import { type CaseResult, variantOf } from '../suite/results.js';
import { draw, labelOf, stylesOf, WIDTH } from './drawing.js';

const CLIENTS = ['coalesced', 'coalesced-no-poll', 'cork', 'reference'] as const;
const AXES = [
  { title: 'commands per burst', places: ['5', '20', '50', '200', '1000'], idOf: burstCase },
  { title: 'loops of awaits', places: ['1', '10', '50', '200', '400'], idOf: loopsCase },
];
const METRICS = {
  throughput: 'throughput ÷ that of ioredis, more is better',
  cpu: 'CPU of Node per command ÷ that of ioredis, less is better',
} as const;
const TOP = 130;
const HEIGHT = 200;
const GAP = 90;
const LEGEND_COLUMN = 205;

/** Throughput and CPU by the size of bursts and the number of loops, on loopback. */
export function curves(title: string, cases: readonly CaseResult[]): string {
  const panels = (Object.keys(METRICS) as (keyof typeof METRICS)[]).flatMap((metric, row) =>
    AXES.map((axis, column) => ({ metric, axis, left: 50 + (column * WIDTH) / 2, top: TOP + row * (HEIGHT + GAP) })),
  );
  const clients = CLIENTS.filter((client) => cases.some((one) => variantOf(one, client) !== undefined));
  const styles = stylesOf(clients);
  const option: EChartsOption = {
    title: [
      { text: title, subtext: 'on loopback' },
      ...panels.map(({ metric, left, top }) => ({
        text: METRICS[metric],
        left: left - 20,
        top: top - 34,
        textStyle: { fontSize: 11 },
      })),
    ],
    legend: clients.map((client, index) => ({
      data: [labelOf(client)],
      top: 60,
      left: 12 + index * LEGEND_COLUMN,
      textStyle: { fontSize: 11 },
    })),
    grid: panels.map(({ left, top }) => ({ left, top, width: WIDTH / 2 - 80, height: HEIGHT })),
    xAxis: panels.map(({ axis }, gridIndex) => ({
      type: 'category',
      gridIndex,
      data: axis.places,
      name: axis.title,
      nameLocation: 'middle',
      nameGap: 26,
    })),
    yAxis: panels.map((_, gridIndex) => ({ type: 'value', gridIndex, axisLabel: { formatter: '{value}×' } })),
    series: panels.flatMap(({ metric, axis }, index) =>
      clients.map((client, of) => ({
        name: labelOf(client),
        type: 'line',
        xAxisIndex: index,
        yAxisIndex: index,
        symbol: styles[of]!.symbol,
        symbolSize: 7,
        itemStyle: { color: styles[of]!.colour },
        lineStyle: { type: styles[of]!.dash, width: styles[of]!.ours ? 3 : 1.5 },
        data: axis.places.map((place) => {
          const found = cases.find(({ id }) => id === `${NEAR}: ${axis.idOf(Number(place))}`);
          return (compare({ metric, of: client, versus: 'plain' }, found)?.value ?? null) as number;
        }),
      })),
    ),
  };
  return draw(option, TOP + 2 * HEIGHT + GAP + 60);
}
