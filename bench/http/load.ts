/** The process that makes the load: autocannon, asked over IPC, one run at a time. */
import autocannon from 'autocannon';
import { build as buildHistogram } from 'hdr-histogram-js';
import type { LoadAnswer, LoadRequest } from './types.js';

// Autocannon's own histogram rounds to whole milliseconds.
const MAX_LATENCY_US = 60_000_000;
const SAMPLE_MS = 20;

function run(request: LoadRequest): Promise<LoadAnswer> {
  const histogram = buildHistogram({ highestTrackableValue: MAX_LATENCY_US, numberOfSignificantValueDigits: 3 });
  const { limit } = request;
  return new Promise((settle) => {
    let answered = 0;
    let last = 0;
    const start = performance.now();
    const instance = autocannon(
      {
        url: request.origin,
        connections: request.connections,
        requests: request.paths.map((path) => ({ path })),
        sampleInt: SAMPLE_MS,
        ...('seconds' in limit ? { duration: limit.seconds } : { amount: limit.requests }),
      },
      (failure: unknown, result) => {
        const problem = failure ?? problemIn(result, request);
        if (problem) {
          settle({ error: problem instanceof Error ? problem.message : String(problem) });
          return;
        }
        settle({
          requests: answered,
          seconds: (last - start) / 1000,
          p50Ms: histogram.getValueAtPercentile(50) / 1000,
          p99Ms: histogram.getValueAtPercentile(99) / 1000,
        });
      },
    );
    instance.on('response', (_client, _status, _bytes, milliseconds) => {
      answered += 1;
      last = performance.now();
      histogram.recordValue(Math.min(MAX_LATENCY_US, Math.round(milliseconds * 1000)));
    });
  });
}

function problemIn(result: autocannon.Result, { origin, paths }: LoadRequest): string | undefined {
  if (result.errors > 0 || result.non2xx > 0) {
    return `${origin}${paths[0]}: expected only 2xx answers, got ${result.non2xx} others and ${result.errors} errors`;
  }
  return result['2xx'] > 0 ? undefined : `${origin}${paths[0]}: not one answer`;
}

process.on('disconnect', () => process.exit());
process.on('message', (request: LoadRequest) => {
  run(request).then(
    (answer) => process.send?.(answer),
    (error: unknown) => process.send?.({ error: String(error) } satisfies LoadAnswer),
  );
});
