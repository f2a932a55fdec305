/** What the results put into the documents: a region for each name. */

import { markdownTable, type Region } from '../../tools/documents.js';
import { PLACES } from '../benchmarks/network.js';
import { COMMANDS, RATE_PLACES, rateCase } from '../benchmarks/rates.js';
import { burstCase, FAR } from '../benchmarks/schedule.js';
import { compare, evaluate, type TargetResult, titleOf } from '../suite/evaluate.js';
import {
  type BenchmarkResult,
  type CaseResult,
  caseOf,
  type GroupResult,
  spreadOf,
  variantOf,
} from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import type { Spread } from '../suite/stats.js';
import { METRICS, type Metric } from '../variants/protocol.js';
import { labelOf } from './drawing.js';
import { gainsRegion, packagesRegion } from './gains.js';
import { ranged, say, times, withUnit } from './tables.js';

const CHARTS = '../bench/results/';
const NOTHING = 'Not measured yet.';
/** The clients of a table of changes, where it does not name others. */
const PAIR = ['plain', 'coalesced'];

/** How the cases begin that show the cork: of 5 and of 50. The others are in the results. */
const CORK_CASES = FAR.map((place) => `${place}: ${burstCase(5)}`);

/** Of the rates; the others are in the results. */
const SHOWN_SHARES = [30, 60] as const;

/** @param others - of setups that are not the standard one, by name. */
export function regionsOf(
  groups: readonly GroupResult[],
  others: ReadonlyMap<string, readonly GroupResult[]> = new Map(),
): Readonly<Record<string, Region>> {
  const all = groups.flatMap(({ benchmarks }) => benchmarks);
  const sections = (...parts: readonly (string | undefined)[]) =>
    parts.filter((part) => part !== undefined).join('\n\n') || NOTHING;
  const tables = {
    'bench-network': sections(networkTable(all)),
    'bench-rates': sections(ratesTable(all), changesTable(all, 'idle', ['cpu', 'serverCpu', 'utilization'])),
    'bench-schedule': sections(chart(all, 'schedule')),
    'bench-cork': sections(
      ratiosTable(all, 'schedule', ['throughput', 'cpu', 'serverCpu'], 'cork', CORK_CASES),
      changesTable(all, 'cluster', ['throughput', 'cpu'], ['cluster', 'cluster-cork', 'cluster-coalesced']),
    ),
    'bench-prefetch': sections(
      changesTable(
        all,
        'prefetch',
        ['throughput', 'cpu', 'serverCpu', 'p50'],
        ['plain', 'coalesced', 'coalesced-prefetch'],
      ),
    ),
    'bench-grid': sections(chart(all, 'grid')),
    'bench-core': sections(
      medians(all, 'burst', ['throughput', 'cpu', 'p50', 'p99']),
      ratiosTable(all, 'fast-path', ['throughput', 'cpu']),
      medians(all, 'fastify-parallel', ['throughput', 'cpu', 'serverCpu', 'p99']),
    ),
    'bench-cache': sections(
      medians(all, 'cache-hits', ['throughput', 'cpu']),
      medians(all, 'cache-hot-key', ['throughput', 'cpu', 'serverCpu']),
    ),
    'bench-scale': sections(
      changesTable(all, 'connections', ['throughput', 'cpu']),
      medians(all, 'bystander', ['bystander', 'throughput']),
    ),
    'bench-peers': sections(medians(all, 'peers', ['throughput', 'cpu'])),
    'bench-watching': sections(
      medians(all, 'watching', ['throughput', 'cpu', 'serverCpu', 'p99']),
      medians(
        all,
        'watching-service',
        ['cpu', 'serverCpu', 'p50', 'p99'],
        ['plain-otel', 'cork-otel', 'coalesced-otel'],
      ),
    ),
    'bench-fused': sections(
      changesTable(all, 'fused', ['throughput', 'cpu', 'serverCpu'], ['coalesced', 'coalesced-fused']),
      changesTable(
        all,
        'fused-service',
        ['throughput', 'cpu', 'serverCpu', 'p50', 'p99'],
        ['plain', 'coalesced', 'coalesced-fused'],
      ),
    ),
    'bench-setups': sections(...[...others].map(([, results]) => setupText(results))),
  };
  const usual = usualPace(all);
  return {
    gains: (current: string) => gainsRegion(groups, current),
    packages: (table: string) => packagesRegion(table, all),
    'bench-run': runsText(groups, usual),
    'bench-targets': targetsText(all, Object.values(tables).join()),
    ...Object.fromEntries(Object.entries(tables).map(([name, text]) => [name, text.replaceAll(usual, '')])),
  };
}

