/** What `fuseReads` takes off Redis, against the same client without it. */

import { CONNECTIONS } from '../http/example.js';
import { SMALL } from '../variants/data.js';
import { at, type Benchmark, benchmark, burst } from './benchmark.js';

const BURSTS = [8, 50, 200].map((size) => burst(`bursts of ${size}`, size));

/** The demo runs it, too. */
export const FUSED_SERVICE = benchmark(
  'fused-service',
  `Fused reads: a service of 8 GETs, ${CONNECTIONS} connections`,
  ['plain', 'coalesced', 'coalesced-fused'],
  [
    {
      id: '8 GETs',
      workload: { kind: 'service', operation: 'get', data: SMALL, commands: 8, connections: CONNECTIONS },
    },
  ],
  { warmUpSeconds: 1 },
);

export const FUSED: readonly Benchmark[] = [
  benchmark(
    'fused',
    'Fused reads: bursts of GETs of 100 bytes',
    ['coalesced', 'coalesced-fused'],
    [...BURSTS.map((one) => at('loopback', one)), ...BURSTS.map((one) => at('0.2 ms', one))],
    { smokeCases: 2 },
  ),
  FUSED_SERVICE,
];
