/** One write per turn and the busy poll, against the same without the poll and against a bare socket. */

import type { EnvironmentKind } from '../suite/environment.js';
import type { VariantId } from '../variants/clients.js';
import { at, type Benchmark, benchmark, burst, type Case, loops } from './benchmark.js';

export const NEAR = 'loopback';

const WITHOUT_PLAIN: readonly VariantId[] = ['coalesced', 'coalesced-no-poll', 'reference'];
const ALL: readonly VariantId[] = ['plain', 'cork', ...WITHOUT_PLAIN];
/**
 * The simplest adaptive batching, that of valkey-glide (write what has come, collect while that write is under way,
 * write again when its callback comes), is `schedule: 'tick'` here: a socket takes a write at once, so nothing is ever
 * collected.
 */
const WITH_TICK: readonly VariantId[] = [...ALL, 'coalesced-tick'];
const PAIR: readonly VariantId[] = ['coalesced', 'coalesced-no-poll'];

export const burstCase = (size: number) => `bursts of ${size}`;
export const loopsCase = (count: number) => `${count} ${count === 1 ? 'loop' : 'loops'}`;

/** Not every size everywhere: the whole has to stay within some minutes. */
function cells(
  place: EnvironmentKind,
  bursts: readonly number[],
  loopCounts: readonly number[],
  variants = WITHOUT_PLAIN,
) {
  const cases: Case[] = [
    ...bursts.map((size) => burst(burstCase(size), size)),
    ...loopCounts.map((count) => loops(loopsCase(count), count)),
  ];
  return cases.map((one) => ({ ...at(place, one), variants }));
}

export const SCHEDULE: readonly Benchmark[] = [
  benchmark(
    'schedule',
    'When turns are sent',
    WITH_TICK,
    [
      ...cells(NEAR, [5, 20, 50], [], ALL),
      ...cells(NEAR, [200], [50], WITH_TICK),
      ...cells(NEAR, [], [1, 10], ALL),
      ...cells(NEAR, [1000], [200, 400], ['plain', ...WITHOUT_PLAIN]),
      ...cells('0.2 ms', [5, 200], [], ALL),
      ...cells('0.2 ms', [20, 50, 1000], [10, 200, 400]),
      ...cells('0.5 ms', [20, 200], [50]),
      ...cells('1 ms', [50], [], ALL),
      ...cells('1 ms', [5, 1000], [10, 200]),
      ...cells('TLS', [5, 50, 200], [], ALL),
      ...cells('TLS', [], [200]),
      ...cells('TLS, 0.2 ms', [5, 200], [50]),
      ...cells('TLS, 1 ms', [5, 1000], [50]),
      ...cells('one core', [5, 50, 200], [50], PAIR),
      ...cells('busy', [5, 50, 200], [50], PAIR),
    ],
    { smokeCases: 6 },
  ),
];
