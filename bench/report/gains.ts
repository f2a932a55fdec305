/** The few figures that visitors get: the README's, and the column of docs/packages.md. */

import { markdownTable } from '../../tools/documents.js';
import type { Metric } from '../benchmarks/benchmark.js';
import { compare } from '../suite/evaluate.js';
import { type BenchReport, type CaseResult, spreadOf, variantOf } from '../suite/results.js';
import { describeMachine } from '../suite/settings.js';
import type { Chart } from './charts.js';
import { say } from './figure.js';

interface Gain {
  readonly benchmark: string;
  readonly text: string;
  readonly metric: Metric;
  readonly unit: string;
  readonly digits: number;
  /** Plain, auto-pipelining, coalesced. */
  readonly variants: readonly [string, string | undefined, string];
}

const USUAL = ['plain', 'auto', 'coalesced'] as const;
const OVER_HTTP = ['plain', undefined, 'coalesced'] as const;
const CLUSTER = ['cluster', 'cluster-auto', 'cluster-coalesced'] as const;

const GAINS: readonly Gain[] = [
  gain('burst', '200 concurrent `get`s, again and again', USUAL),
  gain('burst', 'CPU of Node for one of them', USUAL, 'cpu', ' µs', 2),
  gain('loops', '50 loops of sequential awaits', USUAL),
  gain('cluster', '200 concurrent `get`s over a Cluster of 3 masters', CLUSTER),
  gain('fastify-parallel', 'Fastify, 8 `hget`s per request in `Promise.all`: requests', OVER_HTTP),
  gain('fastify-parallel', 'CPU of Redis for one of these requests', OVER_HTTP, 'serverCpu', ' µs', 1),
];

/** The chart of the first benchmark, if there is one. */
const CHART = 'burst.svg';

function gain(
  benchmark: string,
  text: string,
  variants: Gain['variants'],
  metric: Metric = 'throughput',
  unit = '/s',
  digits = 0,
): Gain {
  return { benchmark, text, metric, unit, digits, variants };
}

export function gainsTable({ settings, benchmarks }: BenchReport, charts: readonly Chart[]): string {
  const rows = GAINS.flatMap((one) => {
    const found = benchmarks.find(({ id }) => id === one.benchmark)?.cases[0];
    return found === undefined ? [] : [cells(one, found)];
  });
  const chart = charts.find(({ file }) => file === CHART);
  return [
    markdownTable(['', 'ioredis', 'its auto-pipelining', 'coalesced', 'gain over ioredis'], rows),
    ...(chart === undefined ? [] : [`![${chart.title}](bench/results/${CHART})`]),
    `${describeMachine(settings)}; medians of a run.`,
  ].join('\n\n');
}

/** The gain is the median of the rounds' ratios, as in the table of the targets; what it saves counts like what it does. */
function cells({ text, metric, unit, digits, variants }: Gain, found: CaseResult): string[] {
  const figures = variants.map((variant) => {
    const result = variant === undefined ? undefined : variantOf(found, variant);
    return result && spreadOf(result, metric)?.median;
  });
  const [versus, , of] = variants;
  const times = compare({ metric, of, versus }, found)?.median;
  const shown = figures.map((figure) => (figure === undefined ? '' : fixed(figure, digits) + unit));
  return [text, ...shown, times === undefined ? '' : `**${fixed(Math.max(times, 1 / times), 1)}×**`];
}

function fixed(value: number, digits: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const GAIN_COLUMN = 'gain';
const NOT_MEASURED = 'not measured';

/** A table of packages with its column `gain` filled: throughput, coalesced to plain, of each thing that was measured. */
export function withPackageGains(table: string, { benchmarks }: BenchReport): string {
  const cases = benchmarks.find(({ id }) => id === 'packages')?.cases ?? [];
  const [head = '', rule = '', ...rows] = table.split('\n');
  const column = cellsOf(head).indexOf(GAIN_COLUMN);
  if (column === -1) throw new Error(`expected a table with a column "${GAIN_COLUMN}", got ${head}`);
  const filled = rows.map((row) => {
    const parts = cellsOf(row);
    parts[column] = packageGain(parts[0]!.replaceAll('`', ''), cases);
    return `| ${parts.join(' | ')} |`;
  });
  return [head, rule, ...filled].join('\n');
}

function packageGain(name: string, cases: readonly CaseResult[]): string {
  const gains = cases
    .filter(({ id }) => id.startsWith(`${name},`) || id.startsWith(`${name} `))
    .flatMap((found) => {
      const measured = compare({ metric: 'throughput', of: 'coalesced', versus: 'plain' }, found);
      return measured === undefined
        ? []
        : [`${found.id.slice(name.length).replace(/^[ ,]+/, '')}: ${say(measured.median)}×`];
    });
  return gains.length === 0 ? NOT_MEASURED : gains.join('; ');
}

function cellsOf(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}
