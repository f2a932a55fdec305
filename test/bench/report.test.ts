import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { gridCase } from '../../bench/benchmarks/grid.js';
import { burstCase } from '../../bench/benchmarks/schedule.js';
import { stylesOf } from '../../bench/report/drawing.js';
import { gainsRegion, packagesRegion } from '../../bench/report/gains.js';
import { CELL_INKS, contrast } from '../../bench/report/heat-map.js';
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

function group(name: string, benchmarks: readonly BenchmarkResult[], notes: readonly string[] = []): GroupResult {
  return { group: name, settings: SETTINGS, notes, benchmarks };
}

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
const NETWORK = result('network', { 'loopback: 50 GETs': BOTH, '0.2 ms: 50 GETs': BOTH, 'TLS, 1 ms: 50 GETs': BOTH });

describe('the regions of the documents', async () => {
  const documents = await readDocuments();
  const regions = await allRegions();
  const filled = fillRegions(documents, regions);

  it.each(Object.keys(regions))(
    '%s stands in one document, as the results say ("npm run bench:report" writes it)',
    (name) => {
      const holding = [...documents].filter(([, text]) => text.includes(`<!-- ${name}:begin -->`));
      expect(holding).toHaveLength(1);
      const [[file, text]] = holding as [[string, string]];
      expect(regionIn(text, name)).toBe(regionIn(filled.get(file)!, name));
    },
  );

  it.each([...chartsOf(published).keys()])('%s is there, and a document shows it', (file) => {
    expect(existsSync(new URL(file, root))).toBe(true);
    expect([...documents.values()].join()).toContain(`](../${file})`);
  });
});

function regionIn(text: string, name: string): string {
  return text.slice(text.indexOf(`<!-- ${name}:begin -->`), text.indexOf(`<!-- ${name}:end -->`));
}

describe("README's table", () => {
  const OTEL = result('watching', { '200 GETs': { 'plain-otel': FIGURES, 'coalesced-otel': HALF } });

  it('has three rows, the last with OpenTelemetry, and two figures in a cell', () => {
    const groups = [group('rates', [RATES]), group('network', [NETWORK]), group('watching', [OTEL])];
    expect(gainsRegion(groups, 'old').split('\n')).toEqual([
      '| ioredis → ioredis-coalesce | CPU of Node | CPU of Redis | latency, p50 |',
      '| --- | --- | --- | --- |',
      '| a request of 5 reads, Redis 0.5 ms away | 6 → 3 µs | 5 → 1 µs | 0.5 → 0.25 ms |',
      '| a `get` of 50 at once, Redis 0.2 ms away | 6 → 3 µs | 5 → 1 µs | 0.5 → 0.25 ms |',
      '| a `get` of 200 at once, with OpenTelemetry | 6 → 3 µs | 5 → 1 µs | 0.5 → 0.25 ms |',
      '',
      expect.stringMatching(
        /^Medians, .* 2 cores of A CPU, .*Node 24\.1\.0, Redis 8\.2\.3, .*; revision f00, 2026-11-26\.$/,
      ),
    ]);
  });

  it('stays what it was where a row was not measured', () => {
    expect(gainsRegion([group('rates', [RATES])], 'the old table')).toBe('the old table');
  });
});

describe('docs/benchmarks.md', () => {
  const regions = regionsOf(
    [group('rates', [RATES]), group('network', [NETWORK], ['a note'])],
    new Map([['node20-system', [group('network', [NETWORK])]]]),
  );

  it('says of each run what it was of, where and when, and what disturbed it', () => {
    expect(regions['bench-run']).toBe(
      '- [rates](../bench/results/rates.json), [network](../bench/results/network.json): 2 cores of A CPU, 4 GiB, Linux 6, ' +
        'Node 24.1.0, Redis 8.2.3, ioredis 6.0.0; revision f00, 2026-11-26\n- network: a note',
    );
  });

  it('says which targets are met, with the worst case where there are many', () => {
    expect(regions['bench-targets']).toContain('5 of 5 targets met.\n');
    expect(regions['bench-targets']).toContain('client CPU 0.5× plain for every rate (≤ 1.03×)');
  });

  it('shows each rate from plain to coalesced', () => {
    expect(regions['bench-rates']).toContain('| loopback: 5 HGETs, 30 % | 100,000 | 6→3 | 5→1 | 0.50→0.25 | 500→250 |');
  });

  it('has a paragraph for each other setup: the targets it has, and the headline rows', () => {
    expect(regions['bench-setups']).toMatch(
      /^\*\*Node 24\.1\.0, Redis 8\.2\.3\*\* \(revision f00, 2026-11-26; network\):\n/,
    );
    expect(regions['bench-setups']).toContain('| 0.2 ms: 50 GETs | 100,000→200,000 | 6→3 | 5→1 |');
    const { 'bench-setups': ofRates } = regionsOf([], new Map([['other', [group('rates', [RATES])]]]));
    expect(ofRates).toBe('**Node 24.1.0, Redis 8.2.3** (revision f00, 2026-11-26; rates): 5 of 5 targets met.');
  });

  it('says of a table what it rests on where that is not five rounds of a second', () => {
    const paced = (seconds: number) => regionsOf([group('network', [{ ...NETWORK, seconds }])])['bench-network'];
    expect(paced(0.6)).toContain('**Bursts of 50 GETs, by round trip** (5 × 0.6 s)\n');
    expect(paced(1)).toContain('**Bursts of 50 GETs, by round trip**\n');
  });

  it('says so where nothing was measured', () => {
    expect(regions['bench-schedule']).toBe('Not measured yet.');
  });
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
    expect(found).toMatchObject({ met: false, work: 'Bursts by size and value: every cell (1 of 2; the worst: b)' });
  });

  it('is the only one for its measure of its case', () => {
    const measures = evaluate(published.flatMap(({ benchmarks }) => benchmarks)).map(
      (one) => `${one.work}: ${measureOf(one)}`,
    );
    expect(measures).toEqual([...new Set(measures)]);
  });
});

