import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { FUSED_SERVICE } from '../../bench/benchmarks/fused.js';
import { CASCADE } from '../../bench/benchmarks/prefetch.js';
import { renderChart } from '../../bench/http/demo-chart.js';
import {
  DEMO_CLIENTS,
  type RouteResult,
  renderFused,
  renderTable,
  renderVerdict,
  summarize,
} from '../../bench/http/demo-summary.js';
import { ROUTE_IDS } from '../../bench/http/example.js';
import { startServer } from '../helpers/redis.js';
import { ExampleService } from './service.js';

const TIMEOUT = 60_000;

const results = (): RouteResult[] =>
  ROUTE_IDS.flatMap((route) =>
    DEMO_CLIENTS.map((client) => ({
      route,
      client,
      figures: {
        throughput: [client === 'plain' ? 1000 : 3000],
        cpu: [80],
        serverCpu: [10],
        p50: [1000],
        p99: [2000],
        writes: [8],
      },
    })),
  );

describe('the chart', () => {
  const svg = renderChart(summarize(results()), 'settings with <, > & "');

  it('is well-formed', () => {
    const tag = /<(?:[\w:-]+(?:\s+[\w:-]+="[^"<]*")*\s*\/?|\/[\w:-]+)>/g;
    expect(svg).toMatch(/^<svg /);
    expect(svg.replace(/<style\s*>[\s\S]*?<\/style>/g, '').replace(tag, '')).not.toContain('<');
  });

  it('names the routes, the clients and the settings', () => {
    // Words may stand on lines of their own.
    const text = svg.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
    for (const words of [
      'Requests per second',
      'sequential',
      'Promise.all',
      ' ioredis ',
      ' ioredis-coalesce, the cork ',
      ' ioredis-coalesce ',
      ' ioredis-coalesce, cached ',
      'settings with',
    ]) {
      expect(text).toContain(words);
    }
  });
});

describe('the figures', () => {
  /** In the round-by-round ratios another client would win: 3000 / 1000 and 4000 / 8000 have the median 1.75. */
  const uneven = results().map((result) =>
    result.route !== 'parallel' || result.client === 'cached'
      ? result
      : {
          ...result,
          figures: {
            ...result.figures,
            throughput: { plain: [1000, 3152.6, 8000], corked: [3000], coalesced: [8152, 3000, 9000] }[result.client],
            p50: [result.client === 'plain' ? 7900 : 2104],
            serverCpu: [result.client === 'plain' ? 100 : 27.3],
          },
        },
  );

  it('begin with what the demo shows, in three lines', () => {
    const variants = [7460, 7440, 2560].map((p50, index) => ({
      variant: CASCADE.variants[index]!,
      figures: { p50: [p50] },
    }));
    expect(CASCADE.variants).toEqual(['plain', 'coalesced', 'coalesced-prefetch']);
    const lines = renderVerdict(summarize(uneven), { id: 'flow: user, 5', variants }).split('\n');
    expect(lines.slice(0, 3)).toEqual([
      '8 reads at once: 3,153 requests/s with ioredis, 3,000 with the cork, 8,152 coalesced ' +
        '(p50 7.90 → 2.10 → 2.10 ms; Redis CPU −73 %, −73 %).',
      '8 reads one by one: 1,000 requests/s with ioredis, 3,000 with the cork, 3,000 coalesced ' +
        '(p50 1.00 → 1.00 → 1.00 ms; Redis CPU +0 %, +0 %).',
      'One request of 6 reads, each awaited before the next, Redis 1 ms away: 7.46 ms with ioredis, 7.44 coalesced, ' +
        '2.56 with prefetch.',
    ]);
    // On a Redis of the user's, the third is not measured.
    expect(renderVerdict(summarize(uneven)).split('\n')).toEqual(lines.toSpliced(2, 1));
  });

  it('have the ratios of what is shown beside them', () => {
    const [, parallel = ''] = renderTable(summarize(uneven))
      .split(/\n[├╟+]/)
      .slice(1);
    expect(parallel.replaceAll(/\s+/g, ' ')).toMatch(/3,153 .* 8,152 .* 2\.59× /);
  });

  it('have a row and a line for the cached client', () => {
    expect(renderTable(summarize(results())).match(/cached/g)).toHaveLength(ROUTE_IDS.length - 1);
    expect(renderVerdict(summarize(results()))).toContain('with the cache: 3,000 requests/s');
  });

  it('have a line for fused reads, if it is requested', () => {
    const variants = [1000, 3000, 3100].map((perSecond, index) => {
      return { variant: FUSED_SERVICE.variants[index]!, figures: { throughput: [perSecond], serverCpu: [8 - index] } };
    });
    expect(renderFused({ id: '8 GETs', variants })).toBe(
      '8 GETs at once:  1,000 → 3,000 → 3,100 requests/s, Redis CPU 8.00 → 7.00 → 6.00 µs (plain, coalesced, with `fuseReads`)',
    );
    expect(FUSED_SERVICE.variants).toEqual(['plain', 'coalesced', 'coalesced-fused']);
  });
});

describe('npm run demo -- --page --url', () => {
  let demo: ExampleService | undefined;

  afterEach(() => demo?.destroy());

  it('shows the page on the user’s own Redis, warns, and leaves nothing behind', { timeout: TIMEOUT }, async () => {
    const server = await startServer();
    const redis = new Redis(server.url);
    try {
      await redis.set('the user’s own', 'untouched');
      demo = new ExampleService({
        command: [process.execPath, '--import', 'tsx', '../../bench/http/demo.ts', '--page', '--url', server.url],
        announces: /live page: (http:\S+)\//,
      });
      const origin = await demo.listening();
      expect(demo.output).toContain('The keys begin with "coalesce-demo:"');
      expect(await (await fetch(origin)).text()).toContain('<title>ioredis-coalesce');
      await fetch(`${origin}/sessions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ customer: 'Ada' }),
      });
      expect(await redis.dbsize()).toBeGreaterThan(4000);

      expect(await demo.stop('SIGINT')).toBe(0);
      expect(await redis.keys('*')).toEqual(['the user’s own']);
    } finally {
      redis.disconnect();
      await server.stop();
    }
  });
});
