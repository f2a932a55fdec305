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

/** The README's compatibility table: servers and clients down, versions of Node across. */
export function compatibilityTable({ date, cells }: { date: string; cells: readonly Cell[] }): string {
  const nodes = distinct(cells.map(({ node }) => node));
  const rows = distinct(cells.map((cell) => `| ${cell.server} | ${cell.clients} |`)).map((row) => {
    const own = nodes.map((node) =>
      cells.find((cell) => cell.node === node && row === `| ${cell.server} | ${cell.clients} |`),
    );
    return `${row} ${own.map(outcome).join(' | ')} |`;
  });
  return [
    `| server | clients | ${nodes.map((node) => `Node ${node}`).join(' | ')} |`,
    `| --- | --- |${' --- |'.repeat(nodes.length)}`,
    ...rows,
    '',
    `Tests passed, of a run on ${date} by \`npm run test:matrix\`.`,
  ].join('\n');
}

function outcome(cell: Cell | undefined): string {
  if (cell === undefined) return '';
  const passed = cell.passed.toLocaleString('en-US');
  return cell.failed === 0 ? passed : `${passed}, **${cell.failed} failed**`;
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function withTable(readme: string, table: string): string {
  const begin = readme.indexOf(BEGIN);
  const end = readme.indexOf(END);
  if (begin < 0 || end < begin) throw new Error(`README.md must have ${BEGIN} before ${END}`);
  return `${readme.slice(0, begin + BEGIN.length)}\n${table}\n${readme.slice(end)}`;
}
