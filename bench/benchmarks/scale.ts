/** More connections of one process, and what bursts do to another client of the server. */

import type { VariantId } from '../variants/clients.js';
import { SMALL } from '../variants/data.js';
import { type Benchmark, benchmark, type Case } from './benchmark.js';

function callers(count: number, connections: number, variants: readonly VariantId[] = ['plain', 'coalesced']): Case {
  const id = `${count} callers, ${connections} ${connections === 1 ? 'connection' : 'connections'}`;
  return { id, variants, workload: { kind: 'loops', loops: count, connections, data: SMALL } };
}

export const SCALE: readonly Benchmark[] = [
  benchmark(
    'connections',
    'One process, several connections or nodes',
    ['plain', 'coalesced'],
    [
      ...[callers(100, 1), callers(100, 8), callers(800, 1), callers(800, 8)],
      ...[1, 2, 100].map((nodes) => callers(200, nodes, ['coalesced'])),
    ],
    { smokeCases: 2 },
  ),
  benchmark(
    'bystander',
    'p99 of another client, which asks again a millisecond after each reply, while bursts of 10,000 GETs are sent',
    ['plain', 'coalesced', 'coalesced-1000-in-flight'],
    [{ id: '10,000 GETs', workload: { kind: 'burst', operation: 'get', size: 10_000, data: SMALL, bystander: true } }],
  ),
];
