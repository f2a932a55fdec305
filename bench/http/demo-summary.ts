import { terminalTable } from '../report/terminal.js';
import { valuesOf as samplesOf, type VariantResult } from '../suite/results.js';
import { ratios, spread } from '../suite/stats.js';
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
  /** Coalesced divided by plain, round by round, then the median; NaN where plain has nothing to divide by. */
  readonly ratios: Figures;
}

type Results = readonly RouteResult[];

export function summarize(results: Results): RouteSummary[] {
  return ROUTE_IDS.map((route) => ({
    route,
    title: ROUTES[route],
    ...mediansOf(results, route),
    ratios: eachMeasure((measure) => ratioOf(results, measure, route)),
  }));
}

function mediansOf(results: Results, route: RouteId): Record<DemoClient, Figures> {
  const of = (client: DemoClient) => eachMeasure((measure) => median(valuesOf(results, route, client, measure)));
  return { plain: of('plain'), coalesced: of('coalesced'), cached: of('cached') };
}

/** A route's figure with the coalesced client divided by another's. */
function ratioOf(
  results: Results,
  measure: Measure,
  route: RouteId,
  plainRoute = route,
  client: DemoClient = 'coalesced',
): number {
  const [of, versus] = [valuesOf(results, route, client, measure), valuesOf(results, plainRoute, 'plain', measure)];
  return median(ratios(of, versus));
}

export function renderTable(summary: readonly RouteSummary[]): string {
  const rows = summary.map(({ route, title, plain, coalesced, cached, ratios: divided }) => {
    const meaningful = (measure: Measure) => route !== 'no-redis' || !['redisCpuUs', 'writes'].includes(measure);
    const cell = (value: number, measure: Measure) => (meaningful(measure) ? digits(value, measure) : '-');
    const columns = MEASURE_IDS.map((measure) => {
      const ratio = meaningful(measure) && Number.isFinite(divided[measure]) ? `${digits(divided[measure])}×` : '-';
      const [first, second, last] = [plain, coalesced, cached].map((figures) => cell(figures[measure], measure));
      return [first, second, ratio, last].join('\n');
    });
    // One row of four lines: a rule between routes only.
    return [title, 'plain\ncoalesced\nratio\ncached', ...columns];
  });
  return terminalTable({ head: ['route', 'client', ...Object.values(MEASURES).map(([head]) => head)], rows }, false);
}

/** What was seen, in one sentence. */
export function renderVerdict(results: Results): string {
  const times = (route: RouteId, measure: Measure = 'perSecond', plainRoute = route) =>
    `${digits(ratioOf(results, measure, route, plainRoute))}×`;
  return (
    `With the same handlers, the coalesced client served ${times('parallel')} the requests of the plain one where they ` +
    `await Promise.all and ${times('sequential')} where they await one by one; its Promise.all served ` +
    `${times('parallel', 'perSecond', 'pipeline')} a plain client's hand-written pipeline and ` +
    `${times('parallel', 'perSecond', 'no-redis')} the route without Redis, for ` +
    `${times('parallel', 'redisCpuUs')} the Redis CPU per request. With the client-side cache it served ` +
    `${digits(ratioOf(results, 'perSecond', 'parallel', 'parallel', 'cached'))}×, for ` +
    `${digits(ratioOf(results, 'redisCpuUs', 'parallel', 'parallel', 'cached'))}× the Redis CPU.`
  );
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
