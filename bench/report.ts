/** Writes the figures of a run into the documents, so that nobody copies them by hand. */

import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { benchmarksDocument, readmeSummary } from './benchmarks-document.js';
import { chartsOf } from './charts.js';
import { readmeGains } from './readme-gains.js';
import type { BenchReport } from './results.js';
import { scaleDocument } from './scale-document.js';

const begin = (name: string) => `<!-- ${name}:begin -->`;
const end = (name: string) => `<!-- ${name}:end -->`;
const CHARTS = 'bench/results';

const HELP = `Usage: npm run bench:report -- [--from FILE] [--into FOLDER]

Writes what a benchmark run found: what stands between ${begin('gains')} and
${end('gains')}, ${begin('bench')} and ${end('bench')} in README.md, all figures to
docs/benchmarks.md, those of scale to docs/scale.md, and the charts to ${CHARTS}/*.svg. FILE is
bench/results/latest.json if it is not given, FOLDER is this repository.`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      from: { type: 'string', default: 'bench/results/latest.json' },
      into: { type: 'string', default: '.' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const report = parseReport(await readFile(values.from, 'utf8'), values.from);
  await removeCharts(join(values.into, CHARTS));
  const files = documentsOf(report, await readFile('README.md', 'utf8'));
  for (const [file, text] of files) {
    const path = join(values.into, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  console.log(`Written: ${[...files.keys()].join(', ')}.`);
}

/** Every file that a run is written into, with its text. */
export function documentsOf(report: BenchReport, readme: string): Map<string, string> {
  const charts = chartsOf(report);
  const files = new Map([
    ['README.md', between(between(readme, 'gains', readmeGains(report, charts)), 'bench', readmeSummary(report))],
    ['docs/benchmarks.md', benchmarksDocument(report)],
  ]);
  const scale = scaleDocument(report, charts);
  if (scale !== undefined) files.set('docs/scale.md', scale);
  for (const { file, svg } of charts) files.set(`${CHARTS}/${file}`, `${svg}\n`);
  return files;
}

export function parseReport(text: string, file: string): BenchReport {
  const report: unknown = JSON.parse(text);
  const whole = typeof report === 'object' && report !== null && 'settings' in report && 'rows' in report;
  if (!whole) throw new Error(`${file} should be the JSON of a benchmark run, with "settings" and "rows"`);
  return report as BenchReport;
}

/** Those of an earlier run, which may have had others. */
async function removeCharts(folder: string): Promise<void> {
  const files = await readdir(folder).catch(() => []);
  await Promise.all(files.filter((file) => file.endsWith('.svg')).map((file) => rm(join(folder, file))));
}

function between(text: string, name: string, content: string): string {
  const from = text.indexOf(begin(name));
  const to = text.indexOf(end(name));
  if (from === -1 || to < from) throw new Error(`README.md should hold ${begin(name)} and, after it, ${end(name)}`);
  return `${text.slice(0, from + begin(name).length)}\n${content}\n${text.slice(to)}`;
}

if (process.argv[1] !== undefined && /report\.[jt]s$/.test(process.argv[1])) {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
