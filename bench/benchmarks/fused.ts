/** What `fuseReads` takes off Redis, against the same client without it. */

import { at, type Benchmark, benchmark, burst } from './benchmark.js';

const BURSTS = [8, 50, 200].map((size) => burst(`bursts of ${size}`, size));

export const FUSED: readonly Benchmark[] = [
  benchmark(
    'fused',
    'Fused reads: bursts of GETs of 100 bytes',
    ['coalesced', 'coalesced-fused'],
    [...BURSTS.map((one) => at('loopback', one)), ...BURSTS.map((one) => at('0.2 ms', one))],
    { smokeCases: 2 },
  ),
];
