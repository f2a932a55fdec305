import type { Figure } from '../report/figure.js';
import type { ExperimentResult } from '../suite/results.js';
import type { Harness } from './harness.js';

/** An experiment that others published, repeated with this package. */
export interface Experiment {
  readonly id: string;
  readonly title: string;
  /** About how many measurements it makes, for the progress bar. */
  readonly steps: number;
  /** What was published, in the words in which it is told. */
  readonly published: string;
  readonly publishedFigures: readonly Figure[];
  run(harness: Harness): Promise<readonly Figure[]>;
  /** What differs from the published experiment and what its figures say; from the figures where they are named. */
  findings(figures: readonly Figure[]): readonly string[];
}

export async function runExperiment({ id, title, run }: Experiment, harness: Harness): Promise<ExperimentResult> {
  return { id, title, figures: await run(harness) };
}
