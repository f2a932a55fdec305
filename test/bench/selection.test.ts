import { expect, it } from 'vitest';
import { BENCHMARKS } from '../../bench/benchmarks/index.js';
import { TARGETS } from '../../bench/benchmarks/targets.js';
import { parseOptions } from '../../bench/suite/options.js';
import { IDS, select } from '../../bench/suite/selection.js';

it('gives everything a unique id', () => {
  expect(new Set(IDS).size).toBe(IDS.length);
});

it('takes the names that start with one of the filters, and all names without a filter', () => {
  const { benchmarks, experiments } = select(['experiment-q', 'cluster']);
  expect([...benchmarks, ...experiments].map(({ id }) => id)).toEqual(['cluster', 'experiment-queue']);
  expect(select([]).benchmarks).toEqual(BENCHMARKS);
});

it('lists the known names if none matches', () => {
  expect(() => select(['brust'])).toThrow(/"brust"; the groups are core, .*; the ids are burst, /);
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
  [['--smoke', '--until-clear'], 'leave one out'],
  [['--compare', 'HEAD', '--until-clear'], 'leave one out'],
])('refuses %s', (args, message) => {
  expect(() => parseOptions(args)).toThrow(message);
});

it('runs a group by its name', () => {
  expect(select(['hot-path']).benchmarks.map(({ id }) => id)).toContain('scripts');
  expect(select(['hot-path']).experiments).toEqual([]);
});

it('accepts --merge only with a file of results and named benchmarks', () => {
  expect(parseOptions(['burst', '--merge'])).toMatchObject({ merge: true, out: 'bench/results/latest.json' });
  expect(() => parseOptions(['--smoke', '--merge'])).toThrow('give one of them');
});

it('runs benchmarks at their own pace, unless one is asked for, or in a smoke run', () => {
  const pacesOf = (args: string[]) => parseOptions(args)?.benchmarks.map(({ pace }) => pace);
  expect(pacesOf(['set-ex', 'grid'])).toEqual([
    { rounds: 3 / 5, seconds: 1 / 2 },
    { rounds: 3, seconds: 1 / 10 },
  ]);
  for (const asked of [['--rounds', '11'], ['--seconds', '0.8'], ['--smoke']]) {
    expect(pacesOf(['set-ex', 'grid', ...asked])).toEqual([undefined, undefined]);
  }
});

it.each(TARGETS)('sets the target of $benchmark for $of on a benchmark that has both of its sides', (target) => {
  const benchmark = BENCHMARKS.find(({ id }) => id === target.benchmark);
  expect(benchmark?.variants).toEqual(
    expect.arrayContaining([target.of, ...(target.versus === undefined ? [] : [target.versus])]),
  );
  const ids = benchmark!.cases.map(({ id }) => id);
  expect(ids.some((id) => id.startsWith(target.only ?? ''))).toBe(true);
  if (target.versusCase !== undefined) expect(ids).toContain(target.versusCase);
});
