/** The few figures that the README opens with. */
import type { Chart } from './charts.js';
import { compare, spreadOf } from './judge.js';
import { table } from './markdown.js';
import type { BenchReport, CaseResult } from './results.js';
import type { Contestant, Metric } from './rows.js';
import { describeMachine } from './settings.js';

interface Gain {
  readonly row: string;
  readonly text: string;
  readonly metric: Metric;
  readonly unit: string;
  readonly digits: number;
  /** Plain, auto-pipelining, coalesced. */
  readonly arms: readonly [Contestant, Contestant | undefined, Contestant];
}

const GAINS: readonly Gain[] = [
  {
    row: 'burst',
    text: '200 concurrent `get`s, again and again',
    metric: 'throughput',
    unit: '/s',
    digits: 0,
    arms: ['plain', 'auto', 'coalesced'],
  },
  {
    row: 'burst',
    text: 'CPU of Node for one of them',
    metric: 'cpu',
    unit: ' µs',
    digits: 2,
    arms: ['plain', 'auto', 'coalesced'],
  },
  {
    row: 'loops',
    text: '50 loops of sequential awaits',
    metric: 'throughput',
    unit: '/s',
    digits: 0,
    arms: ['plain', 'auto', 'coalesced'],
  },
  {
    row: 'cluster',
    text: '200 concurrent `get`s over a Cluster of 3 masters',
    metric: 'throughput',
    unit: '/s',
    digits: 0,
    arms: ['cluster', 'cluster-auto', 'cluster-coalesced'],
  },
  {
    row: 'fastify-parallel',
    text: 'Fastify, 8 `hget`s a request in `Promise.all`: requests',
    metric: 'throughput',
    unit: '/s',
    digits: 0,
    arms: ['plain', undefined, 'coalesced'],
  },
  {
    row: 'fastify-parallel',
    text: 'CPU of Redis for one of these requests',
    metric: 'serverCpu',
    unit: ' µs',
    digits: 1,
    arms: ['plain', undefined, 'coalesced'],
  },
];

/** The chart of the first row, if there is one. */
const CHART = 'burst.svg';

export function readmeGains({ settings, rows }: BenchReport, charts: readonly Chart[]): string {
  const lines = GAINS.flatMap((gain) => {
    const found = rows.find(({ id }) => id === gain.row)?.cases[0];
    return found === undefined ? [] : [cells(gain, found)];
  });
  const chart = charts.find(({ file }) => file === CHART);
  const picture = chart === undefined ? [] : [`![${chart.title}](bench/results/${CHART})`];
  return [
    table(['', 'ioredis', 'its auto-pipelining', 'coalesced', 'gain over ioredis'], lines),
    ...picture,
    `${describeMachine(settings)}; medians of a run.`,
  ].join('\n\n');
}

/** The gain is the median of the rounds' ratios, as in the table of the bars; what it saves counts like what it does. */
function cells({ text, metric, unit, digits, arms }: Gain, found: CaseResult): string[] {
  const figures = arms.map((arm) => {
    const result = found.contestants.find(({ contestant }) => contestant === arm);
    return result && spreadOf(result, metric)?.median;
  });
  const [versus, , of] = arms;
  const gain = compare({ metric, of, versus }, found)?.median;
  const shown = figures.map((figure) => (figure === undefined ? '' : number(figure, digits) + unit));
  return [text, ...shown, gain === undefined ? '' : `**${number(Math.max(gain, 1 / gain), 1)}×**`];
}

function number(value: number, digits: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
