import autocannon from 'autocannon';
import { build as buildHistogram } from 'hdr-histogram-js';

// Autocannon's own histogram rounds to whole milliseconds.
const MAX_LATENCY_US = 60_000_000;
const END_CHECK_MS = 20;
// A machine may sleep for a while: that is a slow answer, not an error.
const TIMEOUT_SECONDS = 60;

const EDGES_PER_DECADE = 12;
const DECADES = 4;
const FIRST_EDGE_MS = 0.1;

export interface LoadRequest {
  origin: string;
  paths: string[];
  connections: number;
  limit: { seconds: number } | { requests: number };
  /** How often a sample is reported. @default never */
  sampleMs?: number;
}

/** Since the previous sample. */
export interface LoadSample {
  /** Since the start of the load. */
  seconds: number;
  requests: number;
  requestsPerSecond: number;
  p99Ms: number;
  /** Responses so far by latency, one count per interval of `latencyEdgesMs()`. */
  latencies: number[];
}

/** Of all loads with the same totals. */
export interface LoadResult {
  requests: number;
  seconds: number;
  p50Ms: number;
  p99Ms: number;
  latencies: number[];
}

/** Lower edges of the intervals that latencies are counted in, evenly spaced on a logarithmic axis. */
export function latencyEdgesMs(): number[] {
  return Array.from(
    { length: EDGES_PER_DECADE * DECADES },
    (_, index) => FIRST_EDGE_MS * 10 ** (index / EDGES_PER_DECADE),
  );
}

/** Combined figures of several loads. */
export class LoadTotals {
  readonly latencies = new Array<number>(EDGES_PER_DECADE * DECADES).fill(0);
  readonly #histogram = newHistogram();
  #seconds = 0;

  answered(milliseconds: number): void {
    this.#histogram.recordValue(microseconds(milliseconds));
    this.latencies[intervalOf(milliseconds)]! += 1;
  }

  ended(seconds: number): void {
    this.#seconds += seconds;
  }

  result(): LoadResult {
    return {
      requests: this.#histogram.totalCount,
      seconds: this.#seconds,
      p50Ms: this.#histogram.getValueAtPercentile(50) / 1000,
      p99Ms: this.#histogram.getValueAtPercentile(99) / 1000,
      latencies: this.latencies,
    };
  }
}

/** Drives the paths in turn, and rejects unless every response was a 2xx. */
export function runLoad(
  request: LoadRequest,
  totals = new LoadTotals(),
  onSample?: (sample: LoadSample) => void,
): Promise<LoadResult> {
  const { limit } = request;
  const recent = newHistogram();
  return new Promise((resolve, reject) => {
    let last = 0;
    const start = performance.now();

    let sampledAt = start;
    const sample = (): void => {
      const now = performance.now();
      const requests = recent.totalCount;
      const requestsPerSecond = requests / ((now - sampledAt) / 1000);
      const p99Ms = recent.getValueAtPercentile(99) / 1000;
      const { latencies } = totals;
      onSample?.({ seconds: (now - start) / 1000, requests, requestsPerSecond, p99Ms, latencies });
      sampledAt = now;
      recent.reset();
    };
    const sampling = request.sampleMs === undefined ? undefined : setInterval(sample, request.sampleMs);

    const instance = autocannon(
      {
        url: request.origin,
        connections: request.connections,
        requests: request.paths.map((path) => ({ path })),
        sampleInt: END_CHECK_MS,
        timeout: TIMEOUT_SECONDS,
        ...('seconds' in limit ? { duration: limit.seconds } : { amount: limit.requests }),
      },
      (failure: unknown, result) => {
        clearInterval(sampling);
        const problem = failure ?? problemIn(result, request);
        if (problem) {
          reject(problem instanceof Error ? problem : new Error(String(problem)));
          return;
        }
        totals.ended((last - start) / 1000);
        resolve(totals.result());
      },
    );
    instance.on('response', (_client, _status, _bytes, milliseconds) => {
      last = performance.now();
      totals.answered(milliseconds);
      if (sampling !== undefined) {
        recent.recordValue(microseconds(milliseconds));
      }
    });
  });
}

function newHistogram() {
  return buildHistogram({ highestTrackableValue: MAX_LATENCY_US, numberOfSignificantValueDigits: 3 });
}

function microseconds(milliseconds: number): number {
  return Math.min(MAX_LATENCY_US, Math.round(milliseconds * 1000));
}

function intervalOf(milliseconds: number): number {
  const index = Math.floor(Math.log10(milliseconds / FIRST_EDGE_MS) * EDGES_PER_DECADE);
  return Math.min(Math.max(index, 0), EDGES_PER_DECADE * DECADES - 1);
}

function problemIn(result: autocannon.Result, { origin, paths }: LoadRequest): string | undefined {
  if (result.errors > 0 || result.non2xx > 0) {
    return `${origin}${paths[0]}: expected only 2xx answers, got ${result.non2xx} others and ${result.errors} errors`;
  }
  return result['2xx'] > 0 ? undefined : `${origin}${paths[0]}: not one answer`;
}
