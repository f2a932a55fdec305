/** Medians, and ratios of rounds with the interval in which the true one lies. */

/** With its 95 % interval. */
export interface Estimate {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** Of the samples at both ends, as many are pulled in: rounds that something disturbed. */
const TRIMMED = 1 / 5;
const Z = 1.96;

/** undefined where there is nothing */
export function median(samples: readonly number[]): number | undefined {
  const sorted = samples.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? sorted[middle]
    : sorted.length === 0
      ? undefined
      : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Round by round, because what disturbs a round disturbs both of its sides. */
export function ratios(of: readonly number[], versus: readonly number[]): number[] {
  return of.flatMap((value, round) => (versus[round] ? [value / versus[round]] : []));
}

/**
 * The trimmed mean of the samples' logarithms, and its interval by Student's t with the winsorized variance (Yuen
 * 1974); undefined where there is nothing.
 */
export function estimate(samples: readonly number[]): Estimate | undefined {
  const logs = samples
    .filter((one) => one > 0)
    .map(Math.log)
    .sort((a, b) => a - b);
  const cut = Math.floor(logs.length * TRIMMED);
  const kept = logs.slice(cut, logs.length - cut);
  if (kept.length === 0) return undefined;
  const pulledIn = logs.map((one) => Math.min(Math.max(one, kept[0]!), kept.at(-1)!));
  const center = mean(kept);
  const around = mean(pulledIn);
  const squares = pulledIn.reduce((sum, one) => sum + (one - around) ** 2, 0);
  const { length } = kept;
  const half =
    length === 1 ? Number.POSITIVE_INFINITY : studentT(length - 1) * Math.sqrt(squares / (length * (length - 1)));
  return { value: Math.exp(center), low: Math.exp(center - half), high: Math.exp(center + half) };
}

/** Whether the interval lies within this share around its estimate. */
export function isWithin(share: number, { low, high }: Estimate): boolean {
  return high / low <= (1 + share) ** 2;
}

/** Whether there is a difference from 1 at all. */
export function isClear({ low, high }: Estimate): boolean {
  return low > 1 || high < 1;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The two-sided 95 % quantile, by its expansion in the degrees of freedom: from 3 on within 1 %. */
function studentT(degrees: number): number {
  const first = (Z ** 3 + Z) / (4 * degrees);
  const second = (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * degrees ** 2);
  const third = (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / (384 * degrees ** 3);
  return Z + first + second + third;
}
