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
  /** Before a variant's first round: its code has to become hot. */
  readonly warmUpSeconds: number;
  /** Before every later round. */
  readonly rewarmSeconds: number;
  /** Of counting writes. */
  readonly probeSeconds: number;
}

type Paced = Pick<Benchmark, 'rounds' | 'seconds' | 'warmUpSeconds'>;

const SMOKE_SECONDS = 0.03;
/** What a round takes beside the work: messages, garbage collection, the server's own figures. */
const OVERHEAD_S = 0.05;
const OPENING_S = 0.5;

export function paceOf({ rounds = 5, seconds = 1, warmUpSeconds = seconds }: Paced, asked: Asked): Pace {
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
  const length = asked.seconds ?? seconds;
  return {
    rounds: asked.rounds ?? rounds,
    seconds: length,
    warmUpSeconds: asked.seconds === undefined ? warmUpSeconds : Math.max(warmUpSeconds, length),
    rewarmSeconds: length / 5,
    probeSeconds: length / 2,
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
