/** What services and packages send beside single calls. */

import type { ClientBenchmark, HttpBenchmark } from './benchmark.js';
import { burst, FEW, loops, SMALL } from './workloads.js';

const PAIR = ['plain', 'coalesced'] as const;
const ELEMENTS = [
  { elements: 100, keys: 50, size: 50 },
  { elements: 1000, keys: 10, size: 10 },
  { elements: 10_000, keys: 2, size: 2 },
];

export const HOT_PATH: readonly (ClientBenchmark | HttpBenchmark)[] = [
  {
    kind: 'client',
    id: 'pipelines',
    title: '`pipeline()` of 8 HGETs, 30 loops',
    brief: true,
    variants: PAIR,
    cases: [loops('8 HGETs', 30, 'pipeline-8', FEW)],
  },
  {
    kind: 'client',
    id: 'long-pipelines',
    smokeCases: 0,
    title: '`pipeline()` of 200 GETs, one loop',
    brief: true,
    variants: PAIR,
    cases: [loops('200 GETs', 1, 'pipeline-200', SMALL)],
  },
  {
    kind: 'client',
    id: 'pipeline-memory',
    title: 'Memory per command of a `pipeline()` of 10,000 GETs in flight',
    brief: true,
    variants: PAIR,
    cases: [{ id: '10,000 GETs', workload: { kind: 'memory', commands: 10_000, of: 'pipeline', data: SMALL } }],
  },
  {
    kind: 'client',
    id: 'multi',
    title: '`multi().get().set().incr().exec()`, 30 loops',
    brief: true,
    variants: PAIR,
    cases: [loops('3 commands', 30, 'multi', FEW)],
  },
  {
    kind: 'client',
    id: 'scripts',
    title: 'A script by `defineCommand`, in bursts of 200',
    brief: true,
    variants: PAIR,
    cases: [burst('200 calls', 200, 'script', FEW)],
  },
  {
    kind: 'client',
    id: 'set-ex',
    title: 'SET … EX, in bursts of 200',
    brief: true,
    variants: PAIR,
    cases: [burst('200 SETs', 200, 'setex', FEW)],
  },
  {
    kind: 'client',
    id: 'call',
    title: "`call('get')` and `get`, in bursts of 200",
    brief: true,
    variants: PAIR,
    cases: [burst("call('get')", 200, 'call'), burst('get', 200)],
    smokeCases: 2,
  },
  {
    kind: 'client',
    id: 'elements',
    title: 'Long replies: lists, sorted sets and hashes',
    brief: true,
    variants: ['plain', 'node-redis-no-timeout', 'coalesced'],
    cases: ELEMENTS.flatMap(({ elements, keys, size }) =>
      (['lrange', 'zrange', 'hgetall'] as const).map((operation) =>
        burst(`${operation}, ${elements.toLocaleString('en-US')} elements`, size, operation, {
          keys,
          valueBytes: 100,
          elements,
        }),
      ),
    ),
    smokeCases: 3,
  },
  {
    kind: 'http',
    id: 'fastify-pipeline',
    title: 'Fastify, 8 HGETs per request in a hand-written pipeline, 30 connections',
    variants: {
      plain: { route: 'pipeline', client: 'plain' },
      coalesced: { route: 'pipeline', client: 'coalesced' },
      'promise-all': { route: 'parallel', client: 'coalesced' },
    },
  },
];
