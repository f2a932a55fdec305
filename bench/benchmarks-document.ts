/** docs/benchmarks.md, and the table of the README, from the JSON of a run. */

import { adviceFrom } from './advice.js';
import { type Chart, chartsOf } from './charts.js';
import type { ExperimentResult } from './experiments/experiment.js';
import { figures, panelCells, VERDICT_HEAD, verdictCells } from './format.js';
import { list, table, wrap } from './markdown.js';
import type { Panel } from './panel.js';
import type { BenchReport, RowResult } from './results.js';
import { describeMachine, describeRun } from './settings.js';

const CHARTS = '../bench/results/';

const ARMS: readonly (readonly [string, string])[] = [
  ['plain', 'ioredis, its defaults'],
  ['plain-resp2', 'the same with `protocol: 2`'],
  ['plain5', 'ioredis 5, its defaults'],
  ['auto', 'ioredis with `enableAutoPipelining`'],
  ['auto5', 'the same with ioredis 5'],
  ['iovalkey', 'iovalkey, its defaults'],
  ['node-redis', 'node-redis, its defaults, a time-out of 5 s on every command among them'],
  ['node-redis-no-timeout', 'node-redis with `commandOptions: { timeout: 0 }`'],
  ['node-redis-resp2', 'the same with `RESP: 2`'],
  ['glide', 'valkey-glide; its core is native, and its writes are those to that core'],
  ['pipeline', 'ioredis, each burst a `pipeline()` written by hand'],
  ['mget', 'ioredis, each burst one MGET'],
  ['cork', 'coalesced with `hotPath: false`: layer 1 alone'],
  ['coalesced', '`new Redis(url)` of this package, its defaults'],
  ['coalesced-resp2', 'the same with `protocol: 2`'],
  ['coalesced-timeout', 'the same with `commandTimeout: 5000`'],
  ['cluster', 'ioredis `Cluster`; `cluster-auto` with `enableAutoPipelining`'],
  ['cluster-node-redis', "node-redis's `createCluster`, without its time-out"],
  ['cluster-coalesced', '`new Cluster(nodes)` of this package'],
  [
    'reference',
    'a bare socket with a minimal encoder and parser and one promise a command: what a client can hardly be below',
  ],
  ['redis-benchmark', "the server's own tool, `-c 1` and `-P` as large as the burst: what the server can do"],
];

const INTRODUCTION = `# Benchmarks

Written by \`npm run bench:report\` from the JSON of a run; do not edit by hand. \`npm run bench\` repeats it on your
machine.`;

const METHOD = `Each arm is a process of its own. In every round each arm runs once, in rotated order, idle while the others run. Figures
are medians over the rounds with the least and the most in parentheses; a ratio is taken round by round first. CPU is
that of the client's process, all its threads. Socket writes are counted, and latencies of bursts and loops are taken,
in a pass of their own, because both cost. At fixed rates, commands fall due each millisecond, and their time counts from
then, whether or not the process came to issue them (no coordinated omission).`;

export function benchmarksDocument(report: BenchReport): string {
  const charts = chartsOf(report);
  const experiments = (report.experiments ?? []).filter(({ id }) => id !== 'scale');
  const advice = adviceFrom(report.experiments ?? []);
  const notes = list(report.notes);
  const parts = [
    INTRODUCTION,
    '## The run',
    `${describeMachine(report.settings)}.\n\n${describeRun(report.settings)}.`,
    ...(notes === '' ? [] : [notes]),
    table(['arm', 'is'], armsOf(report)),
    METHOD,
    '## Bars',
    verdictTable(report.rows),
    ...(experiments.length === 0 ? [] : ['## Published experiments, repeated']),
    ...experiments.flatMap((experiment) => sectionOf(experiment, charts)),
    '## Figures',
    'Per command; of the Fastify rows, per request.',
    ...report.rows.flatMap((row) => rowSection(row, charts)),
    ...(advice.length === 0 ? [] : ['## What follows', list(advice)]),
  ];
  return `${parts.join('\n\n')}\n`;
}

export function readmeSummary({ settings, rows }: BenchReport): string {
  return `${verdictTable(rows)}\n\n${describeMachine(settings)}. ${describeRun(settings)}.`;
}

/** The tables and charts of an experiment's figures. */
export function panelSection(panel: Panel, chart: Chart | undefined): string {
  const { head, rows } = panelCells(panel);
  // Two figures of the same place are a table already.
  const picture = chart === undefined ? [] : [pictureOf(chart)];
  return [`**${panel.title}** (${panel.y.title})`, table(head, rows), ...picture].join('\n\n');
}

export function chartOf(
  charts: readonly Chart[],
  experiment: { readonly id: string },
  panel: Panel,
): Chart | undefined {
  return charts.find(({ file }) => file === `${experiment.id}-${panel.id}.svg`);
}

function sectionOf(experiment: ExperimentResult, charts: readonly Chart[]): string[] {
  const { title, published, publishedPanels, panels, findings } = experiment;
  return [
    `### ${title}`,
    wrap(`Published: ${published}`),
    ...[...publishedPanels, ...panels].map((panel) => panelSection(panel, chartOf(charts, experiment, panel))),
    list(findings),
  ];
}

function rowSection(row: RowResult, charts: readonly Chart[]): string[] {
  const { head, rows } = figures(row);
  const chart = charts.find(({ file }) => file === `${row.id}.svg`);
  return [`### ${row.title}`, table(head, rows), ...(chart === undefined ? [] : [pictureOf(chart)])];
}

function pictureOf({ file, title }: Chart): string {
  return `![${title}](${CHARTS}${file})`;
}

function armsOf({ rows }: BenchReport): string[][] {
  const met = new Set<string>(
    rows.flatMap(({ cases }) => cases.flatMap(({ contestants }) => contestants.map(({ contestant }) => contestant))),
  );
  return ARMS.filter(([arm]) => met.has(arm)).map(([arm, text]) => [`\`${arm}\``, text]);
}

function verdictTable(rows: readonly RowResult[]): string {
  return table(VERDICT_HEAD, rows.flatMap(verdictCells));
}
