import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const text = readFileSync(new URL('docs/guarantees.md', ROOT), 'utf8');

/** Rows of the document's tables: what is guaranteed, what exactly holds, what proves it. */
const rows = text
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| ---') && !line.startsWith('| guarantee'))
  .map((line) => line.slice(2, -2).split(' | '));

const files = [...new Set([...text.matchAll(/`((?:test|docs|src|tools)\/[^`]*)`/g)].map(([, file]) => file as string))];

describe('docs/guarantees.md', () => {
  it('has tables with guarantees', () => {
    expect(rows.length).toBeGreaterThan(40);
    expect(files.length).toBeGreaterThan(20);
  });

  it.each(files)('%s exists', (file) => {
    expect(existsSync(new URL(file, ROOT))).toBe(true);
  });

  it('names a test for each guarantee', () => {
    const unproven = rows.filter((cells) => cells.length !== 3 || !/`test\/[^`]+`/.test(cells.at(-1) ?? ''));
    expect(unproven).toEqual([]);
  });
});