describe('a chart', () => {
  const cell = result('grid', {
    [gridCase('GET', '16 KiB', 20)]: {
      plain: { throughput: [1000], p50: [100], cpu: [1] },
      coalesced: { throughput: [1230], p50: [97], cpu: [0.7] },
    },
  });
  const places = result('schedule', {
    [`loopback: ${burstCase(50)}`]: { plain: FIGURES, coalesced: HALF, 'coalesced-no-poll': HALF, reference: HALF },
  });
  const charts = chartsOf([group('grid', [cell]), group('schedule', [places])]);
  const textOf = (svg: string) => [...svg.matchAll(/<text [^>]*>([^<]*)</g)].map(([, text]) => text!);

  it('is drawn the same from the same figures, however often', () => {
    expect(chartsOf([group('grid', [cell]), group('schedule', [places])])).toEqual(charts);
  });

  it('shows the ratio of each cell of the grid, of throughput, latency and CPU', () => {
    const texts = textOf(charts.get('bench/results/grid.svg')!);
    expect(texts).toEqual(expect.arrayContaining(['1.23', '0.97', '0.7']));
  });

  it('has figures that can be read on each cell', () => {
    const svg = charts.get('bench/results/grid.svg')!;
    const cells = [...svg.matchAll(/<path d="[^"]*Z" fill="(rgb\([\d,]+\))"/g)].map(([, fill = '']) => fill);
    const inks = [...svg.matchAll(/<text [^>]*fill="(#000000|#fefefe)"/g)].map(([, ink = '']) => ink);
    expect(inks).toHaveLength(3);
    for (const [index, ink] of inks.entries()) expect(contrast(cells[index]!, ink)).toBeGreaterThan(4.5);
  });

  it.each([...charts.keys()])('%s can be read in the dark, and says which direction is better', (file) => {
    const svg = charts.get(file)!;
    const [, rules = ''] = /@media \(prefers-color-scheme:dark\)\{(.*?)\}<\/style>/.exec(svg) ?? [];
    const colours = [...svg.matchAll(/ (fill|stroke)="(#\w+)"/g)].map(([, what, colour]) => `[${what}="${colour}"]`);
    // Black is what ECharts gives to areas that are not painted.
    const same = ['#000', ...(file.endsWith('grid.svg') ? CELL_INKS : [])];
    const painted = colours.filter((one) => !same.some((colour) => one.includes(colour)));
    expect(painted).not.toEqual([]);
    for (const colour of new Set(painted)) expect(rules).toContain(colour);
    expect(textOf(svg).join()).toMatch(/(more|less) is better/);
  });

  it('has a style of its own for each client', () => {
    const styles = stylesOf(['coalesced', 'coalesced-no-poll', 'reference']);
    expect(new Set(styles.map(({ colour, dash, symbol }) => `${colour} ${dash} ${symbol}`)).size).toBe(3);
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

  it.each(published.map((found) => [found.group, found] as const))(
    '%s has the same rounds for all variants',
    (_, found) => {
      for (const { cases, id } of found.benchmarks) {
        for (const { id: of, variants } of cases) {
          const rounds = variants.map(({ figures }) => (figures.throughput ?? figures.cpu ?? figures.memory)!.length);
          expect(new Set(rounds).size, `${id}, ${of}`).toBe(1);
        }
      }
    },
  );
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

  it('name a package that was measured and has no row, once', () => {
    const table = '| package | gain |\n| --- | --- |\n| `other` | not measured |';
    const filled = `${table}\n\nMeasured, without a test here: \`@fastify/session\`, 30: 1.5×.`;
    expect(packagesRegion(table, gainsOf('@fastify/session, 30'))).toBe(filled);
    expect(packagesRegion(filled, gainsOf('@fastify/session, 30'))).toBe(filled);
  });
});
