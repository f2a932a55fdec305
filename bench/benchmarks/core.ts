/** What the package promises. */

import { type ClientBenchmark, type HttpBenchmark, SERVER_LIMIT } from './benchmark.js';
import { burst, loops, SMALL } from './workloads.js';

const EVERY_VARIANT = [
  'plain',
  'auto',
  'node-redis',
  'node-redis-no-timeout',
  'cork',
  'coalesced',
  'reference',
] as const;
const BURST_SIZES = [1, 10, 50, 100, 200, 500, 1000, 5000, 10_000];
const VALUE_SIZES = [
  { name: '1 KiB', valueBytes: 1024, keys: 200 },
  { name: '16 KiB', valueBytes: 16 * 1024, keys: 50 },
  { name: '1 MiB', valueBytes: 1024 * 1024, keys: 8 },
];

export const CORE: readonly (ClientBenchmark | HttpBenchmark)[] = [
  {
    kind: 'client',
    id: 'burst',
    title: 'Bursts of 200 GETs, 100 B',
    chart: { kind: 'bars' },
    variants: [...EVERY_VARIANT, SERVER_LIMIT],
    cases: [burst('200 GETs', 200)],
  },
  {
    kind: 'client',
    id: 'loops',
    smokeCases: 0,
    title: '50 loops of sequential awaits',
    chart: { kind: 'bars' },
    variants: EVERY_VARIANT,
    cases: [loops('50 loops', 50)],
  },
  {
    kind: 'client',
    id: 'single',
    title: 'One loop of sequential awaits',
    variants: ['plain', 'node-redis-no-timeout', 'coalesced', 'reference'],
    cases: [loops('1 loop', 1)],
  },
  {
    kind: 'client',
    id: 'cork',
    smokeCases: 0,
    title: 'Cork mode: bursts of 200 GETs, hot path off',
    variants: ['plain', 'cork'],
    cases: [burst('200 GETs', 200)],
  },
  {
    kind: 'client',
    id: 'timeout',
    smokeCases: 0,
    title: 'commandTimeout set: bursts of 200 GETs',
    variants: ['coalesced', 'coalesced-timeout'],
    cases: [burst('200 GETs', 200)],
  },
  {
    kind: 'client',
    id: 'sizes',
    smokeCases: 0,
    title: 'Burst size 1 to 10,000',
    chart: { kind: 'curves', log: true },
    variants: ['coalesced', 'reference'],
    cases: BURST_SIZES.map((size) => burst(`${size}`, size)),
  },
  {
    kind: 'client',
    id: 'memory',
    title: 'Memory per command in flight',
    variants: ['plain', 'coalesced'],
    cases: [10_000, 100_000].map((commands) => ({
      id: `${commands.toLocaleString('en-US')} GETs`,
      workload: { kind: 'memory', commands, data: SMALL },
    })),
  },
  {
    kind: 'client',
    id: 'values',
    title: 'Large values',
    variants: ['plain', 'coalesced'],
    cases: VALUE_SIZES.flatMap(({ name, ...data }) =>
      (['get', 'set'] as const).map((operation) =>
        burst(`${name} ${operation === 'get' ? 'read' : 'written'}`, data.keys, operation, data),
      ),
    ),
    smokeCases: 2,
  },
  {
    kind: 'client',
    id: 'cluster',
    title: 'Cluster of 3 masters: bursts of 200 GETs over all slots',
    environment: 'cluster',
    chart: { kind: 'bars' },
    variants: ['cluster', 'cluster-auto', 'cluster-node-redis', 'cluster-coalesced'],
    cases: [burst('200 GETs', 200)],
  },
  {
    kind: 'client',
    id: 'slots',
    smokeCases: 0,
    title: 'What the slot costs: a Cluster of one node, and a client of that node',
    environment: 'cluster-of-one',
    variants: ['coalesced', 'cluster-coalesced'],
    cases: [burst('200 GETs', 200)],
  },
  {
    kind: 'http',
    id: 'fastify-parallel',
    title: 'Fastify, 8 HGETs per request with Promise.all, 30 connections',
    chart: { kind: 'bars' },
    variants: {
      plain: { route: 'parallel', client: 'plain' },
      auto: { route: 'parallel', client: 'auto' },
      coalesced: { route: 'parallel', client: 'coalesced' },
      'coalesced-cache': { route: 'parallel', client: 'cached' },
      pipeline: { route: 'pipeline', client: 'plain' },
      'no-redis': { route: 'no-redis', client: 'plain' },
    },
  },
  {
    kind: 'http',
    id: 'fastify-sequential',
    title: 'Fastify, 8 sequential HGETs per request, 30 connections',
    variants: {
      plain: { route: 'sequential', client: 'plain' },
      coalesced: { route: 'sequential', client: 'coalesced' },
    },
  },
];
