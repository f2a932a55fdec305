import Table from 'cli-table3';
import { type Figures, METRICS, type Metric, type RouteSummary, ratio } from './summary.js';
import type { FastifyRow } from './types.js';

const HEADINGS: Record<Metric, string> = {
  requestsPerSecond: 'requests\n/s',
  p50Ms: 'p50\nms',
  p99Ms: 'p99\nms',
  serviceCpuUsPerRequest: 'service\nCPU µs*',
  redisCpuUsPerRequest: 'Redis\nCPU µs*',
  writesPerRequest: 'socket\nwrites*',
};

export function renderTable(summary: readonly RouteSummary[], colours: boolean): string {
  const table = new Table({
    head: ['route', 'client', ...METRICS.map((metric) => HEADINGS[metric])],
    colAligns: ['left', 'left', ...METRICS.map(() => 'right' as const)],
    style: colours ? { head: ['cyan'] } : { head: [], border: [] },
  });
  for (const { route, title, plain, coalesced, ratios } of summary) {
    const usesRedis = route !== 'no-redis';
    const lines = [
      ['plain', ...cells(plain, usesRedis)],
      ['coalesced', ...cells(coalesced, usesRedis)],
      ['ratio', ...METRICS.map((metric) => ratioCell(ratios[metric], usesRedis || !isOfRedis(metric)))],
    ];
    // One row of three lines: a rule between routes only.
    const columns = lines[0]?.map((_, column) => lines.map((line) => line[column]).join('\n')) ?? [];
    table.push([title, ...columns]);
  }
  return table.toString();
}

function cells(figures: Figures, usesRedis: boolean): string[] {
  return METRICS.map((metric) => {
    const value = figures[metric];
    if (isOfRedis(metric) && !usesRedis) {
      return '-';
    }
    return metric === 'requestsPerSecond' ? Math.round(value).toLocaleString('en-US') : digits(value);
  });
}

function isOfRedis(metric: Metric): boolean {
  return metric === 'redisCpuUsPerRequest' || metric === 'writesPerRequest';
}

function ratioCell(value: number, meaningful: boolean): string {
  return meaningful && Number.isFinite(value) ? `${digits(value)}×` : '-';
}

function digits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** What was seen, in one sentence. */
export function renderVerdict(rows: readonly FastifyRow[], summary: readonly RouteSummary[]): string {
  const ratiosOf = (route: RouteSummary['route']): Figures => {
    const found = summary.find((one) => one.route === route);
    if (!found) {
      throw new Error(`expected a summary of the route ${route}, got ${summary.map((one) => one.route).join(', ')}`);
    }
    return found.ratios;
  };
  const parallel = ratiosOf('parallel');
  const byHand = ratio(rows, 'requestsPerSecond', 'parallel', { route: 'pipeline', variant: 'plain' });
  const noRedis = ratio(rows, 'requestsPerSecond', 'parallel', { route: 'no-redis', variant: 'plain' });
  return (
    `With the same handlers, the coalesced client served ${digits(parallel.requestsPerSecond)}× the requests of the ` +
    `plain one where they await Promise.all and ${digits(ratiosOf('sequential').requestsPerSecond)}× where they await ` +
    `one by one; its Promise.all served ${digits(byHand)}× a plain client's hand-written pipeline and ` +
    `${digits(noRedis)}× the route without Redis, for ${digits(parallel.redisCpuUsPerRequest)}× the Redis CPU ` +
    `per request.`
  );
}
