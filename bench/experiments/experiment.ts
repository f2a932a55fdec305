import type { Figure } from '../report/figure.js';
import type { Harness } from './harness.js';

/**
 * An experiment that others published, repeated with this package. What was published, what differs here and what the
 * figures say stands in `report/texts/`, under its id.
 */
export interface Experiment {
  readonly id: string;
  readonly title: string;
  /** About how many measurements it makes, for the progress bar. */
  readonly steps: number;
  readonly publishedFigures: readonly Figure[];
  run(harness: Harness): Promise<readonly Figure[]>;
}
