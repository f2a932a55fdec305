import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { BENCHMARKS } from '../../bench/benchmarks/index.js';
import { packagesRegion } from '../../bench/report/gains.js';
import { HEADLINES } from '../../bench/report/headlines.js';
import { regionsOf } from '../../bench/report/regions.js';
import { allRegions, chartsOf } from '../../bench/report/report.js';
import { evaluate, measureOf } from '../../bench/suite/evaluate.js';
import {
  type BenchmarkResult,
  type GroupResult,
  parseGroup,
  readResults,
  serialize,
} from '../../bench/suite/results.js';
import type { Settings } from '../../bench/suite/settings.js';
import type { Metric } from '../../bench/variants/protocol.js';
import { fillRegions, readDocuments } from '../../tools/documents.js';

const root = new URL('../../', import.meta.url);
const published = await readResults('bench/results');

const SETTINGS: Settings = {
  date: '2026-11-26',
  revision: 'f00',
  node: 'v24.1.0',
  server: 'Redis 8.2.3',
  ioredis: '6.0.0',
  nodeRedis: '6.3.1',
  cpu: 'A CPU',
  cores: 2,
  kernel: 'Linux 6',
  memoryGiB: 4,
  awake: false,
};

type Figures = Partial<Record<Metric, readonly number[]>>;

/** A benchmark with one figure for each metric of each variant. */
function result(id: string, cases: Readonly<Record<string, Readonly<Record<string, Figures>>>>): BenchmarkResult {
  const found = Object.entries(cases).map(([of, variants]) => ({
    id: of,
    variants: Object.entries(variants).map(([variant, figures]) => ({ variant, figures })),
  }));
  return { id, seconds: 1, cases: found };
}

const group = (name: string, benchmarks: readonly BenchmarkResult[], notes: readonly string[] = []): GroupResult => ({
  group: name,
  settings: SETTINGS,
  notes,
  benchmarks,
});

const FIGURES = {
  throughput: [100_000],
  cpu: [6],
  serverCpu: [5],
  p50: [500],
  p99: [2000],
  p999: [4000],
  utilization: [0.5],
};
const HALF = {
  throughput: [200_000],
  cpu: [3],
  serverCpu: [1],
  p50: [250],
  p99: [1000],
  p999: [2000],
  utilization: [0.25],
};
const BOTH = { plain: FIGURES, coalesced: HALF };

describe('the regions of the documents', async () => {
  const documents = await readDocuments();
  const regions = await allRegions();
  const filled = fillRegions(documents, regions);

  it.each(Object.keys(regions))('%s is in one document, as the results say (npm run bench:report)', (name) => {
    const holding = [...documents].filter(([, text]) => text.includes(`<!-- ${name}:begin -->`));
    expect(holding).toHaveLength(1);
    const [[file, text]] = holding as [[string, string]];
    expect(regionIn(text, name)).toBe(regionIn(filled.get(file)!, name));
  });

  it.each([...chartsOf(published).keys()])('%s is there, and a document shows it', (file) => {
    expect(existsSync(new URL(file, root))).toBe(true);
    expect([...documents.values()].join()).toContain(`](../${file})`);
  });
});

function regionIn(text: string, name: string): string {
  return text.slice(text.indexOf(`<!-- ${name}:begin -->`), text.indexOf(`<!-- ${name}:end -->`));
}

describe('the headline tables', () => {
  const six = (values: Figures): Figures =>
    Object.fromEntries(Object.entries(values).map(([metric, [value = 0]]) => [metric, Array(6).fill(value)]));
  const single = (coalesced: Figures) =>
    group('production', [
      result('single', { 'loopback: 10 % load': { plain: six(FIGURES), coalesced: six(coalesced) } }),
    ]);
  const row = '| one command a request, 10 % load, loopback | ioredis-coalesce ÷ ioredis |';

  it('put a row where its intervals say', () => {
    const gains = regionsOf([single(HALF)]);
    expect(gains['bench-gains']).toContain(
      `${row} 0.5× (0.5–0.5) | 0.2× (0.2–0.2) | 0.5× (0.5–0.5) | 0.5× (0.5–0.5) |`,
    );
    expect(gains['bench-costs']).toBe('None.');
    expect(regionsOf([single({ ...HALF, p99: [2100] })])['bench-costs']).toContain(row);
  });

  it('say that there is no clear difference where the interval includes 1', () => {
    const same = { ...FIGURES, cpu: [5, 7, 5, 7, 5, 7] };
    const table = regionsOf([
      group('production', [
        result('single', { 'loopback: 10 % load': { plain: six(FIGURES), coalesced: { cpu: same.cpu } } }),
      ]),
    ])['bench-same'];
    expect(table).toMatch(/\| no clear difference \(0\.\d+–1\.\d+\) \|/);
  });

  it('say of two runs which of their intervals meet', () => {
    expect(regionsOf([single(HALF)])['bench-agreement']).toBe('Not measured yet.');
    const text = regionsOf([single(HALF)], undefined, [single({ ...HALF, p99: [2100] })])['bench-agreement'];
    expect(text).toContain('3 of 4 intervals meet.');
    expect(text).toContain(`${row} p99 latency | 1.05 (1.05–1.05) | 0.5 (0.5–0.5) | **differ** |`);
  });

  it.each(HEADLINES)('$title, $of, is measured: $benchmark, $id', ({ benchmark, id, of, versus }) => {
    const found = BENCHMARKS.find((one) => one.id === benchmark);
    const wanted = found?.cases.find((one) => one.id === id);
    expect(wanted?.variants ?? found?.variants).toEqual(expect.arrayContaining([of, versus]));
  });
});

