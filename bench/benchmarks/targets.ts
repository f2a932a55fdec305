/** What the project asks of itself, in one table. One is missed where the whole interval of a ratio misses it. */

import type { Metric } from '../variants/protocol.js';

export interface Target {
  readonly benchmark: string;
  /** The ids of the cases that it is for. @default all */
  readonly only?: RegExp;
  readonly metric: Metric;
  readonly of: string;
  /** The variant to divide by; where there is none, the number itself counts. */
  readonly versus: string | undefined;
  readonly op: '<=' | '>=';
  readonly target: number;
  /** Of all cases together; shown with the worst of them. */
  readonly worst?: string;
}

type More = Pick<Target, 'only' | 'worst'>;
type Arguments = [
  benchmark: string,
  metric: Metric,
  of: string,
  versus: string | undefined,
  target: number,
  more?: More,
];

function atLeast(...[benchmark, metric, of, versus, target, more]: Arguments): Target {
  return { benchmark, metric, of, versus, op: '>=', target, ...more };
}

function atMost(...args: Arguments): Target {
  return { ...atLeast(...args), op: '<=' };
}

const AWAY = { only: /^(0\.|1 ms|TLS)/, worst: 'far or over TLS' };
const SHARED = { only: /^(one core|busy)/, worst: 'one core, or busy ones' };
const only = (id: string) => ({ only: new RegExp(`^${id}$`) });
const near = (id: string) => only(`loopback: ${id}`);
const everywhere = (worst: string) => ({ worst });

