/** The same work by every client; no targets of their own. */

import { type Benchmark, benchmark, burst } from './benchmark.js';

export const PEERS: readonly Benchmark[] = [
  benchmark(
    'peers',
    'Every client: bursts of 200 GETs, 100 B',
    [
      ...(['plain', 'plain5', 'auto', 'auto5', 'iovalkey', 'node-redis', 'node-redis-no-timeout', 'glide'] as const),
      ...(['pipeline', 'mget', 'coalesced'] as const),
    ],
    [burst('200 GETs', 200)],
  ),
];
