import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { chartsOf } from '../../bench/charts.js';
import type { ExperimentResult } from '../../bench/experiments/experiment.js';
import { exactly } from '../../bench/panel.js';
import { documentsOf, parseReport } from '../../bench/report.js';
import type { BenchReport } from '../../bench/results.js';

const root = new URL('../../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, root), 'utf8');
const latest = parseReport(read('bench/results/latest.json'), 'latest.json');

const EXPERIMENT: ExperimentResult = {
  id: 'experiment-of-this-test',
  title: 'An experiment',
  published: 'somebody measured 5',
  publishedPanels: [],
  panels: [
    {
      id: 'figures',
      title: 'Figures & <more>',
      x: { title: 'place', values: ['a', 'b'] },
      y: { title: 'things' },
      series: [
        { name: 'one', values: [exactly(1234), null] },
        { name: 'two', values: [{ median: 2, min: 1, max: 3 }, exactly(4)] },
      ],
      chart: 'line',
    },
  ],
  findings: ['Four is more than two.'],
};
const WITH_EXPERIMENT: BenchReport = { ...latest, experiments: [EXPERIMENT] };

describe('the documents of the latest results', () => {
  const documents = documentsOf(latest, read('README.md'));

  it.each([...documents.keys()])('%s is what they say ("npm run bench:report" writes it)', (file) => {
    expect(existsSync(new URL(file, root))).toBe(true);
    expect(read(file)).toBe(documents.get(file));
  });
});

describe('an experiment', () => {
  const text = documentsOf(WITH_EXPERIMENT, read('README.md')).get('docs/benchmarks.md') ?? '';

  it('stands beside what was published, with its tables and its findings', () => {
    expect(text).toContain('### An experiment\n\nPublished: somebody measured 5');
    expect(text).toContain('| place | one | two |\n| --- | --- | --- |\n| a | 1,234 | 2 (1–3) |\n| b |  | 4 |');
    expect(text).toContain('- Four is more than two.');
  });

  it('has a chart that is a file of the same run', () => {
    const [, file = ''] = /!\[Figures & <more>\]\(\.\.\/bench\/results\/(.+?)\)/.exec(text) ?? [];
    const chart = chartsOf(WITH_EXPERIMENT).find((one) => one.file === file);
    expect(chart?.svg).toMatch(/^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
    expect(chart?.svg).toContain('>two</text>');
  });
});

it('draws the same chart from the same figures, however often', () => {
  expect(chartsOf(WITH_EXPERIMENT)).toEqual(chartsOf(WITH_EXPERIMENT));
});

it('says of a file that holds no results what it should hold', () => {
  expect(() => parseReport('{"rows": []}', 'other.json')).toThrow('other.json should be the JSON of a benchmark run');
});
