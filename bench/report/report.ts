/** Writes the figures of a run into the documents, so that they are never copied by hand. */

import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { fillRegions, type Region, readDocuments } from '../../tools/documents.js';
import { compatibilityTable, readCompatibility } from '../../tools/matrix-report.js';
import { LATEST } from '../suite/options.js';
import { type BenchReport, parseReport } from '../suite/results.js';
import { chartsOf } from './charts.js';
import { benchmarksDocument, OWN_DOCUMENTS, ownDocument } from './document.js';
import { gainsTable, withPackageGains } from './gains.js';

const CHARTS = 'bench/results';

const HELP = `Usage: npm run bench:report -- [--from FILE] [--into FOLDER]

Writes what a benchmark run found: docs/benchmarks.md, docs/scale.md, the charts in ${CHARTS}, and in README.md and docs/
the regions between <!-- gains:begin --> and <!-- gains:end -->, and so on: gains, packages, and matrix, whose figures are
those of the last "npm run test:matrix -- --write".
FILE is ${LATEST} if it is not given, FOLDER is this repository.`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      from: { type: 'string', default: LATEST },
      into: { type: 'string', default: '.' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const report = parseReport(await readFile(values.from, 'utf8'), values.from);
  const files = await documentsOf(report);
  await removeCharts(join(values.into, CHARTS));
  for (const [file, text] of files) {
    const path = join(values.into, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  console.log(`Written: ${[...files.keys()].join(', ')}.`);
}

/** Every file that a run is written into, with its text. */
export async function documentsOf(report: BenchReport): Promise<Map<string, string>> {
  const charts = chartsOf(report);
  const own = OWN_DOCUMENTS.flatMap((id) => {
    const text = ownDocument(id, report, charts);
    return text === undefined ? [] : [[`docs/${id}.md`, text] as const];
  });
  return new Map([
    ...fillRegions(await readDocuments(), await regionsOf(report)),
    ['docs/benchmarks.md', benchmarksDocument(report, charts)],
    ...own,
    ...charts.map(({ file, svg }) => [`${CHARTS}/${file}`, `${svg}\n`] as const),
  ]);
}

/** What stands between the markers in README.md and docs/, by name. */
export async function regionsOf(report: BenchReport): Promise<Readonly<Record<string, Region>>> {
  return {
    gains: gainsTable(report),
    packages: (table: string) => withPackageGains(table, report),
    matrix: compatibilityTable(await readCompatibility()),
  };
}

/** Those of an earlier run, which may have had others. */
async function removeCharts(folder: string): Promise<void> {
  const files = await readdir(folder).catch(() => []);
  await Promise.all(files.filter((file) => file.endsWith('.svg')).map((file) => rm(join(folder, file))));
}

if (process.argv[1] !== undefined && /report\.[jt]s$/.test(process.argv[1])) {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
