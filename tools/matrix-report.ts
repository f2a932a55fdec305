import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { markdownTable, writeRegions } from './documents.js';

/** One combination of versions and what the tests came to. */
export interface Cell {
  readonly node: string;
  readonly server: string;
  readonly clients: string;
  readonly passed: number;
  readonly failed: number;
  readonly seconds: number;
}

/** The same for a run time other than Node, on which a program of its own checks the core. */
export interface RunTimeCell extends Omit<Cell, 'node'> {
  readonly runTime: string;
  readonly facts: { readonly readsInPlace: boolean };
}

interface Compatibility {
  readonly date: string;
  /** Whether only the core's tests ran. */
  readonly quick: boolean;
  readonly cells: readonly Cell[];
  readonly runTimes: readonly RunTimeCell[];
}

const RESULTS = fileURLToPath(new URL('../docs/compatibility.json', import.meta.url));

/** Keeps the results and puts their table into the documents. */
export async function writeCompatibility(
  cells: readonly Cell[],
  runTimes: readonly RunTimeCell[],
  date: Date,
  quick: boolean,
): Promise<void> {
  const results = { date: date.toISOString().slice(0, 10), quick, cells, runTimes };
  await writeFile(RESULTS, `${JSON.stringify(results, null, 2)}\n`);
  await writeRegions({ matrix: compatibilityTable(results), 'run-times': runTimeTable(results) });
}

export async function readCompatibility(): Promise<Compatibility> {
  return JSON.parse(await readFile(RESULTS, 'utf8')) as Compatibility;
}

/** Servers and clients down, versions of Node across. */
export function compatibilityTable({ date, quick, cells }: Omit<Compatibility, 'runTimes'>): string {
  const nodes = distinct(cells.map(({ node }) => node));
  const pairs = distinct(cells.map(({ server, clients }) => JSON.stringify([server, clients])));
  const rows = pairs.map((pair) => {
    const [server, clients] = JSON.parse(pair) as [string, string];
    const own = cells.filter((cell) => cell.server === server && cell.clients === clients);
    return [server, clients, ...nodes.map((node) => outcome(own.find((cell) => cell.node === node)))];
  });
  const table = markdownTable(['server', 'clients', ...nodes.map((node) => `Node ${node}`)], rows);
  const [tests, command] = quick ? ['Tests of the core', ' -- --quick'] : ['Integration tests', ''];
  return `${table}\n\n${tests} that passed, on ${date}, by \`npm run test:matrix${command}\`.`;
}

export function runTimeTable({ runTimes }: Pick<Compatibility, 'runTimes'>): string {
  return markdownTable(
    ['run time', 'server', 'clients', 'checks passed', 'reads in place'],
    runTimes.map((cell) => [
      cell.runTime,
      cell.server,
      cell.clients,
      outcome(cell),
      cell.facts.readsInPlace ? 'yes' : 'no',
    ]),
  );
}

function outcome(cell: Pick<Cell, 'passed' | 'failed'> | undefined): string {
  if (cell === undefined) return '';
  const passed = cell.passed.toLocaleString('en-US');
  return cell.failed === 0 ? passed : `${passed}, **${cell.failed} failed**`;
}

function distinct(values: readonly string[]): string[] {
  return [...new Set(values)];
}
