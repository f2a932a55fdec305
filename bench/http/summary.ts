import { type FastifyRow, ROUTES, type RouteId, type Variant } from './types.js';

export const METRICS = [
  'requestsPerSecond',
  'p50Ms',
  'p99Ms',
  'serviceCpuUsPerRequest',
  'redisCpuUsPerRequest',
  'writesPerRequest',
] as const;

export type Metric = (typeof METRICS)[number];
export type Figures = Record<Metric, number>;

export interface RouteSummary {
  route: RouteId;
  title: string;
  /** Medians over the rounds. */
  plain: Figures;
  coalesced: Figures;
  /** Coalesced divided by plain, round by round, then the median; NaN where plain has nothing to divide by. */
  ratios: Figures;
}

export function summarize(rows: readonly FastifyRow[]): RouteSummary[] {
  return ROUTES.map(({ id, title }) => {
    const figures = (variant: Variant): Figures =>
      eachMetric((metric) => median(samples(rows, id, variant).map((row) => row[metric])));
    const plain = figures('plain');
    const coalesced = figures('coalesced');
    return { route: id, title, plain, coalesced, ratios: eachMetric((metric) => ratio(rows, metric, id)) };
  });
}

/** A route's figure with one client divided by another's, round by round, then the median. */
export function ratio(
  rows: readonly FastifyRow[],
  metric: Metric,
  route: RouteId,
  versus: { route: RouteId; variant: Variant } = { route, variant: 'plain' },
): number {
  const below = samples(rows, versus.route, versus.variant);
  const ratios = samples(rows, route, 'coalesced').map((row) => {
    const other = below.find(({ round }) => round === row.round)?.[metric];
    return other ? row[metric] / other : Number.NaN;
  });
  return median(ratios);
}

function samples(rows: readonly FastifyRow[], route: RouteId, variant: Variant): FastifyRow[] {
  return rows.filter((row) => row.route === route && row.variant === variant);
}

function eachMetric(of: (metric: Metric) => number): Figures {
  return Object.fromEntries(METRICS.map((metric) => [metric, of(metric)])) as Figures;
}

function median(values: readonly number[]): number {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
  const middle = sorted.length / 2;
  if (sorted.length % 2 === 1) {
    return sorted[Math.floor(middle)]!;
  }
  return sorted.length === 0 ? Number.NaN : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
