/** What services and packages send beside single calls. */

import { type Benchmark, brief, burst, FEW, full, http, loops, memory } from './benchmark.js';

const PAIR = ['plain', 'coalesced'] as const;
const ELEMENTS = [
  { elements: 100, keys: 50, size: 50 },
  { elements: 1000, keys: 10, size: 10 },
  { elements: 10_000, keys: 2, size: 2 },
];
const LONG_REPLIES = ELEMENTS.flatMap(({ elements, keys, size }) =>
  (['lrange', 'zrange', 'hgetall'] as const).map((operation) => {
    const id = `${operation}, ${elements.toLocaleString('en-US')} elements`;
    return burst(id, size, operation, { keys, valueBytes: 100, elements });
  }),
);

export const HOT_PATH: readonly Benchmark[] = [
  brief('pipelines', '`pipeline()` of 8 HGETs, 30 loops', PAIR, [loops('8 HGETs', 30, 'pipeline-8', FEW)]),
  brief('long-pipelines', '`pipeline()` of 200 GETs, one loop', PAIR, [loops('200 GETs', 1, 'pipeline-200')], {
    smokeCases: 0,
  }),
  brief('pipeline-memory', 'Memory per command of a `pipeline()` of 10,000 GETs in flight', PAIR, [
    memory(10_000, 'pipeline'),
  ]),
  brief('multi', '`multi().get().set().incr().exec()`, 30 loops', PAIR, [loops('3 commands', 30, 'multi', FEW)]),
  full('scripts', 'A script by `defineCommand`, in bursts of 200', PAIR, [burst('200 calls', 200, 'script', FEW)], {
    ownProcesses: true,
  }),
  brief('set-ex', 'SET … EX, in bursts of 200', PAIR, [burst('200 SETs', 200, 'setex', FEW)]),
  brief(
    'call',
    "`call('get')` and `get`, in bursts of 200",
    PAIR,
    [burst("call('get')", 200, 'call'), burst('get', 200)],
    { smokeCases: 2 },
  ),
  brief(
    'elements',
    'Long replies: lists, sorted sets and hashes',
    ['plain', 'node-redis-no-timeout', 'coalesced'],
    LONG_REPLIES,
    { smokeCases: 3 },
  ),
  http('fastify-pipeline', 'Fastify, 8 HGETs per request in a hand-written pipeline, 30 connections', {
    plain: ['pipeline', 'plain'],
    coalesced: ['pipeline', 'coalesced'],
    'promise-all': ['parallel', 'coalesced'],
  }),
];
