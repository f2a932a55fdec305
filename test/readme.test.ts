import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

const LONGEST = 171;
/** Without its table. */
const MOST_WORDS_OF_README = 1_300;

/** What users read; the rest is for developers, or reference that is generated. */
const USER_DOCUMENTS = 'api production recipes caching guarantees packages testing compatibility'.split(' ');
const MOST_WORDS = 12_400;
/** What is measured, as tables that nobody reads through. */
const TABLES = ['bench/TARGETS.md', 'bench/results/README.md'];
/** Those of results come and go with what is measured. */
const GENERATED = /<!-- ([\w-]+):begin -->.*?<!-- \1:end -->/gs;
const MOST_WRITTEN_WORDS = 22_000;
const MOST_WORDS_OF_ALL = 26_250;

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const wordsOf = (text: string) => text.replace(GENERATED, '').trim().split(/\s+/).length;
const document = (name: string) => readFileSync(new URL(`../docs/${name}.md`, import.meta.url), 'utf8');

it('is short enough to be read', () => {
  expect(readme.split('\n').length).toBeLessThan(LONGEST);
  expect(wordsOf(readme)).toBeLessThan(MOST_WORDS_OF_README);
});

it('and the documents for users stay short together', () => {
  const words = [readme, ...USER_DOCUMENTS.map(document)].map(wordsOf);
  expect(words.reduce((sum, count) => sum + count)).toBeLessThan(MOST_WORDS);
});

it("the benchmarks' document can be read in two minutes", () => {
  expect(document('benchmarks').split(/\s+/).length).toBeLessThan(1300);
});

it('and all documents together stay short: a fact is in one place, and others link to it', () => {
  const files = execFileSync('git', ['ls-files', '*.md'], { cwd: ROOT, encoding: 'utf8' }).trim().split('\n');
  expect(files).toContain('docs/design.md');
  const words = files.map((file) => wordsOf(readFileSync(`${ROOT}${file}`, 'utf8')));
  expect(words.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(MOST_WRITTEN_WORDS);
  const all = files
    .filter((file) => !TABLES.includes(file))
    .map((file) => readFileSync(`${ROOT}${file}`, 'utf8').trim().split(/\s+/).length);
  expect(all.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(MOST_WORDS_OF_ALL);
});
