import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { HOT_COMMANDS } from '../src/commands/hot-commands.js';
import { DEFAULT_OPTIONS } from '../src/options.js';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

it('lists every command of the hot path, and none that is not on it', () => {
  const [, section = ''] = /## The hot path's commands\n([\s\S]*?)\nand the /.exec(readme) ?? [];
  const listed = [...section.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  expect(listed.toSorted()).toEqual(HOT_COMMANDS.map(({ name }) => name).toSorted());
});

it('gives every option with its default', () => {
  for (const [name, value] of Object.entries(DEFAULT_OPTIONS)) {
    const shown = typeof value === 'string' ? `'${value}'` : String(value);
    expect(readme).toMatch(new RegExp(`^\\| \`${name}\` \\| .* \\| \`${shown}\` \\|`, 'm'));
  }
});

it('names every package that was run on top, in its version', () => {
  const docs = readFileSync(new URL('../docs/packages.md', import.meta.url), 'utf8');
  const rows = [...docs.matchAll(/^\| (`[^`]+`) \| (\d[^ ]*) \|/gm)].map(
    ([, name, version]) => `| ${name} | ${version} |`,
  );
  expect(rows.length).toBeGreaterThan(9);
  for (const row of rows) expect(readme).toContain(row);
});
