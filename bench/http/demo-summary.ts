import { terminalTable } from '../report/terminal.js';
import { type CaseResult, valuesOf as samplesOf, type VariantResult } from '../suite/results.js';
import { spread } from '../suite/stats.js';
import type { Metric } from '../variants/protocol.js';
import { type ClientKind, ROUTE_IDS, ROUTES, type RouteId } from './example.js';

/** By what it is called, and which metric it is, with latencies in milliseconds. */
const MEASURES = {
  perSecond: ['requests\n/s', 'throughput', 1],
  p50Ms: ['p50\nms', 'p50', 1000],
  p99Ms: ['p99\nms', 'p99', 1000],
  serviceCpuUs: ['service\nCPU µs*', 'cpu', 1],
  redisCpuUs: ['Redis\nCPU µs*', 'serverCpu', 1],
  writes: ['socket\nwrites*', 'writes', 1],
} as const;
export type Measure = keyof typeof MEASURES;
const MEASURE_IDS = Object.keys(MEASURES) as Measure[];

export type Figures = Readonly<Record<Measure, number>>;

/** The clients of the demo; `cached` is coalesced, with the client-side cache. */
export const DEMO_CLIENTS = ['plain', 'coalesced', 'cached'] as const satisfies readonly ClientKind[];
export type DemoClient = (typeof DEMO_CLIENTS)[number];

/** One route with one client; figures are per request, CPU is that of the service and of Redis. */
export interface RouteResult extends Pick<VariantResult, 'figures'> {
  readonly route: RouteId;
  readonly client: ClientKind;
}

/** Medians over the rounds, of each client. */
export interface RouteSummary extends Readonly<Record<DemoClient, Figures>> {
  readonly route: RouteId;
  readonly title: string;
}

type Results = readonly RouteResult[];

export function summarize(results: Results): RouteSummary[] {
  return ROUTE_IDS.map((route) => ({ route, title: ROUTES[route], ...mediansOf(results, route) }));
}

function mediansOf(results: Results, route: RouteId): Record<DemoClient, Figures> {
  const of = (client: DemoClient) => eachMeasure((measure) => median(valuesOf(results, route, client, measure)));
  return { plain: of('plain'), coalesced: of('coalesced'), cached: of('cached') };
}

export function renderTable(summary: readonly RouteSummary[]): string {
  const rows = summary.map(({ route, title, plain, coalesced, cached }) => {
    const columns = MEASURE_IDS.map((measure) => {
      if (route === 'no-redis' && ['redisCpuUs', 'writes'].includes(measure)) return ['-', '-', '-', '-'].join('\n');
      const [first, second, last] = [plain, coalesced, cached].map((figures) => digits(figures[measure], measure));
      return [first, second, ratio(first!, second!), last].join('\n');
    });
    // One row of four lines: a rule between routes only.
    return [title, 'plain\ncoalesced\nratio\ncached', ...columns];
  });
  return terminalTable({ head: ['route', 'client', ...Object.values(MEASURES).map(([head]) => head)], rows }, false);
}

/** What was seen, as figures of the table; the first line is for those who read only one. */
export function renderVerdict(summary: readonly RouteSummary[]): string {
  const of = (route: RouteId) => summary.find((one) => one.route === route) as RouteSummary;
  const both = (route: RouteId, measure: Measure, client: DemoClient = 'coalesced') =>
    [of(route).plain, of(route)[client]].map((figures) => digits(figures[measure], measure)) as [string, string];
  const line = (route: RouteId, client?: DemoClient) =>
    `${both(route, 'perSecond', client).join(' → ')} requests/s, p50 ${both(route, 'p50Ms', client).join(' → ')} ms, ` +
    `Redis CPU ${change(...both(route, 'redisCpuUs', client))}`;
  return [
    `8 reads at once: ${line('parallel')}`,
    `one by one:      ${line('sequential')}`,
    `with its cache:  ${line('parallel', 'cached')} (8 reads at once)`,
  ].join('\n');
}

/** What `fuseReads` adds to coalescing, in a service of 8 GETs per request: a line as those of the verdict. */
export function renderFused({ variants }: CaseResult): string {
  const all = (metric: Metric, measure?: Measure) =>
    variants.map((variant) => digits(median(samplesOf(variant, metric)), measure)).join(' → ');
  const clients = 'plain, coalesced, with `fuseReads`';
  return `8 GETs at once:  ${all('throughput', 'perSecond')} requests/s, Redis CPU ${all('serverCpu')} µs (${clients})`;
}

/** Of two figures as they are shown, so that a reader who divides them agrees. */
function ratio(plain: string, other: string): string {
  const divided = numberIn(other) / numberIn(plain);
  return Number.isFinite(divided) ? `${digits(divided)}×` : '-';
}

/** `−73 %`. */
function change(plain: string, other: string): string {
  const percent = Math.round(100 * (numberIn(other) / numberIn(plain) - 1));
  if (!Number.isFinite(percent)) return '-';
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent)} %`;
}

function numberIn(shown: string): number {
  return Number(shown.replaceAll(',', ''));
}

function valuesOf(results: Results, route: RouteId, client: ClientKind, measure: Measure): number[] {
  const found = results.find((result) => result.route === route && result.client === client);
  if (found === undefined) return [];
  const [, metric, divisor] = MEASURES[measure];
  return samplesOf(found, metric).map((value) => value / divisor);
}

function eachMeasure(of: (measure: Measure) => number): Figures {
  return Object.fromEntries(MEASURE_IDS.map((measure) => [measure, of(measure)])) as Figures;
}

function median(values: readonly number[]): number {
  return spread(values)?.median ?? Number.NaN;
}

function digits(value: number, measure?: Measure): string {
  if (measure === 'perSecond') return Math.round(value).toLocaleString('en-US');
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
