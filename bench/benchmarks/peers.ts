/** The same work by every client, along each axis; no targets of their own. */

import { type Benchmark, brief, burst, type Case, FEW, loops, memory, SERVER_LIMIT, SMALL } from './benchmark.js';

const SIZES = [
  { name: '16 B', valueBytes: 16, keys: 1000 },
  { name: '1 KiB', valueBytes: 1024, keys: 200 },
  { name: '64 KiB', valueBytes: 64 * 1024, keys: 32 },
  { name: '1 MiB', valueBytes: 1024 * 1024, keys: 8 },
];
const OPERATIONS: readonly Case[] = [
  burst('GET', 200, 'get', FEW),
  burst('SET', 200, 'set', FEW),
  burst('4 GETs, 1 SET', 200, 'mixed', FEW),
  burst('HGET', 200, 'hget', FEW),
  burst('HGETALL, 8 fields', 200, 'hgetall', FEW),
  burst('LRANGE, 100 elements', 200, 'lrange', FEW),
];
const GETS = [burst('200 GETs', 200)];
const IOREDIS = ['plain', 'plain5', 'auto', 'auto5', 'iovalkey'] as const;
const OTHERS = ['node-redis', 'node-redis-no-timeout', 'glide'] as const;

export const PEERS: readonly Benchmark[] = [
  brief(
    'peers',
    'Every client: bursts of 200 GETs, 100 B',
    [...IOREDIS, ...OTHERS, 'pipeline', 'mget', 'cork', 'coalesced', 'reference', SERVER_LIMIT],
    GETS,
    { chart: { kind: 'bars' } },
  ),
  brief(
    'concurrency',
    'Concurrency: loops of sequential awaits',
    ['plain', 'plain5', 'auto', 'iovalkey', ...OTHERS, 'coalesced', 'reference'],
    [1, 10, 100, 1000, 10_000].map((count) => loops(`${count}`, count)),
    { chart: { kind: 'curves', log: true }, smokeCases: 0 },
  ),
  brief(
    'rates',
    'Latency at fixed rates, from the moment at which each GET was due',
    ['plain', 'auto', ...OTHERS, 'coalesced'],
    [10_000, 50_000, 100_000].map((perSecond) => {
      return { id: `${perSecond.toLocaleString('en-US')}/s`, workload: { kind: 'rate', perSecond, data: SMALL } };
    }),
    { chart: { kind: 'bars', metric: 'p99', log: true } },
  ),
  brief(
    'operations',
    'Kinds of commands, in bursts of 200',
    ['plain', 'auto', 'node-redis-no-timeout', 'glide', 'coalesced'],
    OPERATIONS,
    { smokeCases: OPERATIONS.length },
  ),
  brief(
    'value-sizes',
    'Value sizes, read in bursts',
    ['plain', 'node-redis-no-timeout', 'glide', 'mget', 'coalesced'],
    SIZES.map(({ name, ...data }) => burst(name, Math.min(200, data.keys), 'get', data)),
    { chart: { kind: 'curves', log: true }, smokeCases: 0 },
  ),
  brief(
    'protocols',
    'RESP2 and RESP3, in bursts of 200',
    ['plain-resp2', 'plain', 'node-redis-resp2', 'node-redis-no-timeout', 'coalesced-resp2', 'coalesced'],
    [burst('GET', 200), burst('HGETALL, 8 fields', 200, 'hgetall', FEW)],
  ),
  brief('tls', 'Over TLS: bursts of 200 GETs', ['plain', 'auto', 'node-redis-no-timeout', 'coalesced'], GETS, {
    environment: 'tls',
  }),
  brief(
    'peer-memory',
    'Memory of 10,000 GETs in flight',
    ['plain', 'plain5', 'iovalkey', 'node-redis', 'node-redis-no-timeout', 'coalesced'],
    [memory(10_000)],
    { smokeCases: 0 },
  ),
];
