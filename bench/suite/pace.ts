import type { Benchmark } from '../benchmarks/benchmark.js';

/** Seconds and rounds that were asked for, for all benchmarks. */
export interface Asked {
  readonly rounds?: number | undefined;
  readonly seconds?: number | undefined;
  /** One short round of everything. */
  readonly smoke?: boolean;
}

export interface Pace {
  /** Rounds that there are at least; then as many as the intervals need to be narrow, and at most so many. */
  readonly least: number;
  readonly most: number;
  /** Of a timed round. */
  readonly seconds: number;
  /** Before it: the code of a new process has to become fast. */
  readonly warmUpSeconds: number;
  /** Before it, in a process that has worked before: what ran meanwhile has only left the caches of the processor. */
  readonly rewarmSeconds: number;
  /** Of counting writes. */
  readonly probeSeconds: number;
}

const LEAST = 6;
const MOST = 10;
const SECONDS = 0.5;
const WARM_UP_S = 0.3;
const REWARM_S = 0.05;
const SMOKE_SECONDS = 0.03;
/** What a round takes beside the work: a process, messages, garbage collection, the server's own figures. */
const OVERHEAD_S = 0.4;

export function paceOf(
  {
    warmUpSeconds = WARM_UP_S,
    seconds: own = SECONDS,
    most = MOST,
  }: Pick<Benchmark, 'warmUpSeconds' | 'seconds' | 'most'>,
  asked: Asked,
): Pace {
  const short = asked.smoke ? SMOKE_SECONDS : undefined;
  const rounds = asked.rounds ?? (asked.smoke ? 1 : undefined);
  const seconds = short ?? asked.seconds ?? own;
  return {
    least: rounds ?? Math.min(LEAST, most),
    most: rounds ?? most,
    seconds,
    warmUpSeconds: short ?? warmUpSeconds,
    rewarmSeconds: short ?? Math.min(REWARM_S, seconds),
    probeSeconds: short ?? seconds / 2,
  };
}

/** Samples, of all variants in all cases, at most. */
export function samplesOf(one: Benchmark, asked: Asked): number {
  return paceOf(one, asked).most * one.cases.reduce((sum, { variants = one.variants }) => sum + variants.length, 0);
}

/** How long a benchmark takes at most, about. */
export function secondsOf(one: Benchmark, asked: Asked): number {
  const { seconds, warmUpSeconds } = paceOf(one, asked);
  return samplesOf(one, asked) * (seconds + warmUpSeconds + OVERHEAD_S);
}
