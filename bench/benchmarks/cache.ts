/** The client-side cache: reads that are never sent, and what keeping them right costs. */

import { FEW, SMALL } from '../variants/data.js';
import { type Benchmark, benchmark, burst, loops } from './benchmark.js';

const CACHES = ['node-redis-cache', 'coalesced-cache'] as const;
/** More than the caches hold. */
const MANY = { keys: 12_000, valueBytes: 100 };
const HOT = { keys: 1, valueBytes: 100 };
/** Others in each of the rounds, and no more than the caches hold. */
const OTHERS_EACH_ROUND = { keys: 9000, valueBytes: 100 };

export const CACHE: readonly Benchmark[] = [
  benchmark('cache-hits', 'Cached reads, in bursts of 200', ['coalesced', ...CACHES], [burst('hits', 200)]),
  benchmark(
    'cache-misses',
    'Reads that are never found: 12,000 keys in turn, with a cache of 100, in bursts of 200',
    ['coalesced', 'coalesced-small-cache'],
    [burst('misses', 200, 'get', MANY)],
  ),
  benchmark(
    'cache-hot-key',
    'A hot key: 200 loops, one write per second by another client',
    ['plain', 'coalesced', ...CACHES],
    [{ id: 'one key', workload: { kind: 'loops', loops: 200, data: HOT, writes: 1 } }],
  ),
  benchmark(
    'cache-writes',
    'Bursts of 200 GETs while another client writes 10,000 of the keys per second',
    ['coalesced', ...CACHES],
    [{ id: '10,000 writes/s', workload: { kind: 'burst', operation: 'get', size: 200, data: SMALL, writes: 10_000 } }],
  ),
  benchmark(
    'cache-pipelines',
    'Pipelines of 8 HGETs by 30 loops, on a client with a cache that they do not use',
    ['coalesced', 'coalesced-cache'],
    [loops('8 HGETs', 30, 'pipeline-8', FEW)],
  ),
  benchmark('cache-memory', 'Memory per cached value of 100 B, with its key', CACHES, [
    {
      id: '1,500 values',
      workload: { kind: 'memory', commands: 1500, of: 'cached values', data: OTHERS_EACH_ROUND },
    },
  ]),
];
