/** What the package promises. */

import { type Benchmark, burst, full, http, loops, memory, SERVER_LIMIT } from './benchmark.js';

const PAIR = ['plain', 'coalesced'] as const;
const LIBRARIES = ['plain', 'auto', 'node-redis', 'node-redis-no-timeout'] as const;
const EVERY_VARIANT = [...LIBRARIES, 'cork', 'coalesced', 'reference'] as const;
const SKIPPED = { smokeCases: 0 };
const GETS = [burst('200 GETs', 200)];
const BURST_SIZES = [1, 10, 50, 100, 200, 500, 1000, 5000, 10_000];
const VALUE_SIZES = [
  { name: '1 KiB', valueBytes: 1024, keys: 200 },
  { name: '16 KiB', valueBytes: 16 * 1024, keys: 50 },
  { name: '1 MiB', valueBytes: 1024 * 1024, keys: 8 },
];
const VALUES = VALUE_SIZES.flatMap(({ name, ...data }) => [
  burst(`${name} read`, data.keys, 'get', data),
  burst(`${name} written`, data.keys, 'set', data),
]);

export const CORE: readonly Benchmark[] = [
  full('burst', 'Bursts of 200 GETs, 100 B', [...EVERY_VARIANT, SERVER_LIMIT], GETS, { chart: { kind: 'bars' } }),
  full('loops', '50 loops of sequential awaits', EVERY_VARIANT, [loops('50 loops', 50)], {
    chart: { kind: 'bars' },
    ownProcesses: true,
    ...SKIPPED,
  }),
  full(
    'single',
    'One loop of sequential awaits',
    ['plain', 'node-redis-no-timeout', 'coalesced', 'reference'],
    [loops('1 loop', 1)],
  ),
  full('cork', 'Cork mode: bursts of 200 GETs, hot path off', ['plain', 'cork'], GETS, {
    ownProcesses: true,
    ...SKIPPED,
  }),
  full('timeout', 'commandTimeout set: bursts of 200 GETs', ['coalesced', 'coalesced-timeout'], GETS, SKIPPED),
  full(
    'sizes',
    'Burst size 1 to 10,000',
    ['coalesced', 'reference'],
    BURST_SIZES.map((size) => burst(`${size}`, size)),
    { chart: { kind: 'curves', log: true }, ...SKIPPED },
  ),
  full('memory', 'Memory per command in flight', PAIR, [memory(10_000), memory(100_000)]),
  full('values', 'Large values', PAIR, VALUES, { smokeCases: 2 }),
  full(
    'cluster',
    'Cluster of 3 masters: bursts of 200 GETs over all slots',
    ['cluster', 'cluster-auto', 'cluster-node-redis', 'cluster-coalesced'],
    GETS,
    { environment: 'cluster', chart: { kind: 'bars' } },
  ),
  full(
    'slots',
    'What the slot costs: a Cluster of one node, and a client of that node',
    ['coalesced', 'cluster-coalesced'],
    GETS,
    { environment: 'cluster-of-one', ...SKIPPED },
  ),
  http(
    'fastify-parallel',
    'Fastify, 8 HGETs per request with Promise.all, 30 connections',
    {
      plain: ['parallel', 'plain'],
      auto: ['parallel', 'auto'],
      coalesced: ['parallel', 'coalesced'],
      'coalesced-cache': ['parallel', 'cached'],
      pipeline: ['pipeline', 'plain'],
      'no-redis': ['no-redis', 'plain'],
    },
    { chart: { kind: 'bars' } },
  ),
  http('fastify-sequential', 'Fastify, 8 sequential HGETs per request, 30 connections', {
    plain: ['sequential', 'plain'],
    coalesced: ['sequential', 'coalesced'],
  }),
  http(
    'fastify-rates',
    'Fastify, 8 HGETs per request with Promise.all, at a fixed rate below what plain ioredis manages',
    { plain: ['parallel', 'plain'], coalesced: ['parallel', 'coalesced'] },
    { rates: [1000, 1500], pace: { rounds: 3, seconds: 1 }, smokeCases: 0 },
  ),
];
