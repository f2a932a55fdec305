/** The client-side cache: reads that are never sent, and what keeping them right costs. */

import type { ClientBenchmark } from './benchmark.js';
import { burst, SMALL } from './workloads.js';

/** More than the caches hold, read in turn: none is ever found. */
const MANY = { keys: 12_000, valueBytes: 100 };
const HOT = { keys: 1, valueBytes: 100 };

export const CACHE: readonly ClientBenchmark[] = [
  {
    kind: 'client',
    id: 'cache-hits',
    smokeCases: 0,
    title: 'Cached reads, in bursts of 200',
    brief: true,
    variants: ['coalesced', 'node-redis-cache', 'coalesced-cache'],
    cases: [burst('hits', 200)],
  },
  {
    kind: 'client',
    id: 'cache-misses',
    smokeCases: 0,
    title: 'Reads that are never found in the cache, in bursts of 200',
    brief: true,
    variants: ['coalesced', 'node-redis-cache', 'coalesced-cache'],
    cases: [burst('misses', 200, 'get', MANY)],
  },
  {
    kind: 'client',
    id: 'cache-hot-key',
    title: 'A hot key: 200 loops, one write per second by another client',
    brief: true,
    variants: ['plain', 'coalesced', 'node-redis-cache', 'coalesced-cache'],
    cases: [{ id: 'one key', workload: { kind: 'loops', loops: 200, data: HOT, writes: 1 } }],
  },
  {
    kind: 'client',
    id: 'cache-writes',
    title: 'Bursts of 200 GETs while another client writes 10,000 of the keys per second',
    brief: true,
    variants: ['coalesced', 'node-redis-cache', 'coalesced-cache'],
    cases: [
      { id: '10,000 writes/s', workload: { kind: 'burst', operation: 'get', size: 200, data: SMALL, writes: 10_000 } },
    ],
  },
  {
    kind: 'client',
    id: 'cache-memory',
    title: 'Memory per cached value of 100 B, with its key',
    brief: true,
    variants: ['node-redis-cache', 'coalesced-cache'],
    cases: [
      {
        id: '3,000 values',
        // Others in each of three rounds, and no more than the caches hold.
        workload: { kind: 'memory', commands: 3000, of: 'cached values', data: { keys: 9000, valueBytes: 100 } },
      },
    ],
  },
];
