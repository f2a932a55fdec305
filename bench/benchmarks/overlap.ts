/** Bursts of 50 where client and server do not have the machine, or the connection, to themselves. */

import type { EnvironmentKind } from '../suite/environment.js';
import type { ClientBenchmark } from './benchmark.js';
import { burst } from './workloads.js';

const PLACES: readonly { id: string; title: string; environment?: EnvironmentKind; smokeCases?: number }[] = [
  { id: 'two-cores', title: 'two cores', smokeCases: 0 },
  { id: 'one-core', title: 'one core for client and server', environment: 'one-core' },
  { id: 'busy', title: 'a process that spins beside them', environment: 'busy', smokeCases: 0 },
  { id: 'delay-200us', title: 'a round trip of 0.2 ms', environment: 'delay 0.2 ms' },
  { id: 'delay-1ms', title: 'a round trip of 1 ms', environment: 'delay 1 ms', smokeCases: 0 },
  { id: 'unix-socket', title: 'over a unix socket', environment: 'unix-socket' },
];

export const OVERLAP: readonly ClientBenchmark[] = PLACES.map(({ id, title, ...place }) => ({
  kind: 'client',
  id: `overlap-${id}`,
  title: `Bursts of 50 GETs: ${title}`,
  brief: true,
  ...place,
  variants: ['plain', 'coalesced', 'coalesced-immediate', 'reference'],
  cases: [burst('50 GETs', 50)],
}));
