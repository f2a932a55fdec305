/** docs/scale.md, from the results of a run. */

import { scale as experiment } from '../experiments/scale.js';
import type { BenchReport } from '../suite/results.js';
import { describeMachine, describeRun } from '../suite/settings.js';
import { figureSection } from './benchmarks-document.js';
import type { Chart } from './charts.js';
import { list, wrap } from './markdown.js';

const INTRODUCTION = `# Scale

Written by \`npm run bench:report\` from the results of a run; do not edit by hand. \`npm run bench -- scale\` repeats the
measurements.

How the cost of a coalesced client grows with nodes, connections, processes, distance and batch size; and a model of it
that has four figures in it, beside what was measured. The model:

- **CPU of the client per command** = \`c + w / n\`: \`w\` is the cost of a round trip on one connection, \`c\` that of a
  command in it, \`n\` the commands of a batch. Both come from one caller and from 1,000 on one connection; everything
  else in the tables is prediction.
- **Commands a second of a connection** = \`k / (r + t + (k − 1) · s)\`: \`k\` callers, \`r\` the round-trip time of the
  network, \`t\` a round trip at no distance, \`s\` what one more command adds.
- **Commands of a batch** that is not empty, where a process issues \`R\` commands a second in \`T\` turns of its event
  loop, each to one of \`N\` nodes at random: \`m / (1 − e^−m)\` with \`m = R / (T · N)\`.

A batch belongs to a connection and to a turn of the event loop. So what counts is how many commands one process has for
one node in one turn. More callers make it larger; more nodes, connections and processes make it smaller.`;

/** undefined where the run has no figures of scale */
export function scaleDocument({ experiments, settings }: BenchReport, charts: readonly Chart[]): string | undefined {
  const found = experiments.find(({ id }) => id === experiment.id);
  if (found === undefined) return undefined;
  const parts = [
    INTRODUCTION,
    '## The run',
    wrap(`${describeMachine({ ...settings, ...found.run })}. ${describeRun({ ...settings, ...found.run })}.`),
    '## Measured, and the model',
    ...found.figures.map((figure) => figureSection(figure, experiment, charts)),
    '## What follows',
    list(experiment.findings(found.figures)),
  ];
  return `${parts.join('\n\n')}\n`;
}
