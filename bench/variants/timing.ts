/** How long things take, and what they cost this process. */

import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { build } from 'hdr-histogram-js';
import type { Latency, Measured } from './protocol.js';

const LONGEST_NS = 60e9;
const STEP_MS = 1;
/** So that a client that cannot keep up does not make the run endless. */
const MOST_UNANSWERED = 200_000;

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
  mean(): number {
    return this.#histogram.mean / 1000;
  }

  summary(): Required<Latency> {
    const at = (percentile: number) => this.#histogram.getValueAtPercentile(percentile) / 1000;
    return { p50: at(50), p95: at(95), p99: at(99), p999: at(99.9) };
  }
}

/** What a stretch of work took. */
export class Stopwatch {
  readonly #cpu = process.cpuUsage();
  readonly #start = performance.now();

  figures(commands: number): { commands: number; seconds: number; perSecond: number; cpuUs: number } {
    const seconds = (performance.now() - this.#start) / 1000;
    const { user, system } = process.cpuUsage(this.#cpu);
    return { commands, seconds, perSecond: commands / seconds, cpuUs: (user + system) / commands };
  }
}

/** Runs `count` loops, each of which does its next step as soon as the one before is done, for about `seconds`. */
export async function loopsFor(
  count: number,
  seconds: number,
  step: (loop: number) => Promise<unknown>,
): Promise<number> {
  const until = performance.now() + seconds * 1000;
  let running = true;
  let steps = 0;
  const run = async (loop: number) => {
    while (running) {
      await step(loop);
      steps += 1;
      // One loop keeps the time for all: reading the clock at each command would be part of the result.
      if (loop === 0 && performance.now() >= until) running = false;
    }
  };
  await Promise.all(Array.from({ length: count }, (_, loop) => run(loop)));
  return steps;
}

/** Does a step, and records how long it took. */
export function recorded<T extends unknown[]>(step: (...args: T) => Promise<unknown>, latency: LatencyRecorder) {
  return async (...args: T): Promise<void> => {
    const start = performance.now();
    await step(...args);
    latency.record(start);
  };
}

/** Runs something that says how much it did, and takes its time, this process's CPU, and the latencies it records. */
export async function timed(run: (latency: LatencyRecorder) => Promise<number>): Promise<Measured> {
  const latency = new LatencyRecorder();
  const watch = new Stopwatch();
  const figures = watch.figures(await run(latency));
  return { ...figures, latencyUs: latency.summary() };
}

/** Measures `count` callers, each of which takes its next step as soon as the one before is done. */
export function callers(
  count: number,
  step: (caller: number) => Promise<unknown>,
): (seconds: number) => Promise<Measured> {
  return (seconds) => timed((latency) => loopsFor(count, seconds, recorded(step, latency)));
}

/**
 * An open loop: each millisecond its share of commands falls due, whether or not the ones before were answered. A
 * command's time counts from the moment at which it was due, so what a stalled process could not even issue is in the
 * percentiles (no coordinated omission).
 */
export async function atRate(
  send: (index: number) => Promise<unknown>,
  perSecond: number,
  keyCount: number,
  seconds: number,
  latency: LatencyRecorder | undefined,
): Promise<number> {
  const start = performance.now();
  const until = start + seconds * 1000;
  const perStep = (perSecond * STEP_MS) / 1000;
  let issued = 0;
  let answered = 0;
  let failure: unknown;
  for (let step = 1; ; step += 1) {
    const due = start + step * STEP_MS;
    if (due >= until || issued - answered > MOST_UNANSWERED) break;
    // Steps that are late already are made up for at once.
    if (performance.now() < due) await sleep(due - performance.now());
    // Timers may be a little early.
    while (performance.now() < due) await nextTurn();
    for (const target = Math.round(step * perStep); issued < target; issued += 1) {
      send(issued % keyCount).then(
        () => {
          answered += 1;
          latency?.record(due);
        },
        (error: unknown) => {
          answered += 1;
          failure ??= error;
        },
      );
    }
  }
  while (answered < issued) await sleep(1);
  if (failure !== undefined) throw failure;
  return issued;
}
