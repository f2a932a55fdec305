import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

const LONGEST = 241;

/** What users read; the rest is for developers, or reference that is generated. */
const USER_DOCUMENTS = 'api production recipes caching guarantees packages testing compatibility'.split(' ');
const MOST_WORDS = 14_000;

const document = (name: string) => readFileSync(new URL(`../docs/${name}.md`, import.meta.url), 'utf8');

it('is short enough to be read', () => {
  expect(readme.split('\n').length).toBeLessThan(LONGEST);
});

it('and the documents for users fit in a head, together', () => {
  const words = [readme, ...USER_DOCUMENTS.map(document)].map((text) => text.trim().split(/\s+/).length);
  expect(words.reduce((sum, count) => sum + count)).toBeLessThan(MOST_WORDS);
});

it("the benchmarks' document holds targets and headline figures; the rest is what the bench prints", () => {
  expect(document('benchmarks').trim().split(/\s+/).length).toBeLessThan(3300);
});
