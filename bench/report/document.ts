/** docs/benchmarks.md, and the documents of their own that some experiments have, from the results of a run. */

import { markdownTable } from '../../tools/documents.js';
import { EXPERIMENTS } from '../experiments/index.js';
import { evaluate } from '../suite/evaluate.js';
import type { BenchmarkResult, BenchReport, ExperimentResult } from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import { VARIANTS } from '../variants/clients.js';
import type { Chart } from './charts.js';
import type { Figure } from './figure.js';
import { notesText, runOf, runsText } from './runs.js';
import { type Cells, figureCells, resultCells, targetCells } from './tables.js';
import { figureText, fillText } from './text.js';
import { watchedCells } from './watched.js';

const CHARTS = '../bench/results/';
/** Experiments that have a document of their own. */
export const OWN_DOCUMENTS: readonly string[] = ['scale'];
const SERVER_LIMIT = "the server's own tool, `-c 1` and `-P` as large as the burst: what the server can do";

export function benchmarksDocument(report: BenchReport, charts: readonly Chart[]): string {
  const { benchmarks, notes, settings } = report;
  const experiments = report.experiments.filter(({ id }) => !OWN_DOCUMENTS.includes(id));
  const sections = experiments.map((experiment) => experimentSection(report, experiment, charts));
  const targets = evaluate(benchmarks);
  const withTargets = benchmarks.filter(({ id }) => targets.some(({ benchmark }) => benchmark === id));
  const parts: Readonly<Record<string, string>> = {
    machine: describeMachine(settings),
    run: describeRun(settings),
    variants: markdownTable(['variant', 'is'], variantsIn(benchmarks)),
    'target runs': runsText(report, withTargets),
    targets: tableOf(targetCells(targets)),
    experiments: sections.length === 0 ? '' : ['## Published experiments, repeated', ...sections].join('\n\n'),
    benchmarks: benchmarks.map((result) => benchmarkSection(report, result, charts)).join('\n\n'),
    advice: adviceFrom(report.experiments),
    notes: notes.length === 0 ? '' : `## What disturbed the runs\n\n${notesText(notes)}`,
  };
  return `${fillText('benchmarks', (name) => parts[name]!)}\n`;
}

/** undefined where the run has no figures of it */
export function ownDocument(
  experiment: string,
  { experiments, settings }: BenchReport,
  charts: readonly Chart[],
): string | undefined {
  const found = experiments.find(({ id }) => id === experiment);
  if (found === undefined) return undefined;
  const where = { ...settings, ...found.run };
  const parts: Readonly<Record<string, string>> = {
    machine: describeMachine(where),
    run: describeRun(where),
    revision: `revision ${where.revision}, ${where.date.slice(0, 10)}`,
  };
  return `${experimentText(found, charts, parts)}\n`;
}

/** What follows from the figures of the experiments; nothing where one of them was not run. */
function adviceFrom(experiments: readonly ExperimentResult[]): string {
  const figures = experiments.flatMap(({ id, figures: own }) =>
    own.map((figure) => ({ ...figure, id: `${id}/${figure.id}` })),
  );
  const advice = fillText('advice', figureText(figures)) ?? '';
  return advice.includes('–') ? '' : advice;
}

function experimentSection(report: BenchReport, experiment: ExperimentResult, charts: readonly Chart[]): string {
  return [`### ${experiment.title}`, ...runOf(report, experiment), experimentText(experiment, charts)].join('\n\n');
}

/** The experiment's text, if it has one, around its figures and those that were published. */
function experimentText(
  { figures, id }: ExperimentResult,
  charts: readonly Chart[],
  parts: Readonly<Record<string, string>> = {},
): string {
  const publishedFigures = EXPERIMENTS.find((one) => one.id === id)?.publishedFigures ?? [];
  const sections = [...publishedFigures, ...figures].map((figure) => figureSection(figure, id, charts)).join('\n\n');
  const filling = figureText(figures);
  return fillText(id, (name) => (name === 'figures' ? sections : (parts[name] ?? filling(name)))) ?? sections;
}

function figureSection(figure: Figure, experiment: string, charts: readonly Chart[]): string {
  const picture = pictureOf(`${experiment}-${figure.id}`, charts);
  return [`**${figure.title}** (${figure.y.title})`, tableOf(figureCells(figure)), ...picture].join('\n\n');
}

function benchmarkSection(report: BenchReport, result: BenchmarkResult, charts: readonly Chart[]): string {
  const watched = watchedCells(result);
  const tables = [resultCells(result), ...(watched === undefined ? [] : [watched])].map(tableOf);
  const parts = [...runOf(report, result), ...tables, ...pictureOf(result.id, charts)];
  return [`### ${result.title}`, ...parts].join('\n\n');
}

function pictureOf(name: string, charts: readonly Chart[]): string[] {
  const chart = charts.find(({ file }) => file === `${name}.svg`);
  return chart === undefined ? [] : [`![${chart.title}](${CHARTS}${chart.file})`];
}

function variantsIn(results: readonly BenchmarkResult[]): string[][] {
  const met = new Set(
    results.flatMap(({ cases }) => cases.flatMap(({ variants }) => variants.map(({ variant }) => variant))),
  );
  return Object.entries({ ...VARIANTS, 'redis-benchmark': [SERVER_LIMIT] })
    .filter(([variant]) => met.has(variant))
    .map(([variant, [text]]) => [`\`${variant}\``, text]);
}

function tableOf({ head, rows }: Cells): string {
  return markdownTable(head, rows);
}
