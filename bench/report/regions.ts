/** What the results put into the documents: a region for each name. */

import { markdownTable, type Region } from '../../tools/documents.js';
import { GROUPS } from '../benchmarks/index.js';
import { evaluate, titleOf } from '../suite/evaluate.js';
import { type BenchmarkResult, type GroupResult, pacedText } from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import type { Metric } from '../variants/protocol.js';
import { agreementText } from './agreement.js';
import { labelOf } from './drawing.js';
import { gainsRegion, packagesRegion } from './gains.js';
import { headlineRegions } from './headlines.js';
import { resultCells, targetCells } from './tables.js';

const NOTHING = 'Not measured yet.';
/** What charts show, which as tables would be too long to read. */
const DRAWN = ['grid', 'schedule'];
/** In the files alone. */
const NOT_SHOWN: readonly Metric[] = ['p999', 'utilization', 'loadCpu', 'late'];

/**
 * @param others - of setups that are not the standard one, by name.
 * @param earlier - of an earlier run of the standard setup.
 */
export function regionsOf(
  groups: readonly GroupResult[],
  others: ReadonlyMap<string, readonly GroupResult[]> = new Map(),
  earlier: readonly GroupResult[] = [],
): Readonly<Record<string, Region>> {
  const all = groups.flatMap(({ benchmarks }) => benchmarks);
  const before = earlier.flatMap(({ benchmarks }) => benchmarks);
  return {
    gains: (current: string) => gainsRegion(groups, current),
    packages: (table: string) => packagesRegion(table, all),
    ...headlineRegions(all),
    'bench-run': runsText(groups),
    'bench-production': chart(all, 'production'),
    'bench-schedule': chart(all, 'schedule'),
    'bench-grid': chart(all, 'grid'),
    'bench-targets': targetsText(all),
    'bench-agreement': agreementText(before, all) ?? NOTHING,
    'bench-setups': [...others].map(([, results]) => setupText(results)).join('\n\n') || NOTHING,
    'bench-results': Object.keys(GROUPS)
      .map((name) => groupText(name, groups.find(({ group }) => group === name)?.benchmarks ?? []))
      .join('\n\n'),
  };
}

/** Each machine once, and a line for each run on it: which groups, and when; then what disturbed them. */
function runsText(groups: readonly GroupResult[]): string {
  if (groups.length === 0) return NOTHING;
  const runs = new Map<string, string[]>();
  for (const { group, settings } of groups) {
    const run = `${describeMachine(settings)}; ${describeRun(settings)}`;
    runs.set(run, [...(runs.get(run) ?? []), `[${group}](../bench/results/${group}.json)`]);
  }
  const notes = groups.flatMap(({ group, notes: own }) => own.map((note) => `- ${group}: ${note}`));
  return [...[...runs].map(([run, of]) => `- ${run}: ${of.join(', ')}`), ...notes].join('\n');
}

function targetsText(results: readonly BenchmarkResult[]): string {
  const found = evaluate(results);
  const { head, rows } = targetCells(found);
  const missed = found.filter(({ met }) => !met).length;
  return `${found.length - missed} of ${found.length} targets met.\n\n${markdownTable(head, rows)}`;
}

/** The targets that another setup misses. */
function setupText(groups: readonly GroupResult[]): string {
  const [{ settings }] = groups as readonly [GroupResult];
  const found = evaluate(groups.flatMap(({ benchmarks }) => benchmarks));
  const missed = found.filter(({ met }) => !met);
  const where = `**Node ${settings.node.slice(1)}, ${settings.server}** (${describeRun(settings)}; ${groups.map(({ group }) => group).join(', ')})`;
  const count = found.length === 0 ? 'no targets' : `${found.length - missed.length} of ${found.length} targets met`;
  const { head, rows } = targetCells(missed);
  return [`${where}: ${count}.`, ...(missed.length === 0 ? [] : [markdownTable(head, rows)])].join('\n\n');
}

function groupText(group: string, results: readonly BenchmarkResult[]): string {
  const tables = results
    .filter(({ id }) => !DRAWN.includes(id))
    .map((result) => {
      const { head, rows } = resultCells(result, NOT_SHOWN, labelOf);
      return `**${titleOf(result.id)}** (${pacedText(result)})\n\n${markdownTable(head, rows)}`;
    });
  const drawn = results.filter(({ id }) => DRAWN.includes(id)).map(({ id }) => `[${titleOf(id)}](${id}.svg)`);
  return [`## ${group}`, ...drawn, ...tables, ...(results.length === 0 ? [NOTHING] : [])].join('\n\n');
}

function chart(all: readonly BenchmarkResult[], id: string): string {
  return all.some((one) => one.id === id) ? `![${titleOf(id)}](../bench/results/${id}.svg)` : NOTHING;
}
