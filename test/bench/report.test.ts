import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { gridCase } from '../../bench/benchmarks/grid.js';
import { BENCHMARKS } from '../../bench/benchmarks/index.js';
import { chartsOf } from '../../bench/report/charts.js';
import { OURS, stylesOf } from '../../bench/report/drawing.js';
import { exactly } from '../../bench/report/figure.js';
import { gainsTable, withPackageGains } from '../../bench/report/gains.js';
import { CELL_INKS, contrast } from '../../bench/report/heat-map.js';
import { documentsOf, regionsOf } from '../../bench/report/report.js';
import { notesText, runsText } from '../../bench/report/runs.js';
import { resultCells } from '../../bench/report/tables.js';
import { evaluate, measureOf, unclearCases } from '../../bench/suite/evaluate.js';
import {
  type BenchmarkResult,
  type BenchReport,
  type ExperimentResult,
  parseReport,
  serialize,
} from '../../bench/suite/results.js';
import { MOST_ROUNDS } from '../../bench/suite/settings.js';
import { fillRegions, readDocuments } from '../../tools/documents.js';

const root = new URL('../../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, root), 'utf8');
const latest = parseReport(read('bench/results/latest.json'), 'latest.json');

const EXPERIMENT: ExperimentResult = {
  id: 'experiment-of-this-test',
  title: 'An experiment',
  figures: [
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
};
const WITH_EXPERIMENT: BenchReport = { ...latest, experiments: [EXPERIMENT] };

describe('the documents of the latest results', async () => {
  const documents = await documentsOf(latest);

  it.each([...documents.keys()])('%s is what they say ("npm run bench:report" writes it)', (file) => {
    expect(existsSync(new URL(file, root))).toBe(true);
    expect(read(file)).toBe(documents.get(file));
  });
});

describe('the generated regions', async () => {
  const documents = await readDocuments();

  it.each(Object.keys(await regionsOf(latest)))('%s stands in one document', (name) => {
    const holding = [...documents].filter(([, text]) => text.includes(`<!-- ${name}:begin -->`));
    expect(holding).toHaveLength(1);
  });
});

describe('a table of latencies', () => {
  it('has the median over the rounds of each percentile, whichever rounds they are of', () => {
    const samples = [
      { latencyUs: { p50: 10, p95: 20, p99: 900 } },
      { latencyUs: { p50: 20, p95: 90, p99: 100 } },
      { latencyUs: { p50: 30, p95: 40, p99: 300 } },
    ];
    const cases = [{ id: 'a case', variants: [{ variant: 'plain', probe: {}, samples }] }];
    expect(resultCells({ id: 'one', title: 'One', cases }).rows).toEqual([['plain', '20 µs / 40 µs / 300 µs / –']]);
  });
});

describe("the README's table", () => {
  it('has the latency of callers and of a route, with the gain of each figure', () => {
    const rows = gainsTable(latest).split('\n');
    const pair = /\| [\d.]+ \/ [\d.]+ ms \| \*\*[\d.]+× \/ [\d.]+×\*\* \|$/;
    expect(rows.filter((row) => pair.test(row))).toHaveLength(3);
    expect(rows.filter((row) => row.startsWith('| '))).toHaveLength(8);
  });

  it('leaves out what was not measured', () => {
    const rows = gainsTable({ ...latest, benchmarks: [], experiments: [] }).split('\n');
    expect(rows.filter((row) => row.startsWith('| '))).toHaveLength(2);
  });
});

describe('what disturbed the runs', () => {
  it('is a line per revision, with the counts of all its notes', () => {
    const note = (revision: string, text: string) => ({ revision, text });
    const stolen = "samples were taken while the machine's host gave more than 2 % of its processors to others.";
    const notes = [
      note('a', `4 of 200 ${stolen}`),
      note('a', 'plain used 7 % of a core while others were measured.'),
      note('a', `6 of 1000 ${stolen}`),
      note('a', 'coalesced used 9 % of a core while others were measured.'),
      note('b', 'glide: not found: not measured.'),
    ];
    expect(notesText(notes).replace(/\s+/g, ' ')).toBe(
      `- a: 10 of 1,200 ${stolen.slice(0, -1)}; \`coalesced\` and \`plain\` used up to 9 % of a core while others were ` +
        'measured (seen 2 times). - b: glide: not found: not measured.',
    );
  });
});

describe('the machine', () => {
  const run = { ...latest.settings, revision: 'f00', cpu: 'Another CPU' };

  it('of a table whose rows come from several runs is each of their machines', () => {
    const text = runsText(latest, [{}, { run }, { run }]);
    expect(text).toContain(latest.settings.cpu);
    expect(text.match(/Another CPU/g)).toHaveLength(1);
    expect(text).toMatch(/; revisions \w+ and f00$/);
  });

  it('stands above the targets, that of the benchmarks which have some', async () => {
    const benchmarks = latest.benchmarks.map((one) => ({ ...one, run }));
    const text = (await documentsOf({ ...latest, benchmarks })).get('docs/benchmarks.md') ?? '';
    const [, targets = ''] = /\n## Targets\n([\s\S]*?)\n\| benchmark/.exec(text) ?? [];
    expect(targets).toContain('Another CPU');
    expect(targets).not.toContain(latest.settings.cpu);
  });
});

describe('an experiment', async () => {
  const text = (await documentsOf(WITH_EXPERIMENT)).get('docs/benchmarks.md') ?? '';

  it('has a section with its tables', () => {
    expect(text).toContain('### An experiment\n');
    expect(text).toContain('| place | one | two |\n| --- | --- | --- |\n| a | 1,234 | 2 (1–3) |\n| b |  | 4 |');
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

describe('a chart', () => {
  const charts = chartsOf(latest);
  const textOf = (svg: string) => [...svg.matchAll(/<text [^>]*>([^<]*)</g)].map(([, text]) => text!);

  it.each(charts.map(({ file }) => file))('%s can be read in the dark, every colour of it', (file) => {
    const { svg = '' } = charts.find((one) => one.file === file) ?? {};
    const [, rules = ''] = /@media \(prefers-color-scheme:dark\)\{(.*?)\}<\/style>/.exec(svg) ?? [];
    const colours = [...svg.matchAll(/ (fill|stroke)="(#\w+)"/g)].map(([, what, colour]) => `[${what}="${colour}"]`);
    expect(colours).not.toEqual([]);
    // Black is what ECharts gives to areas that are not painted.
    const same = ['#000', ...(file === 'grid.svg' ? CELL_INKS : [])];
    const painted = colours.filter((one) => !same.some((colour) => one.includes(colour)));
    for (const colour of new Set(painted)) expect(rules).toContain(colour);
  });

  it('has figures that can be read on each cell of the grid', () => {
    const { svg = '' } = charts.find(({ file }) => file === 'grid.svg') ?? {};
    const cells = [...svg.matchAll(/<path d="[^"]*Z" fill="(rgb\([\d,]+\))"/g)].map(([, cell = '']) => cell);
    const inks = [...svg.matchAll(/<text [^>]*fill="(#000000|#fefefe)"/g)].map(([, ink = '']) => ink);
    expect(inks.length).toBeGreaterThan(200);
    expect(cells).toHaveLength(inks.length);
    for (const [index, ink] of inks.entries()) expect(contrast(cells[index]!, ink)).toBeGreaterThan(4.5);
  });

  it('says the unit and which direction is better', () => {
    for (const { file, svg } of charts)
      expect([file, textOf(svg).join()]).toEqual([file, expect.stringMatching(/(more|less) is better/)]);
  });

  it('has names that a visitor knows', () => {
    const { svg = '' } = charts.find(({ file }) => file === 'burst.svg') ?? {};
    expect(textOf(svg)).toEqual(
      expect.arrayContaining([
        'ioredis',
        'ioredis, auto-pipelining',
        'node-redis, default timeout',
        'node-redis, no timeout',
        'ioredis-coalesce',
        'bare socket',
      ]),
    );
  });

  it('has a different style for each line, and its own colour for the coalesced client', () => {
    const names = BENCHMARKS.find(({ id }) => id === 'concurrency')!.variants as string[];
    const styles = stylesOf(names);
    expect(new Set(styles.map(({ colour, dash, symbol }) => `${colour} ${dash} ${symbol}`)).size).toBe(names.length);
    expect(styles.filter(({ colour }) => colour === OURS)).toEqual([styles[names.indexOf('coalesced')]]);
  });
});

it('rejects a file without results, and says what it should hold', () => {
  expect(() => parseReport('{"rows": []}', 'other.json')).toThrow('other.json should be the JSON of a benchmark run');
});

describe('a file of results', () => {
  it('has one sample per line, with four significant digits', () => {
    const samples = [{ perSecond: 108284.75059, cpuUs: 9.2995479704 }, { perSecond: 117791.44209 }];
    const cases = [{ id: '200 GETs', variants: [{ variant: 'plain', probe: {}, samples }] }];
    const text = serialize({ ...latest, benchmarks: [{ id: 'burst', title: 'x'.repeat(140), cases }] });
    expect(text).toContain('{"perSecond":108300,"cpuUs":9.3}');
    expect(parseReport(text, 'text').benchmarks[0]?.cases[0]?.variants[0]?.samples).toHaveLength(2);
  });

  it('in the repository has the form in which results are written', () => {
    expect(serialize(latest)).toBe(read('bench/results/latest.json'));
  });
});

describe('the pace of a benchmark', () => {
  it('is told in its section: as many rounds as there are samples, or more until targets are clear', () => {
    const { benchmarks, settings } = latest;
    for (const { id, cases, run, pace } of benchmarks) {
      const { rounds } = pace ?? run ?? settings;
      const most = (run ?? settings).untilClear ? MOST_ROUNDS * rounds : rounds;
      for (const { variants } of cases) {
        const counts = new Set(variants.map(({ samples }) => samples.length));
        expect(counts.size, id).toBe(1);
        const [count] = counts;
        expect(count, id).toBeGreaterThanOrEqual(rounds);
        expect(count, id).toBeLessThanOrEqual(most);
      }
    }
  });
});

describe('a target', () => {
  const resultOf = (ratio: number): BenchmarkResult => ({
    id: 'timeout',
    title: 'a benchmark',
    cases: [
      {
        id: 'a case',
        variants: [
          { variant: 'coalesced', probe: {}, samples: [{ perSecond: 100 }, { perSecond: 300 }] },
          {
            variant: 'coalesced-timeout',
            probe: {},
            samples: [{ perSecond: 100 * ratio }, { perSecond: 300 * ratio }],
          },
        ],
      },
    ],
  });

  it.each([
    [0.99, true, true],
    [0.96, true, false],
    [0.9, false, false],
  ])('is compared with the ratio of the rounds: %s', (ratio, met, furtherMet) => {
    const [result] = evaluate([resultOf(ratio)]);
    expect(result).toMatchObject({ metric: 'throughput', met, furtherMet });
    expect(result?.measured.median).toBeCloseTo(ratio);
  });

  it.each([
    ['too few rounds', [2, 2], ['200 GETs']],
    ['all rounds above the limit', [2, 2, 2, 2, 2, 2], []],
    ['all below', [0.5, 0.5, 0.5, 0.5, 0.5, 0.5], []],
    ['some above', [2, 0.5, 2, 0.5, 2, 0.5], ['200 GETs']],
  ])('is unclear or not, whatever is better still: %s', (_, ratios, expected) => {
    const samples = (of: readonly number[]) => of.map((perSecond) => ({ perSecond }));
    const { id } = resultOf(1);
    const variants = [
      { variant: 'coalesced', probe: {}, samples: samples(ratios.map(() => 1)) },
      { variant: 'coalesced-timeout', probe: {}, samples: samples(ratios) },
    ];
    expect([...unclearCases(id, [{ id: '200 GETs', variants }])]).toEqual(expected);
  });

  it('is the only one for its measure of its case', () => {
    const measures = evaluate(latest.benchmarks).map((one) => `${one.title}, ${one.case}: ${measureOf(one)}`);
    expect(measures).toEqual([...new Set(measures)]);
  });

  it('stands as met or not met in docs/benchmarks.md', async () => {
    const text = (await documentsOf({ ...latest, benchmarks: [resultOf(0.9)] })).get('docs/benchmarks.md');
    expect(text).toContain(
      '| a benchmark: a case | throughput, coalesced-timeout / coalesced | 0.9× | ≥ 0.95× | not met |',
    );
  });
});

describe('a generated region', () => {
  const fill = (text: string) => fillRegions(new Map([['a.md', text]]), { one: 'new', two: (was) => `${was}!` });

  it('is replaced, and what is around it stays', () => {
    expect(fill('a\n<!-- one:begin -->\nold\n<!-- one:end -->\nb').get('a.md')).toBe(
      'a\n<!-- one:begin -->\nnew\n<!-- one:end -->\nb',
    );
  });

  it('may be made from its present text', () => {
    expect(fill('<!-- two:begin -->\nold\n<!-- two:end -->').get('a.md')).toContain('\nold!\n');
  });

  it('without an end is an error that names the document', () => {
    expect(() => fill('<!-- one:begin -->')).toThrow(
      'a.md should hold <!-- one:begin --> and, after it, <!-- one:end -->',
    );
  });
});

it('fills the column "gain" of a table of packages, for what was measured', () => {
  const side = (variant: string, perSecond: number) => ({ variant, probe: {}, samples: [{ perSecond }] });
  const cases = [{ id: 'bullmq add, 10', variants: [side('plain', 100), side('coalesced', 150)] }];
  const table = '| package | gain | test |\n| --- | --- | --- |\n| `bullmq` |  | a |\n| `other` | old | b |';
  expect(withPackageGains(table, { ...latest, benchmarks: [{ id: 'packages', title: '', cases }] })).toBe(
    '| package | gain | test |\n| --- | --- | --- |\n| `bullmq` | add, 10: 1.5× | a |\n| `other` | not measured | b |',
  );
});

it('names a package that was measured and has no row, once', () => {
  const side = (variant: string, perSecond: number) => ({ variant, probe: {}, samples: [{ perSecond }] });
  const cases = [{ id: '@fastify/session, 30', variants: [side('plain', 100), side('coalesced', 95)] }];
  const report = { ...latest, benchmarks: [{ id: 'packages', title: '', cases }] };
  const table = '| package | gain |\n| --- | --- |\n| `other` | not measured |';
  const filled = `${table}\n\nMeasured, without a test here: \`@fastify/session\`, 30: 0.95×.`;
  expect(withPackageGains(table, report)).toBe(filled);
  expect(withPackageGains(filled, report)).toBe(filled);
});

it('draws the grid as a heat map with the ratio of each of its cells', () => {
  const side = (variant: string, perSecond: number, p50: number) => {
    return { variant, probe: {}, samples: [{ perSecond, latencyUs: { p50, p99: p50 } }] };
  };
  const cell = { id: gridCase('GET', '4 KiB', 13), variants: [side('plain', 1000, 100), side('coalesced', 1230, 97)] };
  const report = { ...latest, benchmarks: [{ id: 'grid', title: 'The grid', cases: [cell] }], experiments: [] };
  const [chart] = chartsOf(report);
  expect(chart?.file).toBe('grid.svg');
  expect(chart?.svg).toContain('>1.23</text>');
  expect(chart?.svg).toContain('>0.97</text>');
});

it('draws the gain of packages, whatever they do per second', () => {
  const side = (variant: string, perSecond: number) => ({ variant, probe: {}, samples: [{ perSecond }] });
  const cases = [{ id: 'bullmq add, 10', variants: [side('plain', 5000), side('coalesced', 6150)] }];
  const report = { ...latest, benchmarks: [{ id: 'packages', title: 'Packages', cases }], experiments: [] };
  const [chart] = chartsOf(report);
  expect(chart?.svg).toContain('>1.23</text>');
  expect(chart?.svg).toContain('throughput ÷ that of ioredis');
  expect(chart?.svg).not.toContain('commands per second');
});
