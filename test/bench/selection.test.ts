import { expect, it } from 'vitest';
import { parseOptions } from '../../bench/options.js';
import { IDS, ROWS, select } from '../../bench/row-selection.js';

it('gives everything an id of its own', () => {
  expect(new Set(IDS).size).toBe(IDS.length);
});

it('takes what starts with one of the filters, and everything without', () => {
  const { rows, experiments } = select(['experiment-q', 'cluster']);
  expect([...rows, ...experiments].map(({ id }) => id)).toEqual(['cluster', 'experiment-queue']);
  expect(select([]).rows).toEqual(ROWS);
});

it('names what there is where there is nothing of that name', () => {
  expect(() => select(['brust'])).toThrow(/"brust"; the ids are burst, /);
});

it('writes the results of a whole run alone', () => {
  expect(parseOptions([])?.out).toBe('bench/results/latest.json');
  expect(parseOptions(['burst'])?.out).toBeUndefined();
  expect(parseOptions(['--smoke'])?.out).toBeUndefined();
  expect(parseOptions(['--compare', 'HEAD'])?.out).toBeUndefined();
  expect(parseOptions(['burst', '--out', 'figures.json'])?.out).toBe('figures.json');
});

it.each([
  [['--rounds', '1.5'], '--rounds must be a whole number, got 1.5'],
  [['--seconds', '0'], '--seconds must be a positive number, got "0"'],
  [['--smoke', '--check'], 'give one of them'],
])('refuses %s', (args, message) => {
  expect(() => parseOptions(args)).toThrow(message);
});
