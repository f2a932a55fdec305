import type { Panel } from '../panel.js';
import type { Lab } from './lab.js';

/** Something that others measured and published, done again with this package. */
export interface Experiment {
  readonly id: string;
  readonly title: string;
  /** About how many measurements it makes, for the progress bar. */
  readonly steps: number;
  /** What was published, in the words in which it is told. */
  readonly published: string;
  readonly publishedPanels: readonly Panel[];
  run(lab: Lab): Promise<readonly Panel[]>;
  /** What differs from the published experiment and what its figures say; from the figures where they are named. */
  findings(panels: readonly Panel[]): readonly string[];
}

/** An experiment as it stands in the JSON. */
export interface ExperimentResult {
  readonly id: string;
  readonly title: string;
  readonly published: string;
  readonly publishedPanels: readonly Panel[];
  readonly panels: readonly Panel[];
  readonly findings: readonly string[];
}

export async function runExperiment(experiment: Experiment, lab: Lab): Promise<ExperimentResult> {
  const { id, title, published, publishedPanels } = experiment;
  const panels = await experiment.run(lab);
  return { id, title, published, publishedPanels, panels, findings: experiment.findings(panels) };
}