export const TARGETS: readonly Target[] = [
  // One write per turn, and the busy poll.
  atLeast('schedule', 'throughput', 'coalesced', 'coalesced-no-poll', 0.97, AWAY),
  atMost('schedule', 'cpu', 'coalesced', 'coalesced-no-poll', 1.06, AWAY),
  atLeast('schedule', 'throughput', 'coalesced', 'reference', 0.93, AWAY),
  atMost('schedule', 'cpu', 'coalesced', 'reference', 1.4, AWAY),
  atLeast('schedule', 'throughput', 'coalesced', 'plain', 6, near('bursts of 200')),
  atLeast('schedule', 'throughput', 'coalesced', 'plain', 3.8, near('50 loops')),
  atMost('schedule', 'cpu', 'coalesced', 'plain', 1 / 4, near('50 loops')),
  atLeast('schedule', 'throughput', 'coalesced', 'plain', 0.98, near('1 loop')),
  atLeast('schedule', 'throughput', 'coalesced', 'coalesced-no-poll', 0.95, SHARED),

  // The cork.
  atLeast('schedule', 'throughput', 'cork', 'plain', 0.97, near('1 loop')),
  atLeast('schedule', 'throughput', 'cork', 'plain', 1, near('bursts of 5')),
  atLeast('schedule', 'throughput', 'cork', 'plain', 1.1, near('bursts of 20')),
  atLeast('schedule', 'throughput', 'cork', 'plain', 1.7, near('bursts of 200')),
  atMost('schedule', 'cpu', 'cork', 'plain', 0.55, near('bursts of 200')),
  atLeast('schedule', 'throughput', 'cork', 'plain', 0.85, near('10 loops')),
  atLeast('schedule', 'throughput', 'cork', 'plain', 1.3, near('50 loops')),
  atLeast('schedule', 'throughput', 'cork', 'plain', 0.97, only('0.2 ms: bursts of 5')),
  atMost('schedule', 'cpu', 'cork', 'plain', 1.08, only('0.2 ms: bursts of 5')),
  atLeast('schedule', 'throughput', 'cork', 'plain', 1.1, only('0.2 ms: bursts of 200')),
  atMost('schedule', 'cpu', 'cork', 'plain', 0.6, only('0.2 ms: bursts of 200')),
  atLeast('schedule', 'throughput', 'cork', 'plain', 1, only('TLS: bursts of 50')),
  atMost('schedule', 'serverCpu', 'cork', 'plain', 0.85, only('TLS: bursts of 50')),
  atLeast('packages', 'throughput', 'cork', 'plain', 1, { only: /^bullmq worker/, worst: "BullMQ's worker" }),

  // Never slower than plain, whatever is sent.
  atLeast('grid', 'throughput', 'coalesced', 'plain', 0.97, everywhere('every cell')),
  atMost('grid', 'p50', 'coalesced', 'plain', 1.05, everywhere('every cell')),
  atMost('grid', 'cpu', 'coalesced', 'plain', 1.03, everywhere('every cell')),

  // Services as production runs them.
  atMost('production', 'cpu', 'coalesced', 'reference', 1.04, everywhere('every place and rate')),
  atMost('production', 'cpu', 'coalesced', 'plain', 0.7, { only: /^loopback/, worst: 'loopback' }),
  atMost('production', 'cpu', 'coalesced', 'plain', 0.83, { only: /^TLS, 0\.5 ms/, worst: 'TLS, 0.5 ms' }),
  atMost('production', 'serverCpu', 'coalesced', 'plain', 0.68, { only: /^loopback/, worst: 'loopback' }),
  atMost('production', 'serverCpu', 'coalesced', 'plain', 0.86, { only: /^TLS, 0\.5 ms/, worst: 'TLS, 0.5 ms' }),
  atMost('production', 'p50', 'coalesced', 'plain', 1, everywhere('every place and rate')),
  atMost('production', 'p99', 'coalesced', 'plain', 1, everywhere('every place and rate')),
  atMost('production', 'cpu', 'cork', 'plain', 0.85, { only: /^(loopback|0\.5 ms)/, worst: 'TCP' }),
  atMost('production', 'cpu', 'cork', 'plain', 1.02, { only: /^TLS/, worst: 'TLS' }),
  atMost('production-traced', 'cpu', 'coalesced-otel', 'plain-otel', 0.9, everywhere('every place')),
  atMost('single', 'cpu', 'coalesced', 'plain', 1.03, everywhere('every place')),
  atMost('single', 'p99', 'coalesced', 'plain', 1.05, everywhere('every place')),
  atMost('idle', 'cpu', 'coalesced', 'plain', 1.05, everywhere('idle and nearly idle')),

  // Bursts over TLS.
  atLeast('schedule', 'throughput', 'coalesced', 'reference', 1.2, {
    only: /^TLS: bursts of (5|50)$/,
    worst: 'TLS, 5 and 50',
  }),
  atLeast('schedule', 'throughput', 'coalesced', 'reference', 0.97, only('TLS: bursts of 200')),
  atMost('schedule', 'cpu', 'coalesced', 'reference', 1.1, only('TLS: bursts of 5')),
  atMost('schedule', 'cpu', 'coalesced', 'reference', 1.15, only('TLS: bursts of 50')),
  atMost('schedule', 'cpu', 'coalesced', 'reference', 1.2, only('TLS: bursts of 200')),
  atMost('schedule', 'cpu', 'cork', 'plain', 1.02, { only: /^TLS: bursts/, worst: 'TLS' }),

  // Single commands.
  atMost('burst', 'cpu', 'coalesced', 'plain', 1 / 7),
  atMost('burst', 'cpu', 'coalesced', 'auto', 1 / 4.5),
  atMost('burst', 'cpu', 'coalesced', 'node-redis-no-timeout', 1 / 1.6),
  atLeast('burst', 'throughput', 'coalesced', 'plain', 6),
  atLeast('burst', 'throughput', 'coalesced', 'auto', 3.3),
  atLeast('burst', 'throughput', 'coalesced', 'node-redis-no-timeout', 1.75),
  atLeast('burst', 'throughput', 'coalesced', 'reference', 0.9),
  atLeast('burst', 'throughput', 'coalesced-timeout', 'coalesced', 0.92),
  atMost('memory', 'memory', 'coalesced', 'plain', 1 / 2, everywhere('single and in a pipeline')),
  atLeast('cluster', 'throughput', 'cluster-coalesced', 'cluster', 5),
  atLeast('cluster', 'throughput', 'cluster-coalesced', 'cluster-auto', 2.5),

  // Everything else that is sent.
  atLeast('fast-path', 'throughput', 'coalesced', 'plain', 3.5, {
    only: /^200 × (SET|call)/,
    worst: 'SET … EX and call()',
  }),
  atLeast('fast-path', 'throughput', 'coalesced', 'plain', 2.5, {
    only: /^200 scripts|^pipeline|^multi/,
    worst: 'scripts, pipelines, transactions',
  }),
  atLeast('fast-path', 'throughput', 'coalesced', 'plain', 2, { only: / of 100$/, worst: 'replies of 100 elements' }),
  atMost('fast-path', 'cpu', 'coalesced', 'plain', 1 / 2, everywhere('all of these')),

  // A service at its limit.
  atLeast('fastify-parallel', 'throughput', 'coalesced', 'plain', 2.7),
  atLeast('fastify-parallel', 'throughput', 'coalesced', 'pipeline', 2),
  atLeast('fastify-parallel', 'throughput', 'coalesced-pipeline', 'pipeline', 2),
  atLeast('fastify-parallel', 'throughput', 'coalesced', 'no-redis', 0.55),
  atLeast('fastify-parallel', 'throughput', 'coalesced-cache', 'no-redis', 0.9),
  atMost('fastify-parallel', 'serverCpu', 'coalesced', 'plain', 0.15),
  atMost('fastify-parallel', 'serverCpu', 'coalesced-cache', 'plain', 0.01),
  atLeast('fastify-sequential', 'throughput', 'coalesced', 'plain', 1.8),

  // Packages on top.
  atLeast('packages', 'throughput', 'coalesced', 'plain', 0.98, everywhere('every package')),
  atLeast('packages', 'throughput', 'coalesced', 'plain', 1, { only: /^bullmq worker, 50/ }),
  atLeast('packages', 'throughput', 'coalesced', 'plain', 1.6, { only: /^rate-limiter-flexible/ }),

  // Reads that leave as one MGET.
  atLeast('fused-service', 'throughput', 'coalesced-fused', 'coalesced', 0.98),
  atMost('fused-service', 'cpu', 'coalesced-fused', 'coalesced', 1.03),
  atMost('fused-service', 'serverCpu', 'coalesced-fused', 'coalesced', 0.75),

  // The read that is never sent.
  atMost('cache-hits', 'cpu', 'coalesced-cache', undefined, 0.5),
  atLeast('cache-hits', 'throughput', 'coalesced-cache', undefined, 2_000_000),
  atLeast('cache-hits', 'throughput', 'coalesced-cache', 'node-redis-cache', 5),
  atMost('cache-misses', 'cpu', 'coalesced-small-cache', 'coalesced', 1.25),
  atMost('cache-misses', 'serverCpu', 'coalesced-small-cache', 'coalesced', 1.25),
  atMost('cache-hot-key', 'serverCpu', 'coalesced-cache', 'plain', 0.01),
  atLeast('cache-pipelines', 'throughput', 'coalesced-cache', 'coalesced', 0.95),
  atMost('cache-writes', 'cpu', 'coalesced-cache', 'coalesced', 1.3),
];
