import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { headings, slugOf } from './helpers/markdown.js';

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

/** What a reader sees without looking further: two screens. */
const FIRST_SCREENS = 40;
const LONGEST = 241;

/** What users read; the rest is for developers, or reference that is generated. */
const USER_DOCUMENTS = ['api', 'production', 'caching', 'guarantees', 'packages', 'testing', 'compatibility'];
const MOST_WORDS = 14_000;

const document = (name: string) => readFileSync(new URL(`../docs/${name}.md`, import.meta.url), 'utf8');
const lineOf = (text: string) => readme.split('\n').findIndex((line) => line.startsWith(text));

it('is short enough to be read', () => {
  expect(readme.split('\n').length).toBeLessThan(LONGEST);
});

it('and the documents for users fit in a head, together', () => {
  const words = [readme, ...USER_DOCUMENTS.map(document)].map((text) => text.trim().split(/\s+/).length);
  expect(words.reduce((sum, count) => sum + count)).toBeLessThan(MOST_WORDS);
});

it("the benchmarks' document holds targets and headline figures; the rest is what the bench prints", () => {
  expect(document('benchmarks').trim().split(/\s+/).length).toBeLessThan(4000);
});

it('has how to install it, to try it and to test it on the first screens, in this order', () => {
  const lines = ['npm ci && npm pack', 'npm install ../', 'npm ci && npm run demo', 'npm ci && npm test'].map(lineOf);
  expect(lines).not.toContain(-1);
  expect(lines).toEqual(lines.toSorted((a, b) => a - b));
  expect(lines.at(-1)).toBeLessThan(FIRST_SCREENS);
});

it('has every heading in its contents', () => {
  const [contents = ''] = /^\*\*Contents:\*\*[\s\S]*?\n\n/m.exec(readme) ?? [];
  for (const { text } of headings(readme).filter(({ level }) => level === 2 || level === 3)) {
    expect(contents).toContain(`(#${slugOf(text)})`);
  }
});

it('has a heading for each question of a first-time reader', () => {
  const texts = headings(readme)
    .map(({ text }) => text)
    .join('\n');
  for (const question of [
    /fit my service/,
    /gain on my Redis/,
    /Turn it on/,
    /See that it works/,
    /leave it off, and how/,
    /costs, and what can go wrong/,
    /Compatibility/,
    /Who else/,
    /enableAutoPipelining/,
  ]) {
    expect(texts).toMatch(question);
  }
});
