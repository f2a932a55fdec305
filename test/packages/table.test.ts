import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const COLUMNS = ['package', 'version', 'what was run', 'coalescing', 'gain', 'what to set', 'test'];

interface Row {
  readonly name: string;
  readonly version: string;
  readonly test: string;
  readonly cells: readonly string[];
}

const [heading, , ...body] = read('docs/packages.md')
  .split('\n')
  .filter((line) => line.startsWith('|'))
  .map(cellsOf);
const rows = body.map(rowOf);

it('docs/packages.md has a table without empty cells', () => {
  expect(heading).toEqual(COLUMNS);
  expect(rows.length).toBeGreaterThan(0);
  for (const { cells } of rows) {
    expect(cells).toHaveLength(COLUMNS.length);
    expect(cells).not.toContain('');
  }
});

describe.each(rows)('docs/packages.md: $name, $test', ({ name, version, test }) => {
  it('names the version that is installed', () => {
    const installed = JSON.parse(read(`node_modules/${name}/package.json`)) as { version: string };
    expect(majorMinor(version)).toBe(majorMinor(installed.version));
  });

  it('names a test that runs the package', () => {
    expect(existsSync(new URL(test, ROOT))).toBe(true);
    expect(
      filesOf(test).some((file) => read(file).includes(`from '${name}'`) || read(file).includes(`('${name}')`)),
    ).toBe(true);
  });
});

it('docs/packages.md lists every test of a package', () => {
  const tests = readdirSync(new URL('test/packages', ROOT))
    .filter((file) => file.endsWith('.test.ts') && file !== 'table.test.ts')
    .map((file) => `test/packages/${file}`);
  expect(rows.map(({ test }) => test).toSorted()).toEqual(tests.toSorted());
});

function read(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

function cellsOf(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}

function rowOf(cells: string[]): Row {
  const [name = '', version = '', test = ''] = [cells[0], cells[1], cells.at(-1)];
  return { name: name.replaceAll('`', ''), version, test: test.replaceAll('`', ''), cells };
}

/** Some tag their versions `v5.0.0`. */
function majorMinor(version: string): string {
  const match = /^v?(\d+\.\d+)\./.exec(version);
  if (match === null) throw new Error(`expected a version such as 1.2.3, got "${version}"`);
  return match[1]!;
}

/** The test file and the helpers of this folder that it imports. */
function filesOf(test: string): string[] {
  const helpers = [...read(test).matchAll(/from '\.\/(helpers\/[\w-]+)\.js'/g)];
  return [test, ...helpers.map(([, helper]) => `test/packages/${helper}.ts`)];
}
