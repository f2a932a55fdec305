/** The few figures that visitors get: README's, and the column of docs/packages.md. */

import { markdownTable } from '../../tools/documents.js';
import { LOW_LOAD, shareCase } from '../benchmarks/production.js';
import { compare } from '../suite/evaluate.js';
import { type BenchmarkResult, type CaseResult, type GroupResult, variantOf } from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import { isClear } from '../suite/stats.js';
import { say } from './tables.js';

const GAIN_COLUMN = 'gain';
const NOT_MEASURED = 'not measured';
/** There is nothing for prefetch to do where no read follows another. */
const NOTHING = '–';
/** In a package's second row. */
const SAME = 'as above';
const COLUMNS = {
  'cork mode': 'cork',
  'fast mode': 'coalesced',
  'fast, with prefetch': 'coalesced-prefetch',
};

/** What is measured, in which case of which benchmark, and what the names of the clients end in. */
const ROWS: readonly (readonly [title: string, benchmark: string, id: string, suffix?: string])[] = [
  ['a web service, Redis on the same machine', 'production', `loopback: ${shareCase(60)}`],
  ['that service, TLS, Redis 0.5 ms away', 'production', `TLS, 0.5 ms: ${shareCase(60)}`],
  ['the latter, at 30 % load, with OpenTelemetry', 'production-traced', `TLS, 0.5 ms: ${shareCase(30)}`, '-otel'],
  ['200 `get`s at once', 'burst', '200 GETs'],
  ['six reads, one after the other, 1 ms away', 'prefetch', '1 ms: flow: user, 5'],
  ['one command at a time, TLS, 10 % load', 'single', `TLS: ${shareCase(LOW_LOAD)}`],
];

/** README's table, and where it was measured: the rows for which there are results of all its clients. */
export function gainsRegion(groups: readonly GroupResult[], current: string): string {
  const measured = new Map<string, { rows: number[]; runs: Set<string> }>();
  let row = 0;
  const rows = ROWS.flatMap(([title, benchmark, wanted, suffix = '']) => {
    const group = groups.find(({ benchmarks }) => benchmarks.some(({ id }) => id === benchmark));
    const found = group?.benchmarks.find(({ id }) => id === benchmark)?.cases.find(({ id }) => id === wanted);
    if (group === undefined || found === undefined || variantOf(found, `plain${suffix}`) === undefined) return [];
    const machine = describeMachine(group.settings);
    const own = measured.get(machine) ?? { rows: [], runs: new Set<string>() };
    measured.set(machine, own);
    row += 1;
    own.rows.push(row);
    own.runs.add(describeRun(group.settings));
    return [
      [title, ...Object.values(COLUMNS).map((client) => factorsOf(found, `${client}${suffix}`, `plain${suffix}`))],
    ];
  });
  if (rows.length === 0) return current;
  const machines = [...measured].map(
    ([machine, own]) =>
      `${measured.size === 1 ? '' : `Rows ${own.rows.join(', ')}: `}${machine}; ${[...own.runs].join(' and ')}.`,
  );
  const table = markdownTable(
    ['CPU of Node and median latency ÷ those of ioredis (less is better)', ...Object.keys(COLUMNS)],
    rows,
  );
  return `${table}\n\nUnclear: the 95 % interval includes 1. The service: Fastify, seven commands in three round trips a request. Load: in percent of the highest rate that plain ioredis sustains, 60 % unless stated. ${machines.join(' ')}`;
}

function factorsOf(found: CaseResult, of: string, versus: string): string {
  const [cpu, latency] = (['cpu', 'p50'] as const).map((metric) => compare({ metric, of, versus }, found));
  if (cpu === undefined || latency === undefined) return NOTHING;
  return [cpu, latency].map((one) => (isClear(one) ? say(one.value) : 'unclear')).join(', ');
}

/**
 * A table of packages with its column `gain` filled: throughput to plain, coalesced and, in brackets, corked, of each
 * thing that was measured.
 * What was measured and has no row follows in a sentence.
 */
export function packagesRegion(table: string, results: readonly BenchmarkResult[]): string {
  const cases = results.find(({ id }) => id === 'packages')?.cases ?? [];
  const [head = '', rule = '', ...rows] = table.split('\n').filter((line) => line.startsWith('|'));
  const column = cellsOf(head).indexOf(GAIN_COLUMN);
  if (column === -1) throw new Error(`expected a table with a column "${GAIN_COLUMN}", got ${head}`);
  const names = rows.map((row) => cellsOf(row)[0]!.replaceAll('`', ''));
  const filled = rows.map((row, index) => {
    const parts = cellsOf(row);
    const name = names[index]!;
    parts[column] = names.indexOf(name) < index ? SAME : packageGain(name, cases);
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
    const [gain, cork] = ['coalesced', 'cork'].map((of) =>
      compare({ metric: 'throughput', of, versus: 'plain' }, found),
    );
    if (gain === undefined) return [];
    const corked = cork === undefined ? '' : ` (${say(cork.value)}×)`;
    return [`${found.id.slice(name.length).replace(/^[ ,]+/, '')}: ${say(gain.value)}×${corked}`];
  });
  return gains.length === 0 ? NOT_MEASURED : gains.join('; ');
}

function cellsOf(line: string): string[] {
  const cells = line.split('|').slice(1, -1);
  return cells.map((cell) => cell.trim());
}
