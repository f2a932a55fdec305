import type { HttpBenchmark } from '../benchmarks/benchmark.js';
import type { BenchServer } from '../suite/bench-server.js';
import type { Bundle } from '../suite/bundle.js';
import type { Cleanup } from '../suite/cleanup.js';
import type { Progress } from '../suite/progress.js';
import type { BenchmarkResult } from '../suite/results.js';
import type { Pace } from '../suite/runner.js';
import { CLIENT_KINDS, measureRoutes, type Plan, ROUTE_IDS } from './routes.js';
import { CONNECTIONS } from './service.js';

const SMOKE: Plan = { rounds: 1, seconds: 0.2, warmUpSeconds: 0.1, countedRequests: 120 };

interface Context {
  readonly server: BenchServer;
  readonly bundle: Bundle;
  readonly cleanup: Cleanup;
  readonly smoke: boolean;
  readonly pace: Pace;
  readonly progress: Progress;
}

/** Measures the routes once, and picks from them what each benchmark compares. */
export async function runHttpBenchmarks(
  benchmarks: readonly HttpBenchmark[],
  { smoke, pace: { rounds, seconds }, progress, ...context }: Context,
): Promise<BenchmarkResult[]> {
  const used = new Set(benchmarks.flatMap(({ variants }) => Object.values(variants).flat()));
  const results = await measureRoutes({
    ...context,
    routes: ROUTE_IDS.filter((route) => used.has(route)),
    clients: CLIENT_KINDS.filter((client) => used.has(client)),
    plan: smoke ? SMOKE : { rounds, seconds, warmUpSeconds: 1, countedRequests: 1500 },
    progress: (label) => progress.show('Fastify', label),
  });
  return benchmarks.map(({ id, title, variants }) => {
    const found = Object.entries(variants).map(([variant, [route, client]]) => {
      const { probe, samples } = results.find((result) => result.route === route && result.client === client)!;
      return { variant, probe, samples };
    });
    return { id, title, cases: [{ id: `${CONNECTIONS} connections`, variants: found }] };
  });
}
