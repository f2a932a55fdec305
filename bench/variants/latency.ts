import { build } from 'hdr-histogram-js';
import type { Latency } from './protocol.js';

const LONGEST_NS = 60e9;

/** Records in nanoseconds: a single command takes some tens of microseconds, and a target is 3 % of that. */
export class LatencyRecorder {
  readonly #histogram = build({ highestTrackableValue: LONGEST_NS, numberOfSignificantValueDigits: 3 });

  /** @param start what `performance.now()` said when the command was issued */
  record(start: number): void {
    this.#histogram.recordValue(Math.round((performance.now() - start) * 1e6));
  }

  /** In microseconds. */
  mean(): number {
    return this.#histogram.mean / 1000;
  }

  summary(): Latency {
    const at = (percentile: number) => this.#histogram.getValueAtPercentile(percentile) / 1000;
    return { p50: at(50), p95: at(95), p99: at(99), p999: at(99.9) };
  }
}
