/** What the package promises of single commands, pipelines, memory, Cluster and a service. */

import { FEW } from '../variants/data.js';
import { type Benchmark, benchmark, burst, http, loops, memory } from './benchmark.js';

const PAIR = ['plain', 'coalesced'] as const;
const GETS = [burst('200 GETs', 200)];

const LONG_REPLIES = (['lrange', 'zrange', 'hgetall'] as const).map((operation) =>
  burst(`50 × ${operation} of 100`, 50, operation, { keys: 50, valueBytes: 100, elements: 100 }),
);

export const CORE: readonly Benchmark[] = [
  benchmark(
    'burst',
    'Bursts of 200 GETs, 100 B',
    ['plain', 'auto', 'node-redis-no-timeout', 'cork', 'coalesced', 'coalesced-timeout', 'reference'],
    GETS,
    { counted: true },
  ),
  benchmark('fast-path', 'Other commands', PAIR, [
    burst('200 × SET … EX', 200, 'setex', FEW),
    burst("200 × call('get')", 200, 'call'),
    burst('200 × HGETALL of 8 fields', 200, 'hgetall', FEW),
    burst('160 × GET and 40 × SET', 200, 'mixed', FEW),
    burst('200 scripts by defineCommand', 200, 'script', FEW),
    loops('pipeline() of 8 HGETs, 30 loops', 30, 'pipeline-8', FEW),
    loops('pipeline() of 200 GETs, 1 loop', 1, 'pipeline-200'),
    loops('multi() of 3, 30 loops', 30, 'multi', FEW),
    ...LONG_REPLIES,
  ]),
  benchmark('memory', 'Memory per command in flight', PAIR, [
    memory('10,000 GETs', 10_000),
    memory('pipeline() of 10,000 GETs', 10_000, 'pipeline'),
  ]),
  benchmark(
    'cluster',
    'Cluster of 3 masters: bursts of 200 GETs over all slots',
    ['cluster', 'cluster-auto', 'cluster-cork', 'cluster-coalesced'],
    [{ ...burst('200 GETs', 200), environment: 'cluster' }],
  ),
  http('fastify-parallel', 'Fastify, 8 HGETs per request, 30 connections', {
    plain: ['parallel', 'plain'],
    cork: ['parallel', 'corked'],
    coalesced: ['parallel', 'coalesced'],
    'coalesced-cache': ['parallel', 'cached'],
    pipeline: ['pipeline', 'plain'],
    'coalesced-pipeline': ['pipeline', 'coalesced'],
    'no-redis': ['no-redis', 'plain'],
  }),
  http('fastify-sequential', 'Fastify, 8 HGETs per request, one after the other, 30 connections', {
    plain: ['sequential', 'plain'],
    coalesced: ['sequential', 'coalesced'],
  }),
];
