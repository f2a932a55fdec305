/** The few figures that visitors get: the README's, and the column of docs/packages.md. */

import { markdownTable } from '../../tools/documents.js';
import type { Metric } from '../benchmarks/benchmark.js';
import { compare } from '../suite/evaluate.js';
import { type BenchReport, type CaseResult, spreadOf, variantOf } from '../suite/results.js';
import { medianAt, say } from './figure.js';
import { machinesOf } from './runs.js';

const CLIENTS = ['plain', 'auto', 'coalesced'] as const;
/** What the rows are read from. */
const SOURCES = ['burst', 'fastify-parallel', 'experiment-cascade'];
const GAIN_COLUMN = 'gain';
const NOT_MEASURED = 'not measured';

/** What a client came to: one figure, or several; undefined where it was not measured. */
type Read = (report: BenchReport, client: string) => (number | undefined)[];

const ROWS: readonly (readonly [text: string, unit: string, digits: number, Read])[] = [
  ['200 `get`s at once: reply to the first caller, p50 / p99', ' ms', 2, cascade('first', 'first-p99')],
  ['Reply to the last caller, p50 / p99', ' ms', 2, cascade('last', 'last-p99')],
  ['200 `get`s at once, again and again', '/s', 0, measured('burst', 'throughput')],
  ['CPU of Node per `get`', ' µs', 2, measured('burst', 'cpu')],
  [
    'Fastify route with 8 `hget`s in `Promise.all`, 30 connections: latency, p50 / p99',
    ' ms',
    2,
    measured('fastify-parallel', 'p50', 'p99'),
  ],
  ['CPU of Redis per request', ' µs', 1, measured('fastify-parallel', 'serverCpu')],
];

export function gainsTable(report: BenchReport): string {
  const rows = ROWS.flatMap(([text, unit, digits, read]) => {
    const [plain, auto, coalesced] = CLIENTS.map((client) => read(report, client).filter((one) => one !== undefined));
    if (!plain?.length || !coalesced?.length) return [];
    const said = (figures: readonly number[] = []) =>
      figures.length === 0 ? '' : `${figures.map((one) => fixed(one, digits)).join(' / ')}${unit}`;
    // What it saves counts like what it does.
    const gains = plain.map((figure, index) => figure / coalesced[index]!).map((gain) => Math.max(gain, 1 / gain));
    return [
      [text, said(plain), said(auto), said(coalesced), `**${gains.map((gain) => `${fixed(gain, 1)}×`).join(' / ')}**`],
    ];
  });
  const measuredIn = [...report.benchmarks, ...report.experiments].filter(({ id }) => SOURCES.includes(id));
  return [
    markdownTable(['', 'ioredis', 'its auto-pipelining', 'coalesced', 'gain over ioredis'], rows),
    `${machinesOf(report, measuredIn, false)}; medians. A gain is the ratio of two medians.`,
  ].join('\n\n');
}

/** Medians over the rounds. */
function measured(benchmark: string, ...metrics: readonly Metric[]): Read {
  return ({ benchmarks }, client) => {
    const [found] = benchmarks.find(({ id }) => id === benchmark)?.cases ?? [];
    const result = found && variantOf(found, client);
    const factor = (metric: Metric) => (metric === 'p50' || metric === 'p99' ? 1000 : 1);
    return metrics.map((metric) => {
      const median = result && spreadOf(result, metric)?.median;
      return median === undefined ? undefined : median / factor(metric);
    });
  };
}

/** Figures of the experiment with 200 callers on one connection. */
function cascade(...figures: readonly string[]): Read {
  return ({ experiments }, client) => {
    const found = experiments.find(({ id }) => id === 'experiment-cascade')?.figures ?? [];
    return figures.map((figure) => medianAt(found, figure, client, '1'));
  };
}

function fixed(value: number, digits: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/**
 * A table of packages with its column `gain` filled: throughput, coalesced to plain, of each thing that was measured.
 * What was measured and has no row follows in a sentence.
 */
export function withPackageGains(table: string, { benchmarks }: BenchReport): string {
  const cases = benchmarks.find(({ id }) => id === 'packages')?.cases ?? [];
  const [head = '', rule = '', ...rows] = table.split('\n').filter((line) => line.startsWith('|'));
  const column = cellsOf(head).indexOf(GAIN_COLUMN);
  if (column === -1) throw new Error(`expected a table with a column "${GAIN_COLUMN}", got ${head}`);
  const names = rows.map((row) => cellsOf(row)[0]!.replaceAll('`', ''));
  const filled = rows.map((row, index) => {
    const parts = cellsOf(row);
    parts[column] = packageGain(names[index]!, cases);
    return `| ${parts.join(' | ')} |`;
  });
  const others = cases.filter(({ id }) => !names.some((name) => isOf(id, name))).map(({ id }) => id.split(',')[0]!);
  const sentences = [...new Set(others)].map((name) => `\`${name}\`, ${packageGain(name, cases)}`);
  const more = sentences.length === 0 ? [] : ['', `Measured, without a test here: ${sentences.join('; ')}.`];
  return [head, rule, ...filled, ...more].join('\n');
}

function isOf(id: string, name: string): boolean {
  return id.startsWith(`${name},`) || id.startsWith(`${name} `);
}

function packageGain(name: string, cases: readonly CaseResult[]): string {
  const gains = cases.flatMap((found) => {
    if (!isOf(found.id, name)) return [];
    const gain = compare({ metric: 'throughput', of: 'coalesced', versus: 'plain' }, found);
    return gain === undefined ? [] : [`${found.id.slice(name.length).replace(/^[ ,]+/, '')}: ${say(gain.median)}×`];
  });
  return gains.length === 0 ? NOT_MEASURED : gains.join('; ');
}

function cellsOf(line: string): string[] {
  const cells = line.split('|').slice(1, -1);
  return cells.map((cell) => cell.trim());
}
