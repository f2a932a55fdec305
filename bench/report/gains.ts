/** The few figures that visitors get: README's, and the column of docs/packages.md. */

import { markdownTable } from '../../tools/documents.js';
import { PLACES } from '../benchmarks/network.js';
import { COMMANDS, RATE_PLACES, rateCase } from '../benchmarks/rates.js';
import { compare } from '../suite/evaluate.js';
import {
  type BenchmarkResult,
  type CaseResult,
  caseOf,
  type GroupResult,
  spreadOf,
  variantOf,
} from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import type { Metric } from '../variants/protocol.js';
import { say } from './tables.js';

const GAIN_COLUMN = 'gain';
const NOT_MEASURED = 'not measured';
/** Of what plain manages: what many services run at. */
const SHARE = 30;
const MS = 1000;

/** What it is called, the metrics in it, how each is shown, and their unit. */
type Column = readonly [name: string, metrics: readonly Metric[], show: (value: number) => string, unit: string];
const inMs = (us: number) => say(us / MS);

const NODE: Column = ['CPU of Node', ['cpu'], say, 'µs'];
const REDIS: Column = ['CPU of Redis', ['serverCpu'], say, 'µs'];
const OF_SERVICES: readonly Column[] = [NODE, REDIS, ['latency, p50 / p99', ['p50', 'p99'], inMs, 'ms']];
const OF_BURSTS: readonly Column[] = [
  NODE,
  REDIS,
  ['throughput', ['throughput'], (perSecond) => say(perSecond / 1000), 'k/s'],
  ['latency of the 50, p50', ['p50'], inMs, 'ms'],
];

/** Two tables and where they were measured. What stands there stays where nothing was measured. */
export function gainsRegion(groups: readonly GroupResult[], current: string): string {
  const all = groups.flatMap(({ benchmarks }) => benchmarks);
  const services = RATE_PLACES.flatMap((place) => COMMANDS.map((commands) => [place, commands] as const));
  const perRequest = tableOf(
    `ioredis → coalesced, per request, at ${SHARE} % of ioredis's own limit there`,
    services.map(([place, commands]) => {
      const title = `${place}: ${commands} ${commands === 1 ? 'command' : 'commands'}`;
      return [title, caseOf(all, 'rates', `${place}: ${rateCase(commands, SHARE)}`)];
    }),
    OF_SERVICES,
  );
  const perCommand = tableOf(
    'ioredis → coalesced, per `get`, 50 at once again and again',
    PLACES.map((place) => [
      place,
      all.find(({ id }) => id === 'network')?.cases.find(({ id }) => id.startsWith(`${place}: `)),
    ]),
    OF_BURSTS,
  );
  const used = groups.filter(({ benchmarks }) => benchmarks.some(({ id }) => id === 'rates' || id === 'network'));
  const runs = new Map<string, Set<string>>();
  for (const { settings } of used) {
    const machine = describeMachine(settings);
    runs.set(machine, (runs.get(machine) ?? new Set()).add(describeRun(settings)));
  }
  if (runs.size === 0) return current;
  const machines = [...runs].map(([machine, own]) => `${machine}; ${[...own].join(' and ')}`);
  const parts = [perRequest, perCommand, `Medians. ${machines.join('; and ')}.`];
  return parts.filter((part) => part !== undefined).join('\n\n');
}

/** What is left of the gain where both clients are traced. What stands there stays where nothing was measured. */
export function tracedRegion(results: readonly BenchmarkResult[], current: string): string {
  const found = caseOf(results, 'watching');
  const [plain, coalesced] = ['plain-otel', 'coalesced-otel'].map((variant) => {
    const result = variantOf(found, variant);
    return result && spreadOf(result, 'cpu')?.median;
  });
  if (plain === undefined || coalesced === undefined) return current;
  return `With OpenTelemetry on both, a \`get\` in bursts of 200 takes ${say(plain)} → ${say(coalesced)} µs of CPU of Node.`;
}

/** undefined where none of the rows was measured. */
function tableOf(
  title: string,
  rows: readonly (readonly [title: string, CaseResult | undefined])[],
  columns: readonly Column[],
): string | undefined {
  const measured = rows.filter(([, found]) => found !== undefined);
  if (measured.length === 0) return undefined;
  const cell = (found: CaseResult | undefined, [, metrics, show, unit]: Column) => {
    const of = (found: CaseResult | undefined, variant: string) => {
      const result = variantOf(found, variant);
      const medians = metrics.map((metric) => result && spreadOf(result, metric)?.median);
      return medians.map((median) => (median === undefined ? '–' : show(median))).join(' / ');
    };
    return `${of(found, 'plain')} → ${of(found, 'coalesced')} ${unit}`;
  };
  return markdownTable(
    [title, ...columns.map(([name]) => name)],
    measured.map(([name, found]) => [name, ...columns.map((column) => cell(found, column))]),
  );
}

/**
 * A table of packages with its column `gain` filled: throughput, coalesced to plain, of each thing that was measured.
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
