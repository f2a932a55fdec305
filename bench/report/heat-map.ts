import type { EChartsOption } from 'echarts';
import type { Metric } from '../benchmarks/benchmark.js';
import { BURSTS, COMMANDS, gridCase, VALUES } from '../benchmarks/grid.js';
import { compare } from '../suite/evaluate.js';
import type { BenchmarkResult } from '../suite/results.js';
import { draw, OURS, WIDTH } from './drawing.js';

const SIZES = Object.keys(VALUES);
const MAPS = (['throughput', 'p50'] as const).flatMap((metric) => COMMANDS.map((command) => ({ metric, command })));
const TITLES: Readonly<Partial<Record<Metric, string>>> = {
  throughput: 'throughput ÷ that of ioredis, more is better',
  p50: 'median time of a burst ÷ that of ioredis, less is better',
};
/** Of a cell, which stays light in the dark. */
export const CELL_INK = '#111827';
const TOP = 96;
const MAP_HEIGHT = 210;
const GAP = 84;

/** Ratios of coalesced to plain, by burst and value size: throughput and latency, read and written. */
export function heatMap({ cases, title }: BenchmarkResult): string {
  const at = MAPS.map((_, index) => ({
    left: index % 2 === 0 ? 60 : WIDTH / 2 + 50,
    top: TOP + (index >> 1) * (MAP_HEIGHT + GAP),
  }));
  const values = ({ metric, command }: (typeof MAPS)[number]) =>
    SIZES.flatMap((value, y) =>
      BURSTS.flatMap((burst, x) => {
        const found = cases.find(({ id }) => id === gridCase(command, value, burst));
        const ratio = found && compare({ metric, of: 'coalesced', versus: 'plain' }, found)?.median;
        return ratio === undefined ? [] : [[x, y, Number(ratio.toPrecision(3))]];
      }),
    );
  const label = { fontSize: 9 };
  const option: EChartsOption = {
    title: [
      { text: title },
      ...MAPS.map(({ metric, command }, index) => ({
        text: `${command}: ${TITLES[metric]}`,
        left: at[index]!.left,
        top: at[index]!.top - 30,
        textStyle: { fontSize: 11 },
      })),
    ],
    grid: at.map((place) => ({ ...place, width: WIDTH / 2 - 70, height: MAP_HEIGHT })),
    xAxis: MAPS.map((_, gridIndex) => ({
      type: 'category',
      gridIndex,
      data: BURSTS,
      axisLabel: label,
      name: 'commands per burst',
      nameLocation: 'middle',
      nameGap: 24,
      nameTextStyle: label,
    })),
    yAxis: MAPS.map((_, gridIndex) => ({ type: 'category', gridIndex, data: SIZES, axisLabel: label })),
    visualMap: MAPS.map(({ metric }, seriesIndex) => ({
      type: 'continuous',
      show: false,
      seriesIndex,
      min: 0.5,
      max: 1.5,
      inRange: { color: metric === 'throughput' ? ['#b91c1c', '#ffffff', OURS] : [OURS, '#ffffff', '#b91c1c'] },
    })),
    series: MAPS.map((map, index) => ({
      type: 'heatmap',
      xAxisIndex: index,
      yAxisIndex: index,
      data: values(map),
      label: { show: true, fontSize: 9, color: CELL_INK },
    })),
  };
  return draw(option, TOP + 2 * MAP_HEIGHT + GAP + 50);
}
