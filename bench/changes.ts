import { number } from './format.js';
import { spread } from './judge.js';
import { signedRankTest } from './rank-test.js';
import type { Spread } from './results.js';
import type { Sample } from './workload.js';

/** What is worth telling: less likely by chance than this, and at least so large. */
const CHANCE = 0.01;
const SMALLEST = 0.02;

const MEASURES = [
  { title: 'throughput', more: 'better', read: (sample: Sample) => sample.perSecond },
  { title: 'client CPU', more: 'worse', read: (sample: Sample) => sample.cpuUs },
  { title: 'memory', more: 'worse', read: (sample: Sample) => sample.bytes },
] as const;

export interface Change {
  readonly work: string;
  readonly measure: string;
  /** New to old, round by round. */
  readonly ratio: Spread;
  readonly chance: number;
  readonly verdict: 'better' | 'worse' | 'no change beyond the noise';
}

/** Compares the rounds of two revisions at the same work; both have one sample in each round. */
export function changes(work: string, before: readonly Sample[], after: readonly Sample[]): Change[] {
  return MEASURES.flatMap(({ title, more, read }) => {
    const old = before.flatMap((sample) => read(sample) ?? []);
    const now = after.flatMap((sample) => read(sample) ?? []);
    const ratios = now.flatMap((value, round) => (old[round] ? [value / old[round]] : []));
    const ratio = spread(ratios);
    if (ratio === undefined) return [];
    const chance = signedRankTest(ratios.map(Math.log));
    const real = chance < CHANCE && Math.abs(ratio.median - 1) >= SMALLEST;
    const grew = ratio.median > 1;
    const verdict = !real ? 'no change beyond the noise' : grew === (more === 'better') ? 'better' : 'worse';
    return [{ work, measure: title, ratio, chance, verdict }];
  });
}

export const CHANGES_HEAD = ['work', 'measure', 'new / old', 'by chance', 'verdict'];

export function changeCells({ work, measure, ratio, chance, verdict }: Change): string[] {
  const range = `${number(ratio.median)}× (${number(ratio.min)}–${number(ratio.max)})`;
  return [work, measure, range, chance < 0.001 ? '< 0.001' : chance.toFixed(3), verdict];
}
