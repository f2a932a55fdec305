/** The same work by every client, along each axis; no targets of their own. */

import type { Case } from './benchmark.js';
import { type ClientBenchmark, SERVER_LIMIT } from './benchmark.js';
import { burst, FEW, loops, SMALL } from './workloads.js';

const CONCURRENCIES = [1, 10, 100, 1000, 10_000];
const SIZES = [
  { name: '16 B', valueBytes: 16, keys: 1000 },
  { name: '1 KiB', valueBytes: 1024, keys: 200 },
  { name: '64 KiB', valueBytes: 64 * 1024, keys: 32 },
  { name: '1 MiB', valueBytes: 1024 * 1024, keys: 8 },
];
const RATES = [10_000, 50_000, 100_000];
const OPERATIONS: readonly Case[] = [
  burst('GET', 200, 'get', FEW),
  burst('SET', 200, 'set', FEW),
  burst('4 GETs, 1 SET', 200, 'mixed', FEW),
  burst('HGET', 200, 'hget', FEW),
  burst('HGETALL, 8 fields', 200, 'hgetall', FEW),
  burst('LRANGE, 100 elements', 200, 'lrange', FEW),
];
const LIBRARIES = [
  'plain',
  'plain5',
  'auto',
  'auto5',
  'iovalkey',
  'node-redis',
  'node-redis-no-timeout',
  'glide',
] as const;

export const PEERS: readonly ClientBenchmark[] = [
  {
    kind: 'client',
    id: 'peers',
    title: 'Every client: bursts of 200 GETs, 100 B',
    brief: true,
    chart: { kind: 'bars' },
    variants: [...LIBRARIES, 'pipeline', 'mget', 'cork', 'coalesced', 'reference', SERVER_LIMIT],
    cases: [burst('200 GETs', 200)],
  },
  {
    kind: 'client',
    id: 'concurrency',
    smokeCases: 0,
    title: 'Concurrency: so many loops of sequential awaits',
    brief: true,
    chart: { kind: 'curves', log: true },
    variants: [...LIBRARIES.filter((variant) => variant !== 'auto5'), 'coalesced', 'reference'],
    cases: CONCURRENCIES.map((count) => loops(`${count}`, count)),
  },
  {
    kind: 'client',
    id: 'rates',
    title: 'Latency at fixed rates, from the moment at which each GET was due',
    brief: true,
    chart: { kind: 'bars', metric: 'p99', log: true },
    variants: ['plain', 'auto', 'node-redis', 'node-redis-no-timeout', 'glide', 'coalesced'],
    cases: RATES.map((perSecond) => ({
      id: `${perSecond.toLocaleString('en-US')}/s`,
      workload: { kind: 'rate', perSecond, data: SMALL },
    })),
  },
  {
    kind: 'client',
    id: 'operations',
    title: 'Kinds of commands, in bursts of 200',
    brief: true,
    variants: ['plain', 'auto', 'node-redis-no-timeout', 'glide', 'coalesced'],
    cases: OPERATIONS,
    smokeCases: OPERATIONS.length,
  },
  {
    kind: 'client',
    id: 'value-sizes',
    smokeCases: 0,
    title: 'Value sizes, read in bursts',
    brief: true,
    chart: { kind: 'curves', log: true },
    variants: ['plain', 'node-redis-no-timeout', 'glide', 'mget', 'coalesced'],
    cases: SIZES.map(({ name, ...data }) => burst(name, Math.min(200, data.keys), 'get', data)),
  },
  {
    kind: 'client',
    id: 'protocols',
    title: 'RESP2 and RESP3, in bursts of 200',
    brief: true,
    variants: ['plain-resp2', 'plain', 'node-redis-resp2', 'node-redis-no-timeout', 'coalesced-resp2', 'coalesced'],
    cases: [burst('GET', 200), burst('HGETALL, 8 fields', 200, 'hgetall', FEW)],
  },
  {
    kind: 'client',
    id: 'tls',
    title: 'Over TLS: bursts of 200 GETs',
    brief: true,
    environment: 'tls',
    variants: ['plain', 'auto', 'node-redis-no-timeout', 'coalesced'],
    cases: [burst('200 GETs', 200)],
  },
  {
    kind: 'client',
    id: 'peer-memory',
    smokeCases: 0,
    title: 'Memory of 10,000 GETs in flight',
    brief: true,
    variants: ['plain', 'plain5', 'iovalkey', 'node-redis', 'node-redis-no-timeout', 'coalesced'],
    cases: [{ id: '10,000 GETs', workload: { kind: 'memory', commands: 10_000, data: SMALL } }],
  },
];
