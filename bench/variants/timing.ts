/** How long things take, and what they cost this process. */

import { build } from 'hdr-histogram-js';
import type { Measured, Sample } from './protocol.js';

const LONGEST_NS = 60e9;

/** Records in nanoseconds: a single command takes some tens of microseconds, and a target is 3 % of that. */
export class LatencyRecorder {
  readonly #histogram = build({ highestTrackableValue: LONGEST_NS, numberOfSignificantValueDigits: 3 });

  get count(): number {
    return this.#histogram.totalCount;
  }

  /** @param start what `performance.now()` said when the command was issued */
  record(start: number): void {
    this.add(performance.now() - start);
  }

  add(milliseconds: number): void {
    this.#histogram.recordValue(Math.min(LONGEST_NS, Math.round(milliseconds * 1e6)));
  }

  /** In microseconds. */
  summary(): Required<Pick<Sample, 'p50' | 'p99' | 'p999'>> {
    const at = (percentile: number) => this.#histogram.getValueAtPercentile(percentile) / 1000;
    return { p50: at(50), p99: at(99), p999: at(99.9) };
  }
}

/** What a stretch of work took. */
export class Stopwatch {
  readonly #cpu = process.cpuUsage();
  readonly #start = performance.now();

  figures(commands: number): { commands: number; throughput: number; cpu: number } {
    const seconds = (performance.now() - this.#start) / 1000;
    const { user, system } = process.cpuUsage(this.#cpu);
    return { commands, throughput: commands / seconds, cpu: (user + system) / commands };
  }
}

/**
 * Runs `count` loops, each of which does its next step as soon as the one before is done, for about `seconds`.
 *
 * @param latency - gets the steps of one loop: it keeps the time for all, and reads the clock anyway. Reading it at
 * each
 * command would be part of the result.
 */
export async function loopsFor(
  count: number,
  seconds: number,
  step: (loop: number) => Promise<unknown>,
  latency?: LatencyRecorder,
): Promise<number> {
  let last = performance.now();
  const until = last + seconds * 1000;
  let running = true;
  let steps = 0;
  const run = async (loop: number) => {
    while (running) {
      await step(loop);
      steps += 1;
      if (loop > 0) continue;
      const now = performance.now();
      latency?.add(now - last);
      last = now;
      if (now >= until) running = false;
    }
  };
  await Promise.all(Array.from({ length: count }, (_, loop) => run(loop)));
  return steps;
}

/** Runs something that says how much it did, and takes its time, this process's CPU, and the latencies it records. */
export async function timed(run: (latency: LatencyRecorder) => Promise<number>): Promise<Measured> {
  const latency = new LatencyRecorder();
  const watch = new Stopwatch();
  const figures = watch.figures(await run(latency));
  return { ...figures, ...latency.summary() };
}

/** Measures `count` callers, each of which takes its next step as soon as the one before is done. */
export function callers(
  count: number,
  step: (caller: number) => Promise<unknown>,
): (seconds: number) => Promise<Measured> {
  const recorded = async (caller: number, latency: LatencyRecorder) => {
    const start = performance.now();
    await step(caller);
    latency.record(start);
  };
  return (seconds) => timed((latency) => loopsFor(count, seconds, (caller) => recorded(caller, latency)));
}
