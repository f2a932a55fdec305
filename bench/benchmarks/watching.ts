/** What being watched costs. */

import { FEW } from '../variants/data.js';
import { type Benchmark, benchmark, burst } from './benchmark.js';
import { rateCase } from './rates.js';

export const WATCHING: readonly Benchmark[] = [
  benchmark(
    'watching',
    'Being watched: bursts of 200 GETs',
    [
      ...(['plain', 'plain-otel', 'cork', 'cork-otel', 'coalesced', 'coalesced-batch-channel'] as const),
      ...(['coalesced-prometheus', 'coalesced-otel', 'span-otel'] as const),
    ],
    [burst('200 GETs', 200)],
  ),
  benchmark(
    'watching-service',
    'Being watched: a service of 5 HGETs at a share of what plain manages',
    ['plain', 'plain-otel', 'cork-otel', 'coalesced-otel'],
    ([30, 60] as const).map((share) => ({
      id: rateCase(5, share),
      workload: { kind: 'service', operation: 'hget', data: FEW, commands: 5, share: share / 100 },
    })),
    // A tracer exports its spans every few seconds.
    { warmUpSeconds: 1, seconds: 3, smokeCases: 1 },
  ),
  benchmark(
    'watching-calls',
    'Being asked: one call at a time',
    ['coalesced-prometheus'],
    [burst('`coalescer.stats()`', 1, 'stats', FEW), burst('a scrape of one client by Prometheus', 1, 'scrape', FEW)],
  ),
];
