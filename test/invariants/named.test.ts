/** Each invariant of docs/design.md is named where the code relies on it, and has a test of its name. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const design = readFileSync(join(ROOT, 'docs/design.md'), 'utf8');
const section = /^## Invariants\n(.*?)^## /ms.exec(design)?.[1] ?? '';
const invariants = [...section.matchAll(/^(\d+)\. (?:\*\*(.*?)\*\*)?/gm)].map(
  ([, number, name]) => [Number(number), name] as const,
);

/** `Invariant 6`, `invariants 1 and 10`: the numbers in a comment or a title. */
const numbersIn = (text: string): number[] =>
  [...text.matchAll(/\binvariants? (\d+(?:(?:, | and )\d+)*)/gi)].flatMap(([, list]) =>
    (list as string).match(/\d+/g)!.map(Number),
  );

function textsOf(folder: string, suffix: string): string[] {
  const path = join(ROOT, folder);
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(suffix))
    .map((file) => readFileSync(join(path, file), 'utf8'));
}

const inSource = new Set(textsOf('src', '.ts').flatMap(numbersIn));
const inTitles = new Set(
  textsOf('test', '.test.ts')
    .flatMap((text) => [...text.matchAll(/^\s*(?:describe|it|test)\b.*?\(\s*(['"`])(.*?)\1/gm)])
    .flatMap(([, , title]) => numbersIn(title as string)),
);

describe('the invariants of docs/design.md', () => {
  it('are numbered from 1 on', () => {
    expect(invariants.length).toBeGreaterThanOrEqual(12);
    expect(invariants.map(([number]) => number)).toEqual(invariants.map((_, index) => index + 1));
  });

  it.each(invariants)('src/ names invariant %i where it relies on it: %s', (number) => {
    expect([...inSource]).toContain(number);
  });

  it.each(invariants)('a test has invariant %i in its title: %s', (number) => {
    expect([...inTitles]).toContain(number);
  });

  it('src/ and the titles of tests name no other invariant', () => {
    const known = invariants.map(([number]) => number);
    expect([...inSource, ...inTitles].filter((number) => !known.includes(number))).toEqual([]);
  });
});
