/** The few figures that visitors get: the README's, and the column of docs/packages.md. */

import { markdownTable } from '../../tools/documents.js';
import type { Metric } from '../benchmarks/benchmark.js';
import { compare } from '../suite/evaluate.js';
import { type BenchReport, type CaseResult, type Run, spreadOf, variantOf } from '../suite/results.js';
import { describeMachine } from '../suite/settings.js';
import { medianAt, say } from './figure.js';

/** Plain, auto-pipelining, coalesced. */
type Three<T> = readonly [T, T | undefined, T];

/** A row of the README's table: figures of the three clients, and how many times better the coalesced one is. */
interface Gain {
  readonly figures: Three<string>;
  readonly times: string;
}

type GainRow = readonly [text: string, gain: (report: BenchReport) => Gain | undefined];

const USUAL: Three<string> = ['plain', 'auto', 'coalesced'];

const ROWS: readonly GainRow[] = [
  ['200 `get`s at once: reply to the first caller, p50 / p99', cascade('first', 'first-p99')],
  ['Reply to the last caller, p50 / p99', cascade('last', 'last-p99')],
  ['200 `get`s at once, again and again', measured('burst', USUAL, 'throughput', '/s', 0)],
  ['CPU of Node per `get`', measured('burst', USUAL, 'cpu', ' µs', 2)],
  [
    'Fastify route with 8 `hget`s in `Promise.all`, 30 connections: latency, p50 / p99',
    latencies('fastify-parallel', USUAL),
  ],
  ['CPU of Redis per request', measured('fastify-parallel', USUAL, 'serverCpu', ' µs', 1)],
];

export function gainsTable(report: BenchReport): string {
  const rows = ROWS.flatMap(([text, gain]) => {
    const found = gain(report);
    if (found === undefined) return [];
    return [[text, ...found.figures.map((figure) => figure ?? ''), `**${found.times}**`]];
  });
  return [
    markdownTable(['', 'ioredis', 'its auto-pipelining', 'coalesced', 'gain over ioredis'], rows),
    `${describeMachine({ ...report.settings, ...runOf(report, 'burst') })}; medians of a run.`,
  ].join('\n\n');
}

/** The gain is the ratio of the figures beside it; what it saves counts like what it does. */
function measured(benchmark: string, variants: Three<string>, metric: Metric, unit: string, digits: number) {
  return ({ benchmarks }: BenchReport): Gain | undefined => {
    const found = firstCase(benchmarks, benchmark);
    if (found === undefined) return undefined;
    const median = (variant: string) => {
      const result = variantOf(found, variant);
      return result && spreadOf(result, metric)?.median;
    };
    const [plain, auto, coalesced] = eachOf(variants, median);
    if (plain === undefined || coalesced === undefined) return undefined;
    const text = (value: number) => fixed(value, digits) + unit;
    const times = coalesced / plain;
    return {
      figures: [text(plain), auto === undefined ? undefined : text(auto), text(coalesced)],
      times: gainOf(Math.max(times, 1 / times)),
    };
  };
}

/** Medians over the rounds; the gains are the ratios of the figures. */
function latencies(benchmark: string, variants: Three<string>) {
  return ({ benchmarks }: BenchReport): Gain | undefined => {
    const found = firstCase(benchmarks, benchmark);
    const read = (variant: string) => {
      const result = found && variantOf(found, variant);
      const [p50, p99] = (['p50', 'p99'] as const).map((metric) => result && spreadOf(result, metric)?.median);
      return p50 === undefined || p99 === undefined ? undefined : [p50 / 1000, p99 / 1000];
    };
    return pairs(eachOf(variants, read));
  };
}

/** Two figures of the experiment with 200 callers on one connection. */
function cascade(...figures: readonly [string, string]) {
  return ({ experiments }: BenchReport): Gain | undefined => {
    const found = experiments.find(({ id }) => id === 'experiment-cascade')?.figures ?? [];
    const read = (variant: string) => {
      const [first, last] = figures.map((figure) => medianAt(found, figure, variant, '1'));
      return first === undefined || last === undefined ? undefined : [first, last];
    };
    return pairs(eachOf(USUAL, read));
  };
}

/** Pairs of milliseconds. */
function pairs([plain, auto, coalesced]: readonly (readonly number[] | undefined)[]): Gain | undefined {
  if (plain === undefined || coalesced === undefined) return undefined;
  const text = (pair: readonly number[]) => `${pair.map((ms) => fixed(ms, 2)).join(' / ')} ms`;
  return {
    figures: [text(plain), auto && text(auto), text(coalesced)],
    times: plain.map((ms, index) => gainOf(ms / coalesced[index]!)).join(' / '),
  };
}

function eachOf<T>([plain, auto, coalesced]: Three<string>, read: (variant: string) => T): Three<T> {
  return [read(plain), auto === undefined ? undefined : read(auto), read(coalesced)];
}

/** When and where a benchmark was run, if not with the rest. */
function runOf({ benchmarks }: BenchReport, id: string): Run | undefined {
  return benchmarks.find((one) => one.id === id)?.run;
}

function firstCase(benchmarks: BenchReport['benchmarks'], benchmark: string): CaseResult | undefined {
  return benchmarks.find(({ id }) => id === benchmark)?.cases[0];
}

function gainOf(times: number): string {
  return `${fixed(times, 1)}×`;
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
