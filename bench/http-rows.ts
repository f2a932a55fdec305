import type { FastifyContext } from './http/fastify-rows.js';
import type { FastifyRow } from './http/types.js';
import { judge } from './judge.js';
import type { ContestantResult, RowResult } from './results.js';
import type { HttpRow, HttpVariant } from './rows.js';

/** Runs the Fastify bench once, and picks from its samples what each row compares. */
export async function runHttpRows(rows: readonly HttpRow[], context: FastifyContext): Promise<RowResult[]> {
  const { runFastifyRows } = await import('./http/fastify-rows.js');
  const samples = await runFastifyRows(context);
  return rows.map((row) => judge(row, [{ id: '30 connections', contestants: pick(row, samples, context.seconds) }]));
}

function pick(row: HttpRow, samples: readonly FastifyRow[], seconds: number): ContestantResult[] {
  return Object.entries(row.contestants).map(([contestant, { route, client }]) => {
    const own = samples.filter((sample) => sample.route === route && sample.variant === client);
    const first = own[0];
    if (first === undefined) throw new Error(`the Fastify bench gave no sample of ${route}, ${client}`);
    return {
      contestant: contestant as HttpVariant,
      samples: own.map((sample) => ({
        commands: Math.round(sample.requestsPerSecond * seconds),
        seconds,
        perSecond: sample.requestsPerSecond,
        serverCpuUs: sample.redisCpuUsPerRequest,
      })),
      probe: {
        writesPerCommand: first.writesPerRequest,
        latencyUs: { p50: median(own, 'p50Ms') * 1000, p99: median(own, 'p99Ms') * 1000 },
      },
    };
  });
}

function median(samples: readonly FastifyRow[], field: 'p50Ms' | 'p99Ms'): number {
  const sorted = samples.map((sample) => sample[field]).sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}
