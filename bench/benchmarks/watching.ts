/** What being watched costs. */

import { type Benchmark, brief, burst, FEW, full } from './benchmark.js';

/** Each watched variant, what it is called, and the plain one that is watched alike. */
export const WATCHED = {
  coalesced: { text: 'coalesced, not watched', plain: 'plain' },
  'coalesced-batch-channel': { text: 'subscriber of `ioredis-coalesce:batch`', plain: 'plain' },
  'coalesced-prometheus': { text: 'Prometheus, scraped every 100 ms', plain: 'plain' },
  'coalesced-command-channel': { text: 'subscriber of `ioredis:command`', plain: 'plain-command-channel' },
  'coalesced-otel': { text: 'OpenTelemetry, one span per command', plain: 'plain-otel' },
  plain: { text: 'plain ioredis, not watched', plain: 'plain' },
  'plain-command-channel': { text: 'plain ioredis, subscriber of `ioredis:command`', plain: 'plain-command-channel' },
  'plain-otel': { text: 'plain ioredis, OpenTelemetry, one span per command', plain: 'plain-otel' },
} as const;

export const WATCHING: readonly Benchmark[] = [
  full('watching', 'Being watched: bursts of 200 GETs', Object.keys(WATCHED) as (keyof typeof WATCHED)[], [
    burst('200 GETs', 200),
  ]),
  brief(
    'watching-calls',
    'Being asked: one call at a time',
    ['coalesced-prometheus'],
    [burst('`coalescer.stats()`', 1, 'stats', FEW), burst('a scrape of one client by Prometheus', 1, 'scrape', FEW)],
  ),
];
