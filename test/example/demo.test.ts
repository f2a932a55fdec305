import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { renderChart } from '../../bench/http/chart.js';
import { summarize } from '../../bench/http/summary.js';
import { type FastifyRow, ROUTES, VARIANTS } from '../../bench/http/types.js';
import { startServer } from '../helpers/redis.js';
import { ExampleService } from './service.js';

const TIMEOUT = 60_000;

function rows(): FastifyRow[] {
  return ROUTES.flatMap(({ id: route }) =>
    VARIANTS.map((variant) => ({
      route,
      variant,
      round: 1,
      requestsPerSecond: variant === 'plain' ? 1000 : 3000,
      p50Ms: 1,
      p99Ms: 2,
      serviceCpuUsPerRequest: 80,
      redisCpuUsPerRequest: 10,
      writesPerRequest: 8,
    })),
  );
}

describe('the chart', () => {
  const svg = renderChart(summarize(rows()), 'settings with <, > & "');

  it('is well-formed', () => {
    const tag = /<(?:[\w:-]+(?:\s+[\w:-]+="[^"<]*")*\s*\/?|\/[\w:-]+)>/g;
    expect(svg).toMatch(/^<svg /);
    expect(svg.replace(/<style\s*>[\s\S]*?<\/style>/g, '').replace(tag, '')).not.toContain('<');
  });

  it('names the routes, the clients and the settings', () => {
    // Words may stand on lines of their own.
    const text = svg.replace(/<[^>]+>/g, ' ').replace(/\s+/g, ' ');
    for (const words of ['Requests per second', 'sequential', 'Promise.all', 'plain', 'coalesced', 'settings with']) {
      expect(text).toContain(words);
    }
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
