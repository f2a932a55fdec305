/** The same work by every client, along each axis; no bars of their own. */

import { type ClientRow, SERVER_LIMIT } from './rows.js';
import type { Operation, Workload } from './workload.js';

const SMALL = { keys: 1000, valueBytes: 100 };

const FEW = { keys: 200, valueBytes: 100 };

const CONCURRENCIES = [1, 10, 100, 1000, 10_000];
const SIZES = [
  { name: '16 B', valueBytes: 16, keys: 1000 },
  { name: '1 KiB', valueBytes: 1024, keys: 200 },
  { name: '64 KiB', valueBytes: 64 * 1024, keys: 32 },
  { name: '1 MiB', valueBytes: 1024 * 1024, keys: 8 },
];
const RATES = [10_000, 50_000, 100_000];
const OPERATIONS: readonly { id: string; operation: Operation }[] = [
  { id: 'GET', operation: 'get' },
  { id: 'SET', operation: 'set' },
  { id: '4 GETs, 1 SET', operation: 'mixed' },
  { id: 'HGET', operation: 'hget' },
  { id: 'HGETALL, 8 fields', operation: 'hgetall' },
  { id: 'LRANGE, 100 elements', operation: 'lrange' },
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
  'coalesced',
  'reference',
] as const;

function burst(operation: Operation, size: number, data = SMALL): Workload {
  return { kind: 'burst', operation, size, data };
}

export const PEER_ROWS: readonly ClientRow[] = [
  {
    kind: 'client',
    id: 'peers',
    title: 'Every client: bursts of 200 GETs, 100 B',
    brief: true,
    contestants: [...LIBRARIES.slice(0, -2), 'pipeline', 'mget', 'cork', 'coalesced', 'reference', SERVER_LIMIT],
    cases: [{ id: '200 GETs', workload: burst('get', 200) }],
    bars: [],
  },
  {
    kind: 'client',
    id: 'concurrency',
    title: 'Concurrency: so many loops of sequential awaits',
    brief: true,
    contestants: LIBRARIES.filter((arm) => arm !== 'auto5'),
    cases: CONCURRENCIES.map((loops) => ({ id: `${loops}`, workload: { kind: 'loops', loops, data: SMALL } })),
    bars: [],
  },
  {
    kind: 'client',
    id: 'rates',
    title: 'Latency at fixed rates, from the moment at which each GET was due',
    brief: true,
    contestants: ['plain', 'auto', 'node-redis', 'node-redis-no-timeout', 'glide', 'coalesced'],
    cases: RATES.map((perSecond) => ({
      id: `${perSecond.toLocaleString('en-US')}/s`,
      workload: { kind: 'rate', perSecond, data: SMALL },
    })),
    bars: [],
  },
  {
    kind: 'client',
    id: 'operations',
    title: 'Kinds of commands, in bursts of 200',
    brief: true,
    contestants: ['plain', 'auto', 'node-redis-no-timeout', 'glide', 'coalesced'],
    cases: OPERATIONS.map(({ id, operation }) => ({ id, workload: burst(operation, 200, FEW) })),
    bars: [],
  },
  {
    kind: 'client',
    id: 'value-sizes',
    title: 'Value sizes, read in bursts',
    brief: true,
    contestants: ['plain', 'node-redis-no-timeout', 'glide', 'mget', 'coalesced'],
    cases: SIZES.map(({ name, ...data }) => ({ id: name, workload: burst('get', Math.min(200, data.keys), data) })),
    bars: [],
  },
  {
    kind: 'client',
    id: 'protocols',
    title: 'RESP2 and RESP3, in bursts of 200',
    brief: true,
    contestants: ['plain-resp2', 'plain', 'node-redis-resp2', 'node-redis-no-timeout', 'coalesced-resp2', 'coalesced'],
    cases: [
      { id: 'GET', workload: burst('get', 200) },
      { id: 'HGETALL, 8 fields', workload: burst('hgetall', 200, FEW) },
    ],
    bars: [],
  },
  {
    kind: 'client',
    id: 'tls',
    title: 'Over TLS: bursts of 200 GETs',
    brief: true,
    server: 'tls',
    contestants: ['plain', 'auto', 'node-redis-no-timeout', 'coalesced'],
    cases: [{ id: '200 GETs', workload: burst('get', 200) }],
    bars: [],
  },
  {
    kind: 'client',
    id: 'peer-memory',
    title: 'Memory of 10,000 GETs in flight',
    brief: true,
    contestants: ['plain', 'plain5', 'iovalkey', 'node-redis', 'node-redis-no-timeout', 'coalesced'],
    cases: [{ id: '10,000 GETs', workload: { kind: 'memory', commands: 10_000, data: SMALL } }],
    bars: [],
  },
];
