/**
 * Bursts where client and server do not have the machine, or the connection, to themselves: of 50, which may leave in
 * parts, and of 5, for whose replies the loop may poll.
 */

import type { EnvironmentKind } from '../suite/environment.js';
import { type Benchmark, burst, full } from './benchmark.js';

const VARIANTS = ['plain', 'coalesced', 'coalesced-immediate', 'reference'] as const;

const CASES = [burst('50 GETs', 50), burst('5 GETs', 5)] as const;

export const OVERLAP: readonly Benchmark[] = [
  place('two-cores', 'two cores', { smokeCases: 0 }),
  place('one-core', 'one core for client and server', { environment: 'one-core' }),
  place('busy', 'a process that spins beside them', { environment: 'busy', smokeCases: 0 }),
  place('delay-200us', 'a round trip of 0.2 ms', { environment: 'delay 0.2 ms' }),
  place('delay-1ms', 'a round trip of 1 ms', { environment: 'delay 1 ms', smokeCases: 0 }),
  place('unix-socket', 'over a unix socket', { environment: 'unix-socket' }),
];

function place(id: string, title: string, more: { environment?: EnvironmentKind; smokeCases?: number }) {
  return full(`overlap-${id}`, `Bursts of GETs: ${title}`, VARIANTS, CASES, more);
}
