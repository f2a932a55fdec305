/** What being watched costs. */

import { FEW } from '../variants/data.js';
import { type Benchmark, benchmark, burst } from './benchmark.js';

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
    'watching-calls',
    'Being asked: one call at a time',
    ['coalesced-prometheus'],
    [burst('`coalescer.stats()`', 1, 'stats', FEW), burst('a scrape of one client by Prometheus', 1, 'scrape', FEW)],
  ),
];
