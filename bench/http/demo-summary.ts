import { terminalTable } from '../report/terminal.js';
import { type CaseResult, valuesOf as samplesOf, type VariantResult } from '../suite/results.js';
import { median as medianOf } from '../suite/stats.js';
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

/** The clients of the demo; `cached` is coalesced, with the client-side cache. Without Redis they are all the same. */
export const DEMO_CLIENTS = ['plain', 'corked', 'coalesced', 'cached'] as const satisfies readonly ClientKind[];
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
  return { plain: of('plain'), corked: of('corked'), coalesced: of('coalesced'), cached: of('cached') };
}

export function renderTable(summary: readonly RouteSummary[]): string {
  const rows = summary.map(({ route, title, ...clients }) => {
    const without = route === 'no-redis';
    const shown = without ? (['plain'] as const) : DEMO_CLIENTS;
    const columns = MEASURE_IDS.map((measure) => {
      if (without && ['redisCpuUs', 'writes'].includes(measure)) return '-';
      const figures = shown.map((client) => digits(clients[client][measure], measure));
      return without ? figures[0]! : [...figures, ratio(figures[0]!, figures[2]!)].join('\n');
    });
    // One row of five lines: a rule between routes only.
    return [title, without ? 'plain' : 'plain\nthe cork\ncoalesced\ncached\ncoalesced ÷ plain', ...columns];
  });
  return terminalTable({ head: ['route', 'client', ...Object.values(MEASURES).map(([head]) => head)], rows }, false);
}

/** What was seen, in words, with figures of the table; the first three lines are for those who read no more. */
export function renderVerdict(summary: readonly RouteSummary[], cascade?: CaseResult): string {
  const of = (route: RouteId) => summary.find((one) => one.route === route) as RouteSummary;
  const shown = (route: RouteId, measure: Measure, clients: readonly DemoClient[]) =>
    clients.map((client) => digits(of(route)[client][measure], measure));
  const details = (route: RouteId, ...clients: readonly DemoClient[]) => {
    const [plain, ...others] = shown(route, 'redisCpuUs', ['plain', ...clients]);
    const cpu = others.map((one) => change(plain!, one)).join(', ');
    return `(p50 ${shown(route, 'p50Ms', ['plain', ...clients]).join(' → ')} ms; Redis CPU ${cpu})`;
  };
  const line = (what: string, route: RouteId) => {
    const [plain, corked, coalesced] = shown(route, 'perSecond', ['plain', 'corked', 'coalesced']);
    const figures = `${plain} requests/s with ioredis, ${corked} with the cork, ${coalesced} coalesced`;
    return `${what}: ${figures} ${details(route, 'corked', 'coalesced')}.`;
  };
  const [cached] = shown('parallel', 'perSecond', ['cached']);
  return [
    line('8 reads at once', 'parallel'),
    line('8 reads one by one', 'sequential'),
    ...(cascade === undefined ? [] : [renderCascade(cascade)]),
    `8 reads at once, with the cache: ${cached} requests/s ${details('parallel', 'cached')}.`,
  ].join('\n');
}

/** How long one request takes that awaits one read after the other. */
function renderCascade({ variants }: CaseResult): string {
  const [plain, coalesced, prefetch] = variants.map((one) => digits(median(samplesOf(one, 'p50')) / 1000));
  const figures = `${plain} ms with ioredis, ${coalesced} coalesced, ${prefetch} with prefetch`;
  return `One request of 6 reads, each awaited before the next, Redis 1 ms away: ${figures}.`;
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
  return medianOf(values) ?? Number.NaN;
}

function digits(value: number, measure?: Measure): string {
  if (measure === 'perSecond') return Math.round(value).toLocaleString('en-US');
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
