import type { Benchmark } from '../benchmarks/benchmark.js';
import { BENCHMARKS, GROUPS } from '../benchmarks/index.js';
import { EXPERIMENTS } from '../experiments/index.js';

export const IDS: readonly string[] = [...BENCHMARKS, ...EXPERIMENTS].map(({ id }) => id);

/** For a smoke run: with one case, or as many as are code of their own; without those that others stand for. */
export function shortened(benchmarks: readonly Benchmark[]): readonly Benchmark[] {
  return benchmarks.flatMap((one): Benchmark[] => {
    const cases = one.cases.slice(0, one.smokeCases ?? 1);
    return cases.length === 0 ? [] : [{ ...one, cases }];
  });
}

/** The groups that are named, and what has an id that starts with one of the filters; everything where there is none. */
export function select(filters: readonly string[]) {
  for (const filter of filters) {
    if (filter in GROUPS || IDS.some((id) => id.startsWith(filter))) continue;
    const groups = Object.keys(GROUPS).join(', ');
    throw new Error(`nothing is called "${filter}"; the groups are ${groups}; the ids are ${IDS.join(', ')}`);
  }
  const chosen = ({ id }: { readonly id: string }) =>
    filters.length === 0 ||
    filters.some((filter) => GROUPS[filter]?.some((one) => one.id === id) ?? id.startsWith(filter));
  return { benchmarks: BENCHMARKS.filter(chosen), experiments: EXPERIMENTS.filter(chosen) };
}
