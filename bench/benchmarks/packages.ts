/** Packages on top of ioredis, handed a plain client, a corked and a coalesced one. */

import type { PackageName } from '../packages/index.js';
import { NOTHING } from '../variants/data.js';
import { type Benchmark, benchmark, type Case } from './benchmark.js';

const CONCURRENCY: Readonly<Record<PackageName, readonly number[]>> = {
  'bullmq add': [1, 50],
  'bullmq worker': [1, 10, 50],
  'rate-limiter-flexible': [100],
  '@fastify/rate-limit': [30],
  redlock: [50],
  '@socket.io/redis-adapter': [50],
  '@fastify/session': [30],
  'graphql-redis-subscriptions': [50],
};
const cases = Object.entries(CONCURRENCY).flatMap(([name, concurrencies]) =>
  concurrencies.map((concurrency): Case => {
    return { id: `${name}, ${concurrency}`, workload: { kind: 'package', name, concurrency, data: NOTHING } };
  }),
);

export const PACKAGES: readonly Benchmark[] = [
  benchmark('packages', 'Packages on top', ['plain', 'cork', 'coalesced'], cases, {
    // A package takes a while until the compiler has seen enough of its code.
    warmUpSeconds: 1,
    smokeCases: cases.length,
  }),
];