/** The rounds of most benchmarks: they stand once, above all tables and charts. */
function usualPace(all: readonly BenchmarkResult[]): string {
  const counts = new Map<string, number>();
  for (const pace of all.map(pacedText)) counts.set(pace, (counts.get(pace) ?? 0) + 1);
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0] ?? '';
}

/** Each machine once, and a line for each run on it: which groups, and when; then the rounds of most. */
function runsText(groups: readonly GroupResult[], usual: string): string {
  if (groups.length === 0) return NOTHING;
  const machines = new Map<string, Map<string, string[]>>();
  for (const { group, settings } of groups) {
    const runs = machines.get(describeMachine(settings)) ?? new Map<string, string[]>();
    const run = describeRun(settings);
    machines.set(describeMachine(settings), runs.set(run, [...(runs.get(run) ?? []), group]));
  }
  const link = (group: string) => `[${group}](${CHARTS}${group}.json)`;
  const lines = [...machines].flatMap(([machine, runs]) => [
    `- ${machine}:`,
    ...[...runs].map(([run, of]) => `  - ${run}: ${of.map(link).join(', ')}`),
  ]);
  // Groups whose notes differ in a number alone share a line.
  const groupsOf = new Map<string, string[]>();
  for (const { group, notes } of groups) {
    for (const text of notes) {
      const [, count, rest = text] = /^(\d+ of \d+) (samples .*)$/.exec(text) ?? [];
      groupsOf.set(rest, [...(groupsOf.get(rest) ?? []), count === undefined ? group : `${group} ${count}`]);
    }
  }
  const notes = [...groupsOf].map(([rest, of]) => `- ${of.join(', ')}: ${rest}`);
  const pace = `- Rounds, unless a table says otherwise: ${usual.slice(2, -1)}.`;
  return [...lines, ...notes, pace].join('\n');
}

/** @param tables - the text below: what is met and stands there, or in docs/packages.md, is not told twice. */
function targetsText(results: readonly BenchmarkResult[], tables: string): string {
  const found = evaluate(results);
  const missed = found.filter(({ met }) => !met);
  const shown = (id: string) => id === 'packages' || tables.includes(titleOf(id));
  const met = found.filter((one) => one.met && !shown(one.benchmark));
  const count = `${found.length - missed.length} of ${found.length} targets met.`;
  const lists = [missed.length === 0 ? '' : `Missed:\n\n${targetLines(missed)}`];
  if (met.length > 0) lists.push(`Met, and in no table below:\n\n${targetLines(met)}`);
  return [count, ...lists].filter((part) => part !== '').join('\n\n');
}

/** A line for each benchmark: `client CPU 0.12× plain; …`; of those that are missed, range and limit too. */
function targetLines(found: readonly TargetResult[]): string {
  const byBenchmark = new Map<string, string[]>();
  for (const one of found) {
    const { benchmark, measured, met, work } = one;
    // Of a benchmark with several cases, which of them.
    const which = work.slice(titleOf(benchmark).length + 2);
    const limit = met ? '' : `(${limitOf(one)})`;
    const figure = said(one, met ? say(measured.median) : ranged(measured));
    const text = [which === '' ? figure : `${figure}, ${which}`, limit].filter((part) => part !== '').join(' ');
    byBenchmark.set(benchmark, [...(byBenchmark.get(benchmark) ?? []), text]);
  }
  return [...byBenchmark].map(([id, parts]) => `- **${titleOf(id)}**: ${parts.join('; ')}`).join('\n');
}

