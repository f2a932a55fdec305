import { describe, expect, it } from 'vitest';
import { BENCHMARKS, GROUPS, select } from '../../bench/benchmarks/index.js';
import { TARGETS } from '../../bench/benchmarks/targets.js';
import { parseOptions } from '../../bench/suite/options.js';
import { paceOf, secondsOf } from '../../bench/suite/pace.js';
import { bringSetup } from '../../bench/suite/setup.js';

it('gives every benchmark a unique id, and every case one within its benchmark', () => {
  const ids = BENCHMARKS.map(({ id }) => id);
  expect(ids).toEqual([...new Set(ids)]);
  for (const { cases } of BENCHMARKS) {
    const own = cases.map(({ id }) => id);
    expect(own).toEqual([...new Set(own)]);
  }
});

describe('names', () => {
  it('are of groups, or the start of ids; all benchmarks without a name', () => {
    expect(select(['fastify-', 'cluster']).map(({ id }) => id)).toEqual([
      'cluster',
      'fastify-parallel',
      'fastify-sequential',
    ]);
    expect(select(['cache'])).toEqual(GROUPS.cache);
    expect(select([])).toEqual(BENCHMARKS);
  });

  it('that do not exist are refused, with those that do', () => {
    expect(() => parseOptions(['brust'])).toThrow(/"brust"; the groups are production, .*; the ids are production, /);
  });
});

describe('results', () => {
  it('are written only when requested', () => {
    expect(parseOptions([])?.out).toBeUndefined();
    expect(parseOptions(['schedule', '--publish'])?.out).toBe('bench/results');
    expect(parseOptions(['--smoke', '--out', 'folder'])?.out).toBe('folder');
  });

  it('are those of whole groups', () => {
    expect(() => parseOptions(['burst', '--publish'])).toThrow(
      'results are kept by group: expected one of production, ',
    );
  });
});

describe('the setup', () => {
  it('is Node 24 and Redis 8, and in a smoke run what is here', () => {
    expect(parseOptions([])?.setup.node).toBe('24');
    expect(parseOptions(['--smoke'])?.setup).toEqual({ node: 'this', server: 'system' });
    expect(parseOptions(['--smoke', '--server', 'valkey9'])?.setup.server).toBe('valkey9');
  });

  it.each([
    [{ node: '18', server: 'system' }, '--node must be this or one of 20, 22, 24, 26, got "18"'],
    [{ node: 'this', server: 'redis' }, '--server must be system or one of redis8, valkey9, got "redis"'],
  ])('%o is refused', async (names, message) => {
    await expect(bringSetup(names)).rejects.toThrow(message);
  });
});

it.each([
  [['--rounds', '1.5'], '--rounds must be a whole number, got 1.5'],
  [['--seconds', '0'], '--seconds must be a positive number, got "0"'],
  [['--smoke', '--check'], 'give one of them'],
  [['--smoke', '--publish'], 'give one of them'],
])('refuses %s', (args, message) => {
  expect(() => parseOptions(args)).toThrow(message);
});

describe('the time', () => {
  it('of everything stays within 165 minutes', () => {
    expect(BENCHMARKS.reduce((sum, one) => sum + secondsOf(one, {}), 0)).toBeLessThan(165 * 60);
  });

  it('is at least six rounds in every benchmark: with fewer an interval says little', () => {
    for (const one of BENCHMARKS) expect(paceOf(one, {}).least).toBe(6);
  });

  it('is what is requested, and in a smoke run short', () => {
    for (const one of BENCHMARKS) {
      expect(paceOf(one, { rounds: 9, seconds: 2 })).toMatchObject({ least: 9, most: 9, seconds: 2 });
      expect(paceOf(one, { smoke: true }).most).toBe(1);
    }
  });
});

it.each(TARGETS)('sets the target of $benchmark for $of / $versus on cases that have both of its sides', (target) => {
  const benchmark = BENCHMARKS.find(({ id }) => id === target.benchmark)!;
  const sides = [target.of, ...(target.versus === undefined ? [] : [target.versus])];
  const cases = benchmark.cases.filter(({ id }) => target.only?.test(id) ?? true);
  const having = cases.filter(({ variants = benchmark.variants }) =>
    sides.every((side) => (variants as string[]).includes(side)),
  );
  expect(having).not.toEqual([]);
  if (target.worst === undefined) expect(having).toHaveLength(1);
});
