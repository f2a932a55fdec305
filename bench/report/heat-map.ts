import { color, type EChartsOption } from 'echarts';
import { BURSTS, COMMANDS, gridCase, VALUES } from '../benchmarks/grid.js';
import { compare } from '../suite/evaluate.js';
import type { CaseResult } from '../suite/results.js';
import type { Metric } from '../variants/protocol.js';
import { draw, OURS, WIDTH } from './drawing.js';

const SIZES = Object.keys(VALUES);
const METRIC_IDS = ['throughput', 'p50', 'cpu'] as const;
const MAPS = METRIC_IDS.flatMap((metric) => COMMANDS.map((command) => ({ metric, command })));
const TITLES: Readonly<Partial<Record<Metric, string>>> = {
  throughput: 'throughput ÷ that of ioredis, more is better',
  p50: 'median time of a burst ÷ that of ioredis, less is better',
  cpu: 'CPU of Node ÷ that of ioredis, less is better',
};
const WORSE = '#b91c1c';
const LEVEL = '#ffffff';
/** How far from 1 a cell has its full colour. */
const FULL = 0.5;
/** On pale and on strong cells, in the dark too; neither is a colour that changes there. */
export const CELL_INKS = ['#000000', '#fefefe'] as const;
const TOP = 96;
const MAP_HEIGHT = 210;
const GAP = 84;

/** Ratios of coalesced to plain, by burst and value size: throughput, latency and CPU, read and written. */
export function heatMap(title: string, cases: readonly CaseResult[]): string {
  const at = MAPS.map((_, index) => ({
    left: index % 2 === 0 ? 60 : WIDTH / 2 + 50,
    top: TOP + (index >> 1) * (MAP_HEIGHT + GAP),
  }));
  const colours = (metric: Metric) => (metric === 'throughput' ? [WORSE, LEVEL, OURS] : [OURS, LEVEL, WORSE]);
  const cells = ({ metric, command }: (typeof MAPS)[number]) =>
    SIZES.flatMap((value, y) =>
      BURSTS.flatMap((burst, x) => {
        const found = cases.find(({ id }) => id === gridCase(command, value, burst));
        const median = found && compare({ metric, of: 'coalesced', versus: 'plain' }, found)?.value;
        if (median === undefined) return [];
        // The cell is coloured by the rounded figure, so its ink is chosen for that.
        const ratio = median < 1 ? Number(median.toFixed(2)) : Number(median.toPrecision(3));
        const [below = '', , above = ''] = colours(metric);
        const ink = inkOn(ratio < 1 ? below : above, Math.min(1, Math.abs(ratio - 1) / FULL));
        return [{ value: [x, y, ratio], label: { color: ink } }];
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
      min: 1 - FULL,
      max: 1 + FULL,
      inRange: { color: colours(metric) },
    })),
    series: MAPS.map((map, index) => ({
      type: 'heatmap',
      xAxisIndex: index,
      yAxisIndex: index,
      data: cells(map),
      label: { show: true, fontSize: 10 },
    })),
  };
  return draw(option, TOP + METRIC_IDS.length * (MAP_HEIGHT + GAP) - GAP + 50);
}

/** @param strength - of the colour, from 0 (the paper) to 1. */
function inkOn(colour: string, strength: number): string {
  const shade = color.lerp(strength, [LEVEL, colour]);
  const [dark, light] = CELL_INKS;
  return contrast(shade, dark) > contrast(shade, light) ? dark : light;
}

/** Of two colours, as WCAG 2 defines it. */
export function contrast(one: string, other: string): number {
  const [lower = 0, higher = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (higher + 0.05) / (lower + 0.05);
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = color.parse(colour)!.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
