/** The process that makes the load, asked over IPC, one run at a time; it lives through a whole run, so that it warms up once. */
import autocannon from 'autocannon';
import { build } from 'hdr-histogram-js';

// Autocannon's own histogram rounds to whole milliseconds.
const LONGEST_US = 60_000_000;
const END_CHECK_MS = 20;
// A machine may sleep for a while: that is a long answer, not an error.
const TIMEOUT_S = 60;
const LONG_ENOUGH_S = 1;

export interface LoadRequest {
  readonly origin: string;
  /** In turn. */
  readonly requests: readonly { readonly path: string; readonly headers?: Readonly<Record<string, string>> }[];
  readonly connections: number;
  readonly limit: { readonly seconds: number } | { readonly requests: number };
  /** Requests per second, of all connections. @default as fast as it goes */
  readonly rate?: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Rejects unless every response was a 2xx. */
function runLoad(request: LoadRequest): Promise<LoadResult> {
  const { origin, requests, connections, limit, rate } = request;
  const histogram = build({ highestTrackableValue: LONGEST_US, numberOfSignificantValueDigits: 3 });
  return new Promise((resolve, reject) => {
    const start = performance.now();
    let last = start;
    const instance = autocannon(
      {
        url: origin,
        connections,
        requests: requests.map(({ path, headers = {} }) => ({ path, headers })),
        sampleInt: END_CHECK_MS,
        timeout: TIMEOUT_S,
        ...('seconds' in limit ? { duration: limit.seconds } : { amount: limit.requests }),
        ...(rate === undefined ? {} : { overallRate: rate }),
      },
      (failure: unknown, { errors, non2xx }) => {
        if (failure) {
          reject(failure);
        } else if (
          histogram.totalCount + errors + non2xx === 0 &&
          'seconds' in limit &&
          limit.seconds < LONG_ENOUGH_S
        ) {
          // On a busy machine, a short run may end before the first answer.
          resolve(runLoad({ ...request, limit: { seconds: LONG_ENOUGH_S } }));
        } else if (histogram.totalCount === 0 || errors + non2xx > 0) {
          const got = `${histogram.totalCount} answers, ${non2xx} of them others, ${errors} errors`;
          reject(new Error(`${origin}${requests[0]?.path}: expected only 2xx answers, got ${got}`));
        } else {
          const at = (percentile: number) => histogram.getValueAtPercentile(percentile) / 1000;
          const seconds = (last - start) / 1000;
          resolve({ requests: histogram.totalCount, seconds, p50Ms: at(50), p99Ms: at(99) });
        }
      },
    );
    instance.on('response', (_client, _status, _bytes, milliseconds) => {
      last = performance.now();
      histogram.recordValue(Math.min(LONGEST_US, Math.round(milliseconds * 1000)));
    });
  });
}

process.on('disconnect', () => process.exit());
process.on('message', (request: LoadRequest) => {
  runLoad(request).then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ error: error instanceof Error ? error.message : String(error) }),
  );
});
