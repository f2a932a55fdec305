import type { Benchmark } from '../benchmarks/benchmark.js';

/** Seconds and rounds that were asked for, for all benchmarks. */
export interface Asked {
  readonly rounds?: number | undefined;
  readonly seconds?: number | undefined;
  /** One short round of everything. */
  readonly smoke?: boolean;
}

export interface Pace {
  readonly rounds: number;
  /** Of a timed round. */
  readonly seconds: number;
  /** Before a variant's first round: its code has to become fast. */
  readonly warmUpSeconds: number;
  /** Before every later round. */
  readonly rewarmSeconds: number;
  /** Of counting writes. */
  readonly probeSeconds: number;
}

/**
 * What every published figure rests on, in each variant: five rounds, of a second where a benchmark does not say
 * longer.
 */
const ROUNDS = 5;
const SECONDS = 1;
const WARM_UP_S = 0.3;
/** What ran before has only left the caches of the processor. */
const REWARM_S = 0.05;
const SMOKE_SECONDS = 0.03;
/** What a round takes beside the work: messages, garbage collection, the server's own figures. */
const OVERHEAD_S = 0.05;
const OPENING_S = 0.5;

export function paceOf(
  { warmUpSeconds = WARM_UP_S, seconds: own = SECONDS }: Pick<Benchmark, 'warmUpSeconds' | 'seconds'>,
  asked: Asked,
): Pace {
  if (asked.smoke) {
    const short = SMOKE_SECONDS;
    return {
      rounds: asked.rounds ?? 1,
      seconds: short,
      warmUpSeconds: short,
      rewarmSeconds: short,
      probeSeconds: short,
    };
  }
  const seconds = asked.seconds ?? own;
  return {
    rounds: asked.rounds ?? ROUNDS,
    seconds,
    warmUpSeconds,
    rewarmSeconds: Math.min(REWARM_S, seconds),
    probeSeconds: seconds / 2,
  };
}

/** Timed rounds, of all variants in all cases. */
export function roundsOf(one: Benchmark, asked: Asked): number {
  const { rounds } = paceOf(one, asked);
  return rounds * one.cases.reduce((sum, { variants = one.variants }) => sum + variants.length, 0);
}

/** About how long a benchmark takes. */
export function secondsOf(one: Benchmark, asked: Asked): number {
  const { probeSeconds, rewarmSeconds, rounds, seconds, warmUpSeconds } = paceOf(one, asked);
  const counting = one.counted ? probeSeconds : 0;
  const parts = roundsOf(one, asked) / rounds;
  const places = new Set(one.cases.map(({ environment }) => environment)).size;
  const openings = one.ownProcesses ? one.cases.length : places;
  const working = rounds * (seconds + OVERHEAD_S) + (rounds - 1) * rewarmSeconds + warmUpSeconds + counting;
  return OPENING_S * openings + parts * working;
}
