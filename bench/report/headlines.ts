/** The three tables of docs/benchmarks.md: where it gains, where not, and where it costs. The results say which. */

import { markdownTable } from '../../tools/documents.js';
import { LOW_LOAD, PRODUCTION_PLACES, shareCase } from '../benchmarks/production.js';
import { burstCase } from '../benchmarks/schedule.js';
import { type Comparison, compare } from '../suite/evaluate.js';
import { type BenchmarkResult, caseOf } from '../suite/results.js';
import { type Estimate, isClear } from '../suite/stats.js';
import { METRICS } from '../variants/protocol.js';
import { labelOf } from './drawing.js';
import { times } from './tables.js';

interface Headline {
  readonly title: string;
  readonly benchmark: string;
  readonly id: string;
  readonly of: string;
  readonly versus: string;
}

export const SHOWN = ['cpu', 'serverCpu', 'p50', 'p99'] as const;
const NONE = 'None.';

function headline(title: string, benchmark: string, id: string, of = 'coalesced', versus = 'plain'): Headline {
  return { title, benchmark, id, of, versus };
}

const places = (title: string, benchmark: string, share: number, of?: string, versus?: string) =>
  PRODUCTION_PLACES.map((place) =>
    headline(`${title}, ${place}`, benchmark, `${place}: ${shareCase(share)}`, of, versus),
  );

export const HEADLINES: readonly Headline[] = [
  ...places('seven commands a request, 60 % load', 'production', 60),
  ...places('the same', 'production', 60, 'cork'),
  ...places('the same, 30 % load, OpenTelemetry', 'production-traced', 30, 'coalesced-otel', 'plain-otel'),
  ...places('one command a request, 10 % load', 'single', LOW_LOAD),
  headline('no requests', 'idle', 'idle'),
  headline('a burst of 200, loopback', 'schedule', `loopback: ${burstCase(200)}`),
  headline('a burst of 5, TLS', 'schedule', `TLS: ${burstCase(5)}`),
  headline('a burst of 5, TLS', 'schedule', `TLS: ${burstCase(5)}`, 'cork'),
  headline('six reads, one after the other, 1 ms', 'prefetch', '1 ms: flow: user, 5', 'coalesced-prefetch'),
  headline('reads that nothing follows, 1 ms', 'prefetch', '1 ms: flow: none, 30', 'coalesced-prefetch', 'coalesced'),
  headline("BullMQ's worker, one job at a time", 'packages', 'bullmq worker, 1'),
];

type Kind = 'gains' | 'same' | 'costs';

/** What costs something goes to the costs, whatever else it gains. */
export function kindOf(found: readonly Estimate[]): Kind {
  const clear = found.filter(isClear);
  if (clear.some(({ low }) => low > 1)) return 'costs';
  return clear.length > 0 ? 'gains' : 'same';
}

export function headlineRegions(all: readonly BenchmarkResult[]): Readonly<Record<`bench-${Kind}`, string>> {
  const rows: Record<Kind, string[][]> = { gains: [], same: [], costs: [] };
  for (const { title, benchmark, id, of, versus } of HEADLINES) {
    const found = SHOWN.map((metric) => {
      const comparison: Comparison = { metric, of, versus };
      return compare(comparison, caseOf(all, benchmark, id));
    });
    const measured = found.filter((one) => one !== undefined);
    if (measured.length === 0) continue;
    rows[kindOf(measured)].push([title, `${labelOf(of)} ÷ ${labelOf(versus)}`, ...found.map(times)]);
  }
  const head = ['', '', ...SHOWN.map((metric) => METRICS[metric].title)];
  const table = (kind: Kind) => (rows[kind].length === 0 ? NONE : markdownTable(head, rows[kind]));
  return { 'bench-gains': table('gains'), 'bench-same': table('same'), 'bench-costs': table('costs') };
}
