/** Reads that follow each other, asked for together: flows of a request that awaits one read after the other. */

import type { FlowName } from '../packages/index.js';
import { NOTHING } from '../variants/data.js';
import { at, type Benchmark, benchmark, type Case } from './benchmark.js';

const flow = (name: FlowName, concurrency: number): Case => {
  return { id: `${name}, ${concurrency}`, workload: { kind: 'package', name, concurrency, data: NOTHING } };
};
const cases = [flow('flow: user', 30), flow('flow: list', 30), flow('flow: none', 30)];
/** Those of the prefetch, and the cork where README shows it. */
const CLIENTS = ['plain', 'coalesced', 'coalesced-cache', 'coalesced-prefetch'] as const;
const few: Case[] = [{ ...flow('flow: user', 5), variants: ['cork', ...CLIENTS] }, flow('flow: list', 5)];

/** What the demo shows of it. */
export const CASCADE = benchmark(
  'cascade',
  'One request, read after read, 1 ms away',
  ['plain', 'coalesced', 'coalesced-prefetch'],
  [at('1 ms', flow('flow: user', 5))],
  { warmUpSeconds: 2 },
);

export const PREFETCH: readonly Benchmark[] = [
  benchmark(
    'prefetch',
    'Requests that await one read after the other',
    CLIENTS,
    [...cases, ...[...few, ...cases].map((each) => at('1 ms', each))],
    // Until it has learned what follows, and the code is compiled.
    { warmUpSeconds: 2, smokeCases: cases.length },
  ),
];
