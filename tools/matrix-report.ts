import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** One combination of versions and what the tests came to. */
export interface Cell {
  readonly node: string;
  readonly server: string;
  readonly clients: string;
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
}

const RESULTS = fileURLToPath(new URL('../docs/compatibility.json', import.meta.url));
const README = fileURLToPath(new URL('../README.md', import.meta.url));
const BEGIN = '<!-- matrix:begin -->';
const END = '<!-- matrix:end -->';

/** Keeps the results and puts their table into the README. */
export async function writeCompatibility(cells: readonly Cell[], date: Date): Promise<void> {
  const results = { date: date.toISOString().slice(0, 10), cells };
  await writeFile(RESULTS, `${JSON.stringify(results, null, 2)}\n`);
  const readme = await readFile(README, 'utf8');
  await writeFile(README, withTable(readme, compatibilityTable(results)));
}

/** The README's compatibility table. */
export function compatibilityTable({ date, cells }: { date: string; cells: readonly Cell[] }): string {
  const rows = cells.map(
    ({ node, server, clients, passed, failed }) =>
      `| ${node} | ${server} | ${clients} | ${failed === 0 ? `${passed} passed` : `${passed} passed, **${failed} failed**`} |`,
  );
  return [
    '| Node | server | clients | tests |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
    `Run on ${date} by \`npm run test:matrix\`.`,
  ].join('\n');
}

function withTable(readme: string, table: string): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`README.md must have ${BEGIN} before ${END}`);
  return `${readme.slice(0, begin + BEGIN.length)}\n${table}\n${readme.slice(end)}`;
}
