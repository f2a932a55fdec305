/** The rows of the design's table: what it should come to. */

import { type ClientRow, type HttpRow, SERVER_LIMIT } from './rows.js';
import type { Operation, Workload } from './workload.js';

const SMALL = { keys: 1000, valueBytes: 100 };
const EVERYONE = ['plain', 'auto', 'node-redis', 'node-redis-no-timeout', 'cork', 'coalesced', 'reference'] as const;
const BURST_SIZES = [1, 10, 50, 100, 200, 500, 1000, 5000, 10_000];
const VALUE_SIZES = [
  { name: '1 KiB', valueBytes: 1024, keys: 200 },
  { name: '16 KiB', valueBytes: 16 * 1024, keys: 50 },
  { name: '1 MiB', valueBytes: 1024 * 1024, keys: 8 },
];

function burst(size: number, operation: Operation = 'get'): Workload {
  return { kind: 'burst', operation, size, data: SMALL };
}

export const DESIGN_ROWS: readonly (ClientRow | HttpRow)[] = [
  {
    kind: 'client',
    id: 'burst',
    title: 'Bursts of 200 GETs, 100 B',
    contestants: [...EVERYONE, SERVER_LIMIT],
    cases: [{ id: '200 GETs', workload: burst(200) }],
    bars: [
      { metric: 'cpu', of: 'coalesced', versus: 'plain', op: '<=', bar: 1 / 6 },
      { metric: 'cpu', of: 'coalesced', versus: 'auto', op: '<=', bar: 1 / 5 },
      { metric: 'cpu', of: 'coalesced', versus: 'node-redis-no-timeout', op: '<=', bar: 1 / 1.7 },
      { metric: 'cpu', of: 'coalesced', versus: 'reference', op: '<=', stretch: 1 },
      { metric: 'throughput', of: 'coalesced', versus: 'plain', op: '>=', bar: 4.5 },
      { metric: 'throughput', of: 'coalesced', versus: 'auto', op: '>=', bar: 2.8 },
      { metric: 'throughput', of: 'coalesced', versus: 'node-redis-no-timeout', op: '>=', bar: 1.4 },
      { metric: 'throughput', of: 'coalesced', versus: 'node-redis', op: '>=', bar: 5 },
      { metric: 'throughput', of: 'coalesced', versus: 'reference', op: '>=', bar: 0.9, stretch: 1 },
      { metric: 'throughput', of: 'coalesced', versus: SERVER_LIMIT, op: '>=', stretch: 0.7 },
      { metric: 'throughput', of: 'coalesced', versus: 'absolute', op: '>=', stretch: 1_000_000 },
    ],
  },
  {
    kind: 'client',
    id: 'loops',
    title: '50 loops of sequential awaits',
    contestants: EVERYONE,
    cases: [{ id: '50 loops', workload: { kind: 'loops', loops: 50, data: SMALL } }],
    bars: [
      { metric: 'cpu', of: 'coalesced', versus: 'plain', op: '<=', bar: 1 / 4 },
      { metric: 'throughput', of: 'coalesced', versus: 'plain', op: '>=', bar: 2.5 },
      { metric: 'throughput', of: 'coalesced', versus: 'node-redis-no-timeout', op: '>=', bar: 1.3 },
      { metric: 'throughput', of: 'coalesced', versus: 'node-redis', op: '>=', bar: 1.3 },
      { metric: 'throughput', of: 'coalesced', versus: 'reference', op: '>=', bar: 0.9, stretch: 1 },
    ],
  },
  {
    kind: 'client',
    id: 'single',
    title: 'One loop of sequential awaits',
    contestants: ['plain', 'node-redis-no-timeout', 'coalesced', 'reference'],
    cases: [{ id: '1 loop', workload: { kind: 'loops', loops: 1, data: SMALL } }],
    bars: [{ metric: 'p50', of: 'coalesced', versus: 'plain', op: '<=', bar: 1.03, stretch: 0.95 }],
  },
  {
    kind: 'client',
    id: 'outside-cork',
    title: 'Layer 1 alone: bursts of 200 GETs, hot path off',
    contestants: ['plain', 'cork'],
    cases: [{ id: '200 GETs', workload: burst(200) }],
    bars: [{ metric: 'throughput', of: 'cork', versus: 'plain', op: '>=', bar: 2.2, stretch: 2.7 }],
  },
  {
    kind: 'client',
    id: 'outside-call',
    title: "Outside the hot path: bursts of 200 call('get')",
    contestants: ['plain', 'coalesced'],
    cases: [{ id: '200 calls', workload: burst(200, 'call') }],
    bars: [{ metric: 'throughput', of: 'coalesced', versus: 'plain', op: '>=', bar: 2.2, stretch: 2.7 }],
  },
  {
    kind: 'client',
    id: 'timeout',
    title: 'commandTimeout set: bursts of 200 GETs',
    contestants: ['coalesced', 'coalesced-timeout'],
    cases: [{ id: '200 GETs', workload: burst(200) }],
    bars: [
      { metric: 'throughput', of: 'coalesced-timeout', versus: 'coalesced', op: '>=', bar: 0.95, stretch: 0.99 },
      { metric: 'cpu', of: 'coalesced-timeout', versus: 'coalesced', op: '<=', stretch: 1.02 },
    ],
  },
  {
    kind: 'client',
    id: 'sizes',
    title: 'Burst size 1 to 10,000',
    contestants: ['coalesced', 'reference'],
    cases: BURST_SIZES.map((size) => ({ id: `${size}`, workload: burst(size) })),
    bars: [{ metric: 'cpu', of: 'coalesced', versus: 'best-case', op: '<=', bar: 1.3, stretch: 1.1 }],
  },
  {
    kind: 'client',
    id: 'memory',
    title: 'Memory per command in flight',
    contestants: ['plain', 'coalesced'],
    cases: [10_000, 100_000].map((commands) => ({
      id: `${commands.toLocaleString('en-US')} GETs`,
      workload: { kind: 'memory', commands, data: SMALL },
    })),
    bars: [{ metric: 'memory', of: 'coalesced', versus: 'plain', op: '<=', bar: 1 / 2, stretch: 1 / 3 }],
  },
  {
    kind: 'client',
    id: 'values',
    title: 'Large values',
    contestants: ['plain', 'coalesced'],
    cases: VALUE_SIZES.flatMap(({ name, ...data }) =>
      (['get', 'set'] as const).map((operation) => ({
        id: `${name} ${operation === 'get' ? 'read' : 'written'}`,
        workload: { kind: 'burst' as const, operation, size: data.keys, data },
      })),
    ),
    bars: [{ metric: 'throughput', of: 'coalesced', versus: 'plain', op: '>=', bar: 0.97, stretch: 1 }],
  },
  {
    kind: 'client',
    id: 'cluster',
    title: 'Cluster of 3 masters: bursts of 200 GETs over all slots',
    server: 'cluster',
    contestants: ['cluster', 'cluster-auto', 'cluster-node-redis', 'cluster-coalesced'],
    cases: [{ id: '200 GETs', workload: burst(200) }],
    bars: [
      { metric: 'throughput', of: 'cluster-coalesced', versus: 'cluster', op: '>=', bar: 3, stretch: 4 },
      { metric: 'throughput', of: 'cluster-coalesced', versus: 'cluster-auto', op: '>=', bar: 2 },
    ],
  },
  {
    kind: 'client',
    id: 'slots',
    title: 'What the slot costs: a Cluster of one node, and a client of that node',
    server: 'cluster-of-one',
    contestants: ['coalesced', 'cluster-coalesced'],
    cases: [{ id: '200 GETs', workload: burst(200) }],
    bars: [],
  },
  {
    kind: 'http',
    id: 'fastify-parallel',
    title: 'Fastify, 8 HGETs a request with Promise.all, 30 connections',
    contestants: {
      plain: { route: 'parallel', client: 'plain' },
      coalesced: { route: 'parallel', client: 'coalesced' },
      pipeline: { route: 'pipeline', client: 'plain' },
      'no-redis': { route: 'no-redis', client: 'plain' },
    },
    bars: [
      { metric: 'throughput', of: 'coalesced', versus: 'plain', op: '>=', bar: 2.5, stretch: 3.3 },
      { metric: 'throughput', of: 'coalesced', versus: 'pipeline', op: '>=', bar: 2 },
      { metric: 'throughput', of: 'coalesced', versus: 'no-redis', op: '>=', bar: 0.5, stretch: 0.7 },
      { metric: 'serverCpu', of: 'coalesced', versus: 'plain', op: '<=', bar: 0.2, stretch: 0.1 },
    ],
  },
  {
    kind: 'http',
    id: 'fastify-sequential',
    title: 'Fastify, 8 sequential HGETs a request, 30 connections',
    contestants: {
      plain: { route: 'sequential', client: 'plain' },
      coalesced: { route: 'sequential', client: 'coalesced' },
    },
    bars: [{ metric: 'throughput', of: 'coalesced', versus: 'plain', op: '>=', bar: 1.7, stretch: 2.5 }],
  },
];
