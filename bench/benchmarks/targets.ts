/** What the project asks of itself, in one table. Ratios are taken round by round; the median counts. */

import { type Metric, SERVER_LIMIT } from './benchmark.js';

export interface Target {
  readonly benchmark: string;
  /** Cases whose id starts with it. @default all */
  readonly only?: string;
  /** Cases whose id starts with one of these have a target of their own. */
  readonly except?: readonly string[];
  readonly metric: Metric;
  readonly of: string;
  /** The variant to divide by; where there is none, the number itself counts. */
  readonly versus: string | undefined;
  /** The case to divide by, where it is another one. */
  readonly versusCase?: string;
  readonly op: '<=' | '>=';
  readonly target: number | undefined;
  /** What would be better still. */
  readonly further: number | undefined;
  /** Shows one line for all cases: that of the worst. */
  readonly worst?: true;
}

function atLeast(
  benchmark: string,
  metric: Metric,
  of: string,
  versus: string | undefined,
  target: number | undefined,
  further?: number,
  more: Pick<Target, 'only' | 'except' | 'versusCase' | 'worst'> = {},
): Target {
  return { benchmark, metric, of, versus, op: '>=', target, further, ...more };
}

function atMost(...args: Parameters<typeof atLeast>): Target {
  return { ...atLeast(...args), op: '<=' };
}

/** Elements of a command's long reply. */
function elements(command: string, size: string, versusPlain: number, versusNodeRedis: number): Target[] {
  const only = { only: `${command}, ${size} ` };
  return [
    atLeast('elements', 'throughput', 'coalesced', 'plain', versusPlain, undefined, only),
    atLeast('elements', 'throughput', 'coalesced', 'node-redis-no-timeout', versusNodeRedis, undefined, only),
  ];
}

const WORST = { worst: true } as const;

