/** Medians, ranges and ratios of rounds, and how likely a difference is by chance. */

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** undefined where there is nothing */
export function spread(samples: readonly number[]): Spread | undefined {
  if (samples.length === 0) return undefined;
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
  return { median, min: sorted[0]!, max: sorted.at(-1)! };
}

/** Round by round, because what disturbs a round disturbs both of its sides. */
export function ratios(of: readonly number[], versus: readonly number[]): number[] {
  return of.flatMap((value, round) => (versus[round] ? [value / versus[round]] : []));
}

/**
 * How likely differences like these are by chance, where there is no difference: the exact two-sided p of Wilcoxon's
 * signed-rank test. Each round gives one difference, and only ranks count, so that one bad round weighs no more than
 * any other.
 */
export function signedRankTest(differences: readonly number[]): number {
  const real = differences.filter((value) => value !== 0);
  const sizes = real.map(Math.abs);
  const less = (size: number) => sizes.filter((one) => one < size).length;
  const upTo = (size: number) => sizes.filter((one) => one <= size).length;
  // Doubled, so that the shared ranks of equal values are whole numbers.
  const ranks = sizes.map((size) => less(size) + upTo(size) + 1);
  const total = ranks.reduce((sum, rank) => sum + rank, 0);
  const positive = ranks.reduce((sum, rank, index) => sum + (real[index]! > 0 ? rank : 0), 0);
  return Math.min(1, 2 * chanceOfAtMost(Math.min(positive, total - positive), ranks));
}

/** That the ranks of the positive differences sum up to no more than `sum`, where each sign is the toss of a coin. */
function chanceOfAtMost(sum: number, ranks: readonly number[]): number {
  let chances = new Map([[0, 1]]);
  for (const rank of ranks) {
    const next = new Map<number, number>();
    for (const [reached, chance] of chances) {
      for (const target of [reached, reached + rank]) next.set(target, (next.get(target) ?? 0) + chance / 2);
    }
    chances = next;
  }
  return [...chances].reduce((found, [reached, chance]) => found + (reached <= sum ? chance : 0), 0);
}
