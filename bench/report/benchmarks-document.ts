/** docs/benchmarks.md, from the results of a run. */

import { markdownTable } from '../../tools/documents.js';
import { EXPERIMENTS } from '../experiments/index.js';
import { evaluate } from '../suite/evaluate.js';
import type { BenchmarkResult, BenchReport, ExperimentResult } from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import { VARIANTS } from '../variants/protocol.js';
import { adviceFrom } from './advice.js';
import type { Chart } from './charts.js';
import type { Figure } from './figure.js';
import { list, wrap } from './markdown.js';
import { type Cells, figureCells, resultCells, targetCells } from './tables.js';

const CHARTS = '../bench/results/';

const INTRODUCTION = `# Benchmarks

Written by \`npm run bench:report\` from the results of a run; do not edit by hand. \`npm run bench\` repeats it on your
machine.`;

const METHOD = `Each variant is a process of its own. In every round each variant runs once, in rotated order, idle while the others run.
Figures are medians over the rounds with the least and the most in parentheses; a ratio is taken round by round first. CPU
is that of the client's process, all its threads. Socket writes are counted, and latencies of bursts and loops are taken,
in a pass of their own, because both cost. At fixed rates, commands fall due each millisecond, and their time counts from
then, whether or not the process came to issue them (no coordinated omission).`;

const TARGETS = `What the project asks of itself, met or not; the reasons for what is not met are in
[performance.md](performance.md#what-is-left). *Further* is what would be better still.`;

const SERVER_LIMIT = "the server's own tool, `-c 1` and `-P` as large as the burst: what the server can do";

export function benchmarksDocument(report: BenchReport, charts: readonly Chart[]): string {
  const { benchmarks, notes, settings } = report;
  const experiments = report.experiments.filter(({ id }) => id !== 'scale');
  const advice = adviceFrom(report.experiments);
  const parts = [
    INTRODUCTION,
    '## The run',
    wrap(`${describeMachine(settings)}.`),
    `${describeRun(settings)}.`,
    ...(notes.length === 0 ? [] : [list(notes)]),
    markdownTable(['variant', 'is'], variantsIn(benchmarks)),
    METHOD,
    '## Targets',
    TARGETS,
    tableOf(targetCells(evaluate(benchmarks))),
    ...(experiments.length === 0 ? [] : ['## Published experiments, repeated']),
    ...experiments.flatMap((experiment) => experimentSection(experiment, charts)),
    '## Figures',
    'Per command, unless the title says what else; over HTTP, per request.',
    ...benchmarks.flatMap((result) => benchmarkSection(result, charts)),
    ...(advice.length === 0 ? [] : ['## What follows', list(advice)]),
  ];
  return `${parts.join('\n\n')}\n`;
}

/** The table and the chart of an experiment's figure. */
export function figureSection(figure: Figure, experiment: { readonly id: string }, charts: readonly Chart[]): string {
  const chart = charts.find(({ file }) => file === `${experiment.id}-${figure.id}.svg`);
  const table = tableOf(figureCells(figure));
  return [`**${figure.title}** (${figure.y.title})`, table, ...pictureOf(chart)].join('\n\n');
}

function experimentSection({ figures, id, run, title }: ExperimentResult, charts: readonly Chart[]): string[] {
  const experiment = EXPERIMENTS.find((one) => one.id === id);
  const sections = [...(experiment?.publishedFigures ?? []), ...figures].map((figure) => {
    return figureSection(figure, { id }, charts);
  });
  return [
    `### ${title}`,
    ...(run === undefined ? [] : [wrap(`${describeRun(run)}; ${run.cpu}, ${run.kernel}.`)]),
    ...(experiment === undefined ? [] : [wrap(`Published: ${experiment.published}`)]),
    ...sections,
    ...(experiment === undefined ? [] : [list(experiment.findings(figures))]),
  ];
}

function benchmarkSection(result: BenchmarkResult, charts: readonly Chart[]): string[] {
  const { id, run, title } = result;
  return [
    `### ${title}`,
    ...(run === undefined ? [] : [wrap(`${describeRun(run)}; ${run.cpu}, ${run.kernel}.`)]),
    tableOf(resultCells(result)),
    ...pictureOf(charts.find(({ file }) => file === `${id}.svg`)),
  ];
}

function pictureOf(chart: Chart | undefined): string[] {
  return chart === undefined ? [] : [`![${chart.title}](${CHARTS}${chart.file})`];
}

function variantsIn(results: readonly BenchmarkResult[]): string[][] {
  const met = new Set(
    results.flatMap(({ cases }) => cases.flatMap(({ variants }) => variants.map(({ variant }) => variant))),
  );
  return Object.entries({ ...VARIANTS, 'redis-benchmark': SERVER_LIMIT })
    .filter(([variant]) => met.has(variant))
    .map(([variant, text]) => [`\`${variant}\``, text]);
}

function tableOf({ head, rows }: Cells): string {
  return markdownTable(head, rows);
}
