/** The client-side cache: reads that are never sent, and what keeping them right costs. */

import { type Benchmark, brief, burst, full, SMALL } from './benchmark.js';

const CACHES = ['node-redis-cache', 'coalesced-cache'] as const;
/** More than the caches hold. */
const MANY = { keys: 12_000, valueBytes: 100 };
const HOT = { keys: 1, valueBytes: 100 };
/** Others in each of three rounds, and no more than the caches hold. */
const THREE_ROUNDS = { keys: 9000, valueBytes: 100 };

export const CACHE: readonly Benchmark[] = [
  brief('cache-hits', 'Cached reads, in bursts of 200', ['coalesced', ...CACHES], [burst('hits', 200)], {
    smokeCases: 0,
  }),
  // One write per turn: how often parts are sent would differ with the server's speed, and that is not a miss's cost.
  full(
    'cache-misses',
    'Reads that are never found: 12,000 keys in turn, with caches of 100, in bursts of 200, one write per turn',
    ['coalesced-immediate', 'node-redis-small-cache', 'immediate-small-cache'],
    [burst('misses', 200, 'get', MANY)],
    { smokeCases: 0, ownProcesses: true },
  ),
  brief(
    'cache-full',
    'Reads that do not fit: 12,000 keys in turn, with caches of 10,000, in bursts of 200',
    ['coalesced', ...CACHES],
    [burst('12,000 keys', 200, 'get', MANY)],
    { smokeCases: 0 },
  ),
  brief(
    'cache-hot-key',
    'A hot key: 200 loops, one write per second by another client',
    ['plain', 'coalesced', ...CACHES],
    [{ id: 'one key', workload: { kind: 'loops', loops: 200, data: HOT, writes: 1 } }],
  ),
  brief(
    'cache-writes',
    'Bursts of 200 GETs while another client writes 10,000 of the keys per second',
    ['coalesced', ...CACHES],
    [{ id: '10,000 writes/s', workload: { kind: 'burst', operation: 'get', size: 200, data: SMALL, writes: 10_000 } }],
  ),
  brief('cache-memory', 'Memory per cached value of 100 B, with its key', CACHES, [
    { id: '3,000 values', workload: { kind: 'memory', commands: 3000, of: 'cached values', data: THREE_ROUNDS } },
  ]),
];
