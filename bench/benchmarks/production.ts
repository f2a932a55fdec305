/** Services as production runs them: below what they could do, at a distance, over TLS, under a tracer. */

import { FEW, NOTHING } from '../variants/data.js';
import type { ServiceWorkload } from '../variants/protocol.js';
import { at, type Benchmark, benchmark, type Case } from './benchmark.js';

export const PRODUCTION_PLACES = ['loopback', '0.5 ms', 'TLS', 'TLS, 0.5 ms'] as const;
export const PRODUCTION_SHARES = [30, 60] as const;

/** Seven commands in three round trips. */
export const shareCase = (share: number) => `${share} % load`;
export const LOW_LOAD = 10;

function service(id: string, load: Pick<ServiceWorkload, 'rate' | 'share'>, commands = 7): Case {
  const what =
    commands === 7 ? ({ operation: 'request', data: NOTHING } as const) : ({ operation: 'hget', data: FEW } as const);
  return { id, workload: { kind: 'service', commands, ...what, ...load } };
}

function cases(shares: readonly number[], commands = 7): Case[] {
  return PRODUCTION_PLACES.flatMap((place) =>
    shares.map((share) => at(place, service(shareCase(share), { share: share / 100 }, commands))),
  );
}

/** Fastify takes a second until the compiler has seen enough of it. */
const PACE = { warmUpSeconds: 1.5, seconds: 2, metrics: ['cpu', 'serverCpu', 'p99'], smokeCases: 1 } as const;

export const PRODUCTION: readonly Benchmark[] = [
  benchmark(
    'production',
    'A Fastify service: requests of seven commands in three round trips',
    ['plain', 'auto', 'cork', 'coalesced', 'coalesced-prefetch', 'node-redis-no-timeout', 'reference'],
    cases(PRODUCTION_SHARES),
    PACE,
  ),
];

export const TRACED: readonly Benchmark[] = [
  benchmark(
    'production-traced',
    'The same under OpenTelemetry',
    ['plain-otel', 'auto-otel', 'cork-otel', 'coalesced-otel'],
    cases([30]),
    PACE,
  ),
];

export const LOW_LOAD_COSTS: readonly Benchmark[] = [
  benchmark(
    'single',
    'A Fastify service: one HGET a request',
    ['plain', 'cork', 'coalesced'],
    cases([LOW_LOAD], 1),
    PACE,
  ),
  benchmark(
    'idle',
    'A service without requests (CPU per second), and with ten per second',
    ['plain', 'coalesced'],
    [service('idle', { rate: 0 }, 5), service('10 requests/s', { rate: 10 }, 5)],
    { warmUpSeconds: 1, seconds: 2, most: 6, smokeCases: 1 },
  ),
];