/** As tables name it; of ours, what is particular. */
const briefly = (variant: string) => labelOf(variant).replace('ioredis-coalesce, ', '');

/** `throughput of the cork 1.9× ioredis` */
function said({ metric, of, versus }: TargetResult, text: string): string {
  const whose = of === 'coalesced' || of === 'cluster-coalesced' ? [] : [`of ${briefly(of)}`];
  const against = versus === undefined ? [] : [briefly(versus)];
  return [METRICS[metric].title, ...whose, withUnit({ metric, versus }, text), ...against].join(' ');
}

function limitOf({ op, target, ...of }: TargetResult): string {
  return `${op === '<=' ? '≤' : '≥'} ${withUnit(of, say(target))}`;
}

/** The targets, those that are missed in a list, and the headline, where a setup has them. */
function setupText(groups: readonly GroupResult[]): string {
  const [{ settings }] = groups as readonly [GroupResult];
  const all = groups.flatMap(({ benchmarks }) => benchmarks);
  const found = evaluate(all);
  const missed = found.filter(({ met }) => !met);
  const names = groups.map(
    ({ group, benchmarks: [first] }) => `${group}${first === undefined ? '' : pacedText(first)}`,
  );
  const where = `**Node ${settings.node.slice(1)}, ${settings.server}** (${describeRun(settings)}; ${names.join(', ')})`;
  const count = `${found.length - missed.length} of ${found.length} targets met`;
  const summary = found.length === 0 ? `${where}:` : `${where}: ${count}${missed.length === 0 ? '.' : '. Missed:'}`;
  const places = all.find(({ id }) => id === 'network')?.cases ?? [];
  const ratio = (metric: Metric, one: CaseResult) => times(compare({ metric, of: 'coalesced', versus: 'plain' }, one));
  const gains = places.map((one) => `${one.id} ${ratio('throughput', one)} at ${ratio('cpu', one)}`).join('; ');
  const headline = gains === '' ? gains : `Throughput ÷ ioredis, at client CPU ÷ ioredis: ${gains}.`;
  return [summary, targetLines(missed), headline].filter((part) => part !== undefined && part !== '').join('\n\n');
}

/** A row for each variant of each case, or for some of them, with medians. */
function medians(
  all: readonly BenchmarkResult[],
  id: string,
  metrics: readonly Metric[],
  of?: readonly string[],
): string | undefined {
  const result = all.find((one) => one.id === id);
  if (result === undefined) return undefined;
  const alone = result.cases.length === 1;
  const rows = result.cases.flatMap((one) =>
    one.variants
      .filter(({ variant }) => of?.includes(variant) ?? true)
      .map((variant) => [
        ...(alone ? [] : [one.id]),
        labelOf(variant.variant),
        ...metrics.map((metric) => figure(spreadOf(variant, metric), metric)),
      ]),
  );
  return titled(result, [...(alone ? [] : ['']), '', ...metrics.map(titleWithUnit)], rows);
}

/** A row for each case where it was measured, in all places or some: divided by plain. */
function ratiosTable(
  all: readonly BenchmarkResult[],
  id: string,
  metrics: readonly Metric[],
  of = 'coalesced',
  places: readonly string[] = [''],
): string | undefined {
  const result = all.find((one) => one.id === id);
  const wanted = result?.cases.filter(({ id: one }) => places.some((place) => one.startsWith(place))) ?? [];
  const cases = wanted.filter((one) => variantOf(one, of) !== undefined);
  if (result === undefined || cases.length === 0) return undefined;
  const rows = cases.map((one) => [
    one.id,
    ...metrics.map((metric) => times(compare({ metric, of, versus: 'plain' }, one))),
  ]);
  return titled(result, ['÷ ioredis', ...metrics.map((metric) => METRICS[metric].title)], rows);
}

