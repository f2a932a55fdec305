/** Writes the figures of a run into the documents, so that nobody copies them by hand. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { figures, VERDICT_HEAD, verdictCells } from './format.js';
import type { BenchReport, RowResult } from './results.js';
import { describeMachine, describeRun } from './settings.js';

const BEGIN = '<!-- bench:begin -->';
const END = '<!-- bench:end -->';

const HELP = `Usage: npm run bench:report -- [--from FILE]

Writes the table of a benchmark run between ${BEGIN} and ${END} in README.md, and all its figures to
docs/benchmarks.md. FILE is bench/results/latest.json if it is not given.`;

const INTRODUCTION = `# Benchmarks

Written by \`npm run bench:report\` from the JSON of a run; do not edit by hand. \`npm run bench\` repeats it on your
machine.

| arm | is |
|---|---|
| \`plain\` | ioredis, its defaults |
| \`auto\` | ioredis with \`enableAutoPipelining\` |
| \`node-redis\` | node-redis, its defaults, a time-out of 5 s on every command among them |
| \`node-redis-no-timeout\` | node-redis with \`commandOptions: { timeout: 0 }\` |
| \`cork\` | coalesced with \`hotPath: false\`: layer 1 alone |
| \`coalesced\` | \`new Redis(url)\` of this package, its defaults |
| \`coalesced-timeout\` | the same with \`commandTimeout: 5000\` |
| \`reference\` | a bare socket with a minimal encoder and parser and one promise a command: what a client can hardly be below |
| \`redis-benchmark\` | the server's own tool, \`-c 1\` and \`-P\` as large as the burst: what the server can do |

Each arm is a process of its own. In every round each arm runs once, in rotated order, idle while the others run. Figures
are medians over the rounds with the least and the most in parentheses; a ratio is taken round by round first. CPU is
that of the client's process, all its threads. Socket writes are counted, and latencies of bursts and loops are taken,
in a pass of their own, because both cost.`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      from: { type: 'string', default: 'bench/results/latest.json' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const report = parseReport(await readFile(values.from, 'utf8'), values.from);
  const readme = await readFile('README.md', 'utf8');
  await writeFile('README.md', between(readme, summary(report)));
  await mkdir('docs', { recursive: true });
  await writeFile('docs/benchmarks.md', document(report));
  console.log('Written to README.md and docs/benchmarks.md.');
}

function parseReport(text: string, file: string): BenchReport {
  const report: unknown = JSON.parse(text);
  const whole = typeof report === 'object' && report !== null && 'settings' in report && 'rows' in report;
  if (!whole) throw new Error(`${file} should be the JSON of a benchmark run, with "settings" and "rows"`);
  return report as BenchReport;
}

function between(text: string, content: string): string {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin === -1 || end < begin) throw new Error(`README.md should hold ${BEGIN} and, after it, ${END}`);
  return `${text.slice(0, begin + BEGIN.length)}\n${content}\n${text.slice(end)}`;
}

function summary({ settings, rows }: BenchReport): string {
  return `${verdictTable(rows)}\n\n${describeMachine(settings)}. ${describeRun(settings)}.`;
}

function document(report: BenchReport): string {
  const sections = report.rows.map((row) => {
    const { head, rows } = figures(row);
    return `### ${row.title}\n\n${table(head, rows)}`;
  });
  const notes = report.notes.map((note) => `- ${note}`).join('\n');
  const parts = [
    INTRODUCTION,
    '## The run',
    `${describeMachine(report.settings)}.\n\n${describeRun(report.settings)}.`,
    ...(notes === '' ? [] : [notes]),
    '## Bars',
    verdictTable(report.rows),
    '## Figures',
    'Per command; of the Fastify rows, per request.',
    ...sections,
  ];
  return `${parts.join('\n\n')}\n`;
}

function verdictTable(rows: readonly RowResult[]): string {
  return table(VERDICT_HEAD, rows.flatMap(verdictCells));
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