export const TARGETS: readonly Target[] = [
  atMost('burst', 'cpu', 'coalesced', 'plain', 1 / 6),
  atMost('burst', 'cpu', 'coalesced', 'auto', 1 / 5),
  atMost('burst', 'cpu', 'coalesced', 'node-redis-no-timeout', 1 / 1.7),
  atMost('burst', 'cpu', 'coalesced', 'reference', undefined, 1),
  atLeast('burst', 'throughput', 'coalesced', 'plain', 6),
  atLeast('burst', 'throughput', 'coalesced', 'auto', 3.5),
  atLeast('burst', 'throughput', 'coalesced', 'node-redis-no-timeout', 1.9),
  atLeast('burst', 'throughput', 'coalesced', 'reference', 1.05, 1.3),
  atLeast('burst', 'throughput', 'coalesced', SERVER_LIMIT, 0.6, 0.8),
  atLeast('burst', 'throughput', 'coalesced', undefined, undefined, 1_000_000),
  atMost('loops', 'cpu', 'coalesced', 'plain', 1 / 4),
  atLeast('loops', 'throughput', 'coalesced', 'plain', 2.5),
  atLeast('loops', 'throughput', 'coalesced', 'node-redis-no-timeout', 1.3),
  atLeast('loops', 'throughput', 'coalesced', 'reference', 1.2),
  atMost('single', 'p50', 'coalesced', 'plain', 1.03, 0.95),
  atLeast('cork', 'throughput', 'cork', 'plain', 2.2, 2.7),
  atLeast('timeout', 'throughput', 'coalesced-timeout', 'coalesced', 0.95, 0.99),
  atMost('timeout', 'cpu', 'coalesced-timeout', 'coalesced', undefined, 1.02),
  atMost('sizes', 'cpu', 'coalesced', 'reference', 1.15, 1, WORST),
  atMost('memory', 'memory', 'coalesced', 'plain', 1 / 2, 1 / 3),
  atLeast('values', 'throughput', 'coalesced', 'plain', 1, 1.5),
  atLeast('cluster', 'throughput', 'cluster-coalesced', 'cluster', 4, 6),
  atLeast('cluster', 'throughput', 'cluster-coalesced', 'cluster-auto', 2.5),
  atLeast('fastify-parallel', 'throughput', 'coalesced', 'plain', 2.7),
  atLeast('fastify-parallel', 'throughput', 'coalesced', 'pipeline', 2),
  atLeast('fastify-parallel', 'throughput', 'coalesced', 'no-redis', 0.55, 0.75),
  atLeast('fastify-parallel', 'throughput', 'coalesced-cache', 'no-redis', 0.9),
  atMost('fastify-parallel', 'serverCpu', 'coalesced-cache', 'plain', 0.01),
  atMost('fastify-parallel', 'serverCpu', 'coalesced', 'plain', 0.2, 0.1),
  atLeast('fastify-sequential', 'throughput', 'coalesced', 'plain', 1.8, 2.5),
  atMost('fastify-rates', 'p50', 'coalesced', 'plain', 1),
  atMost('fastify-rates', 'p99', 'coalesced', 'plain', 1),

  // Never slower than plain, whatever is sent.
  atLeast('grid', 'throughput', 'coalesced', 'plain', 0.97, 1.05, WORST),
  atMost('grid', 'p50', 'coalesced', 'plain', 1.03, undefined, WORST),
  atLeast('overlap-one-core', 'throughput', 'coalesced', 'coalesced-immediate', 0.97),
  atLeast('overlap-busy', 'throughput', 'coalesced', 'coalesced-immediate', 0.97),
  atLeast('packages', 'throughput', 'coalesced', 'plain', 1, 1.3, { except: ['bullmq', 'rate-limiter-flexible'] }),
  atLeast('packages', 'throughput', 'coalesced', 'plain', 1.15, 1.4, { only: 'bullmq' }),
  atLeast('packages', 'throughput', 'coalesced', 'plain', 1.8, undefined, { only: 'rate-limiter-flexible' }),

  // The hot path for everything that is sent.
  atLeast('pipelines', 'throughput', 'coalesced', 'plain', 2.5, 4, { only: '8 HGETs' }),
  atMost('pipelines', 'cpu', 'coalesced', 'plain', 1 / 3, 1 / 5, { only: '8 HGETs' }),
  atLeast('long-pipelines', 'throughput', 'coalesced', 'plain', 2.5),
  atMost('pipeline-memory', 'memory', 'coalesced', 'plain', 1 / 2),
  atLeast('fastify-pipeline', 'throughput', 'coalesced', 'plain', 2),
  atLeast('fastify-pipeline', 'throughput', 'coalesced', 'promise-all', 0.9),
  atLeast('multi', 'throughput', 'coalesced', 'plain', 2, 3),
  atLeast('scripts', 'throughput', 'coalesced', 'plain', 2.2),
  atMost('scripts', 'cpu', 'coalesced', 'plain', 1 / 4),
  atLeast('set-ex', 'throughput', 'coalesced', 'plain', 3.5),
  atLeast('call', 'throughput', 'coalesced', 'coalesced', 0.9, undefined, { only: 'call', versusCase: 'get' }),
  ...['lrange', 'zrange', 'hgetall'].flatMap((command) => [
    ...elements(command, '100', 2, 1.3),
    ...['1,000', '10,000'].flatMap((size) => elements(command, size, 1.2, 1)),
  ]),

  // The read that is never sent.
  atMost('cache-hits', 'cpu', 'coalesced-cache', undefined, 0.4, 0.2),
  atLeast('cache-hits', 'throughput', 'coalesced-cache', undefined, 2_500_000, 4_000_000),
  atLeast('cache-hits', 'throughput', 'coalesced-cache', 'node-redis-cache', 5),
  atMost('cache-misses', 'cpu', 'immediate-small-cache', 'coalesced-immediate', 1.05),
  atMost('cache-hot-key', 'serverCpu', 'coalesced-cache', 'plain', 0.01),
  atMost('cache-writes', 'cpu', 'coalesced-cache', 'coalesced', 1.3),
];