function networkTable(all: readonly BenchmarkResult[]): string | undefined {
  const result = all.find(({ id }) => id === 'network');
  const variants = result?.cases[0]?.variants.map(({ variant }) => variant) ?? [];
  if (result === undefined) return undefined;
  const rows = PLACES.flatMap((place) => {
    const found = result.cases.find(({ id }) => id.startsWith(`${place}: `));
    if (found === undefined) return [];
    const cell = (variant: string) => {
      const of = variantOf(found, variant);
      const metrics = ['throughput', 'cpu', 'serverCpu', 'p99'] as const;
      return of === undefined ? '' : metrics.map((metric) => figure(spreadOf(of, metric), metric)).join(' · ');
    };
    return [[place, ...variants.map(cell)]];
  });
  return titled(result, ['commands/s · CPU of Node · CPU of Redis · p99 latency, µs', ...variants.map(labelOf)], rows);
}

/** `ioredis→ioredis-coalesce` in each cell. */
function ratesTable(all: readonly BenchmarkResult[]): string | undefined {
  const result = all.find(({ id }) => id === 'rates');
  if (result === undefined) return undefined;
  const metrics = ['cpu', 'serverCpu', 'utilization', 'p50', 'p99'] as const;
  const rows = RATE_PLACES.flatMap((place) =>
    COMMANDS.flatMap((commands) =>
      SHOWN_SHARES.flatMap((share) => {
        const id = `${place}: ${rateCase(commands, share)}`;
        const found = caseOf(all, 'rates', id);
        const plain = variantOf(found, 'plain');
        if (plain === undefined) return [];
        return [[id, say(spreadOf(plain, 'throughput')?.median), ...metrics.map((metric) => change(found, metric))]];
      }),
    ),
  );
  return titled(result, ['ioredis → ioredis-coalesce', 'requests/s', ...metrics.map(titleWithUnit)], rows);
}

/** A row for each case, `ioredis→ioredis-coalesce` in each cell. */
function changesTable(
  all: readonly BenchmarkResult[],
  id: string,
  metrics: readonly Metric[],
  variants = PAIR,
): string | undefined {
  const result = all.find((one) => one.id === id);
  if (result === undefined) return undefined;
  const measured = variants.filter((variant) => result.cases.some((one) => variantOf(one, variant) !== undefined));
  const rows = result.cases.map((one) => [one.id, ...metrics.map((metric) => change(one, metric, measured))]);
  return titled(result, [measured.map(labelOf).join(' → '), ...metrics.map(titleWithUnit)], rows);
}

/** Where not all of them were measured, the figures of the others. */
function change(found: CaseResult | undefined, metric: Metric, variants = PAIR): string {
  const measured = variants.flatMap((variant) => variantOf(found, variant) ?? []);
  return measured.map((variant) => figure(spreadOf(variant, metric), metric)).join('→');
}

function chart(all: readonly BenchmarkResult[], id: string): string | undefined {
  const result = all.find((one) => one.id === id);
  return result && `![${titleOf(id)}](${CHARTS}${id}.svg)${pacedText(result)}`;
}

function pacedText({ rounds, seconds }: BenchmarkResult): string {
  return ` (${rounds} × ${seconds} s)`;
}

function titled(result: BenchmarkResult, head: readonly string[], rows: readonly (readonly string[])[]) {
  return `**${titleOf(result.id)}**${pacedText(result)}\n\n${markdownTable(head, rows)}`;
}

function titleWithUnit(metric: Metric): string {
  const { title, unit } = METRICS[metric];
  return unit === '' ? title : `${title}, ${unit}`;
}

function figure(found: Spread | undefined, metric: Metric): string {
  if (found === undefined) return '';
  return metric === 'utilization' ? found.median.toFixed(2) : say(found.median);
}
