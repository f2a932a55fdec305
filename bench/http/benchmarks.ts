import type { HttpBenchmark } from '../benchmarks/benchmark.js';
import type { BenchServer } from '../suite/bench-server.js';
import type { Progress } from '../suite/progress.js';
import type { BenchmarkResult, VariantResult } from '../suite/results.js';
import type { Pace } from '../suite/runner.js';
import { CLIENT_KINDS, CONNECTIONS, measureRoutes, type Plan, ROUTE_IDS, type RouteResult } from './routes.js';

const SMOKE: Plan = { rounds: 1, seconds: 0.2, warmUpSeconds: 0.1, countedRequests: 120 };

interface Context {
  readonly server: BenchServer;
  readonly smoke: boolean;
  readonly pace: Pace;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** Measures the routes once, and picks from them what each benchmark compares. */
export async function runHttpBenchmarks(
  benchmarks: readonly HttpBenchmark[],
  { server, smoke, pace, progress, signal }: Context,
): Promise<BenchmarkResult[]> {
  const used = benchmarks.flatMap(({ variants }) => Object.values(variants));
  const { rounds, seconds } = pace;
  const results = await measureRoutes({
    server,
    routes: ROUTE_IDS.filter((id) => used.some(({ route }) => route === id)),
    clients: CLIENT_KINDS.filter((kind) => used.some(({ client }) => client === kind)),
    plan: smoke ? SMOKE : { rounds, seconds, warmUpSeconds: 1, countedRequests: 1500 },
    progress: (label) => progress.show('Fastify', label),
    signal,
  });
  return benchmarks.map(({ id, title, variants }) => ({
    id,
    title,
    cases: [
      {
        id: `${CONNECTIONS} connections`,
        variants: Object.entries(variants).map(([variant, one]) => pick(variant, results, one)),
      },
    ],
  }));
}

function pick(
  variant: string,
  results: readonly RouteResult[],
  { route, client }: HttpBenchmark['variants'][string],
): VariantResult {
  const found = results.find((result) => result.route === route && result.client === client);
  if (found === undefined) throw new Error(`expected figures of the route ${route} with the ${client} client`);
  return { variant, probe: found.probe, samples: found.samples };
}