describe('a target', () => {
  const timeout = (ratio: number) =>
    result('burst', {
      'a case': {
        coalesced: { throughput: [100, 300, 200] },
        'coalesced-timeout': { throughput: [100 * ratio, 300 * ratio, 200 * ratio] },
      },
    });

  it.each([
    [0.99, true],
    [0.9, false],
  ])('is compared with the ratio of the rounds: %s', (ratio, met) => {
    const [found] = evaluate([timeout(ratio)]);
    expect(found).toMatchObject({ metric: 'throughput', met });
    expect(found?.measured.value).toBeCloseTo(ratio);
  });

  it('is missed only where the whole interval misses it', () => {
    const coalesced = { throughput: [100, 100, 100, 100, 100, 100] };
    const of = (throughput: number[]) =>
      evaluate([result('burst', { a: { coalesced, 'coalesced-timeout': { throughput } } })])[0]?.met;
    expect(of([80, 95, 80, 95, 80, 95])).toBe(true);
    expect(of([86, 88, 86, 88, 86, 88])).toBe(false);
  });

  it('of many cases is met where all of them meet it', () => {
    const six = (cpu: number) => ({ cpu: Array(6).fill(cpu) });
    const cases = { a: { plain: six(2), coalesced: six(1) }, b: { plain: six(1), coalesced: six(2) } };
    const found = evaluate([result('grid', cases)]);
    expect(found).toMatchObject([{ met: false, work: 'Bursts by size and value: every cell (1 of 2; worst: b)' }]);
  });

  it('is the only one for its measure of its case', () => {
    const measures = evaluate(published.flatMap(({ benchmarks }) => benchmarks)).map(
      (one) => `${one.work}: ${measureOf(one)}`,
    );
    expect(measures).toEqual([...new Set(measures)]);
  });
});

describe('a file of results', () => {
  const one = group('core', [result('burst', { '200 GETs': BOTH })], ['a note']);

  it('is read as it was written', () => {
    expect(parseGroup(serialize(one), 'core.json')).toEqual(one);
  });

  it('has a line for each variant, with four significant digits', () => {
    const text = serialize(group('core', [result('burst', { '200 GETs': { plain: { cpu: [1.23456, 2] } } })]));
    expect(text).toContain('\n     "plain":{"cpu":[1.235,2]}\n');
  });

  it('has the ratios to the first variant, with their intervals', () => {
    const [plain, coalesced] = [{ cpu: [2, 2, 2] }, { cpu: [1, 1, 1] }];
    const text = serialize(group('core', [result('burst', { '200 GETs': { plain, coalesced } })]));
    expect(text).toContain('"÷ plain":{"coalesced":{"cpu":[0.5,0.5,0.5]}}');
  });

  it('without results is refused, with what it should hold', () => {
    expect(() => parseGroup('{"rows": []}', 'other.json')).toThrow(
      'other.json should be the JSON of a group of benchmarks',
    );
  });

  it.each(published.map((found) => [found.group, found] as const))('%s: all variants have equal rounds', (_, found) => {
    for (const { cases, id } of found.benchmarks) {
      for (const { id: of, variants } of cases) {
        const rounds = variants.map(({ figures }) => (figures.throughput ?? figures.cpu ?? figures.memory)!.length);
        expect(new Set(rounds).size, `${id}, ${of}`).toBe(1);
      }
    }
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

describe('the gains of packages', () => {
  const gainsOf = (id: string) => [
    result('packages', { [id]: { plain: { throughput: [100] }, coalesced: { throughput: [150] } } }),
  ];

  it('fill the column "gain" of a table, for what was measured', () => {
    const table = '| package | gain | test |\n| --- | --- | --- |\n| `bullmq` |  | a |\n| `other` | old | b |';
    expect(packagesRegion(table, gainsOf('bullmq add, 10'))).toBe(
      '| package | gain | test |\n| --- | --- | --- |\n| `bullmq` | add, 10: 1.5× | a |\n| `other` | not measured | b |',
    );
  });

  it('have that of the cork beside them, once it was measured', () => {
    const [{ seconds, cases }] = gainsOf('bullmq add, 10') as [BenchmarkResult];
    const cork = { variant: 'cork', figures: { throughput: [120] } };
    const both = [
      { id: 'packages', seconds, cases: cases.map((one) => ({ ...one, variants: [...one.variants, cork] })) },
    ];
    expect(packagesRegion('| package | gain |\n| --- | --- |\n| `bullmq` |  |', both)).toContain(
      'add, 10: 1.5× (1.2×)',
    );
  });

  it("are only in a package's first row", () => {
    const table = '| package | gain |\n| --- | --- |\n| `bullmq` |  |\n| `bullmq` |  |';
    expect(packagesRegion(table, gainsOf('bullmq add, 10'))).toMatch(/\| add, 10: 1\.5× \|\n.*\| as above \|$/);
  });

  it('name a package that was measured and has no row, once', () => {
    const table = '| package | gain |\n| --- | --- |\n| `other` | not measured |';
    const filled = `${table}\n\nMeasured, without a test here: \`@fastify/session\`, 30: 1.5×.`;
    expect(packagesRegion(table, gainsOf('@fastify/session, 30'))).toBe(filled);
    expect(packagesRegion(filled, gainsOf('@fastify/session, 30'))).toBe(filled);
  });
});
