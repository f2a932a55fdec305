/** Writes the figures of the last runs into the documents, so that they are never copied by hand. */

import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fillRegions, type Region, readDocuments } from '../../tools/documents.js';
import { compatibilityTable, readCompatibility } from '../../tools/matrix-report.js';
import { titleOf } from '../suite/evaluate.js';
import { RESULTS } from '../suite/options.js';
import { type GroupResult, readResults } from '../suite/results.js';
import { bars } from './bars.js';
import { curves } from './curves.js';
import { heatMap } from './heat-map.js';
import { regionsOf } from './regions.js';

const HELP = `Usage: npm run bench:report

Writes what ${RESULTS} holds into the regions of README.md, docs/ and bench/ (between <!-- gains:begin --> and <!-- gains:end -->,
and so on), and draws the charts that they show.`;

/** The folder with groups of an earlier run of the standard setup, to compare with the last one. */
const EARLIER = 'earlier';

/** The charts that a document shows, by the benchmark that they are of. */
const CHARTS = { grid: heatMap, production: bars, schedule: curves };

async function main(): Promise<void> {
  if (process.argv.length > 2) {
    console.log(HELP);
    return;
  }
  const groups = await readResults(RESULTS);
  const files = new Map([...fillRegions(await readDocuments(), await allRegions()), ...chartsOf(groups)]);
  await removeCharts();
  for (const [file, text] of files) await writeFile(file, text);
  console.log(`Written: ${[...files.keys()].join(', ')}.`);
}

/** What stands between the markers in README.md, docs/ and bench/, by name. */
export async function allRegions(): Promise<Readonly<Record<string, Region>>> {
  const folders = (await readdir(RESULTS, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  const others = new Map<string, GroupResult[]>();
  for (const { name } of folders) others.set(name, await readResults(join(RESULTS, name)));
  const earlier = others.get(EARLIER);
  others.delete(EARLIER);
  return {
    ...regionsOf(await readResults(RESULTS), others, earlier),
    matrix: compatibilityTable(await readCompatibility()),
  };
}

/** By file. */
export function chartsOf(groups: readonly GroupResult[]): Map<string, string> {
  const results = groups.flatMap(({ benchmarks }) => benchmarks);
  const drawn = Object.entries(CHARTS).flatMap(([id, drawing]) => {
    const found = results.find((one) => one.id === id);
    return found === undefined ? [] : [[`${RESULTS}/${id}.svg`, `${drawing(titleOf(id), found.cases)}\n`] as const];
  });
  return new Map(drawn);
}

async function removeCharts(): Promise<void> {
  const files = (await readdir(RESULTS)).filter((file) => file.endsWith('.svg'));
  await Promise.all(files.map((file) => rm(join(RESULTS, file))));
}

if (process.argv[1] !== undefined && /report\.[jt]s$/.test(process.argv[1])) {
  main().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  });
}
