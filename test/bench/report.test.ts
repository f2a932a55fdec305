import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { packagesRegion } from '../../bench/report/gains.js';
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
  return { id, rounds: 5, seconds: 1, cases: found };
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
const RATES = result('rates', {
  'loopback: 1 HGET, 30 %': BOTH,
  'loopback: 5 HGETs, 30 %': BOTH,
  '0.5 ms: 5 HGETs, 30 %': BOTH,
});

describe('the regions of the documents', async () => {
  const documents = await readDocuments();
  const regions = await allRegions();
  const filled = fillRegions(documents, regions);

  it.each(Object.keys(regions))('%s stands in one document, as the results say (npm run bench:report)', (name) => {
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

describe('a variant that was measured in some cases', () => {
  const schedule = (more: object) =>
    group('schedule', [result('schedule', { '0.2 ms: bursts of 5': { ...BOTH, ...more }, 'TLS: bursts of 5': BOTH })]);

  it('has a row for each of them', () => {
    const region = regionsOf([schedule({ cork: HALF })])['bench-cork'] as string;
    expect(region).toContain('| 0.2 ms: bursts of 5 | 2× | 0.5× | 0.2× |');
    expect(region).not.toContain('TLS');
  });

  it('has no table, and is in the head of none, where there is no result yet', () => {
    const cluster = result('cluster', { '200 GETs': { cluster: FIGURES, 'cluster-coalesced': HALF } });
    expect(regionsOf([schedule({}), group('core', [cluster])])['bench-cork']).toBe(
      '**Cluster of 3 masters: bursts of 200 GETs over all slots**\n\n' +
        '| ioredis Cluster → ioredis-coalesce Cluster | throughput, /s | client CPU, µs |\n| --- | --- | --- |\n' +
        '| 200 GETs | 100,000→200,000 | 6→3 |',
    );
    expect(regionsOf([schedule({})])['bench-cork']).toBe('Not measured yet.');
  });
});

it('the rounds of most figures stand once, others beside their table', () => {
  const regions = regionsOf([
    group('core', [RATES, result('burst', { a: BOTH }), { ...result('peers', { a: BOTH }), rounds: 3 }]),
  ]);
  expect(regions['bench-run']).toContain('- Rounds, unless a table says otherwise: 5 × 1 s.');
  expect([regions['bench-rates'], regions['bench-core']].join()).not.toContain('1 s)');
  expect(regions['bench-peers']).toContain('** (3 × 1 s)\n');
});

describe('a target', () => {
  const timeout = (ratio: number) =>
    result('burst', {
      'a case': {
        coalesced: { throughput: [100, 300] },
        'coalesced-timeout': { throughput: [100 * ratio, 300 * ratio] },
      },
    });

  it.each([
    [0.99, true],
    [0.9, false],
  ])('is compared with the ratio of the rounds: %s', (ratio, met) => {
    const [found] = evaluate([timeout(ratio)]);
    expect(found).toMatchObject({ metric: 'throughput', met });
    expect(found?.measured.median).toBeCloseTo(ratio);
  });

  it('of many cases is met where all of them meet it', () => {
    const [found] = evaluate([result('grid', { a: BOTH, b: { plain: HALF, coalesced: FIGURES } })]);
    expect(found).toMatchObject({ met: false, work: 'Bursts by size and value: every cell (1 of 2; worst: b)' });
  });

  it('that is met is told once: not where a table shows it, or in the table', () => {
    const served = { HGETs: { plain: FIGURES, coalesced: { ...HALF, throughput: [900_000], serverCpu: [0.1] } } };
    const both = [result('fastify-sequential', served), result('fastify-parallel', served)];
    const told = regionsOf([group('core', both)])['bench-targets'] as string;
    expect(told).toContain(
      '**Fastify, 8 HGETs per request, one after the other, 30 connections**: throughput 9× ioredis',
    );
    expect(told).not.toContain('**Fastify, 8 HGETs per request, 30 connections**');
  });

  it('is the only one for its measure of its case', () => {
    const measures = evaluate(published.flatMap(({ benchmarks }) => benchmarks)).map(
      (one) => `${one.work}: ${measureOf(one)}`,
    );
    expect(measures).toEqual([...new Set(measures)]);
  });
});

describe('a file of results', () => {
  const one = group('rates', [RATES], ['a note']);

  it('is read as it was written', () => {
    expect(parseGroup(serialize(one), 'rates.json')).toEqual(one);
  });

  it('has a line for each variant, with four significant digits', () => {
    const text = serialize(group('core', [result('burst', { '200 GETs': { plain: { cpu: [1.23456, 2] } } })]));
    expect(text).toContain('\n     "plain":{"cpu":[1.235,2]}\n');
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
    const [{ rounds, seconds, cases }] = gainsOf('bullmq add, 10') as [BenchmarkResult];
    const cork = { variant: 'cork', figures: { throughput: [120] } };
    const both = [
      { id: 'packages', rounds, seconds, cases: cases.map((one) => ({ ...one, variants: [...one.variants, cork] })) },
    ];
    expect(packagesRegion('| package | gain |\n| --- | --- |\n| `bullmq` |  |', both)).toContain(
      'add, 10: 1.5× (1.2×)',
    );
  });

  it("stand in a package's first row alone", () => {
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
