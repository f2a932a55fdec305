/** The shape of `bench/results/latest.json`: raw samples and what they were judged as. */

import type { ExperimentResult } from './experiments/experiment.js';
import type { Bar, Contestant } from './rows.js';
import type { Settings } from './settings.js';
import type { Probe, Sample } from './workload.js';

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export interface ContestantResult {
  readonly contestant: Contestant;
  /** One a round, in the order of the rounds. */
  readonly samples: readonly Sample[];
  readonly probe: Probe;
}

export interface CaseResult {
  readonly id: string;
  readonly contestants: readonly ContestantResult[];
}

export interface Verdict extends Bar {
  readonly case: string;
  /** The ratio, round by round; or the figure itself, against an absolute bar. */
  readonly measured: Spread;
  /** Absent where there is no bar, or no stretch. */
  readonly holds?: boolean;
  readonly stretchHolds?: boolean;
}

export interface RowResult {
  readonly id: string;
  readonly title: string;
  readonly cases: readonly CaseResult[];
  readonly verdicts: readonly Verdict[];
}

export interface BenchReport {
  readonly settings: Settings;
  readonly rows: readonly RowResult[];
  /** Absent in results of before there were any. */
  readonly experiments?: readonly ExperimentResult[];
  /** What was left out, and what may have disturbed the run. */
  readonly notes: readonly string[];
}
