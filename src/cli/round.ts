import type { Client } from './clients.js';

/** One round of one variant. */
export interface Sample {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** CPU of this process. */
  readonly cpuUsPerCommand: number;
}

/** Reading the clock costs as much as a coalesced command, so only one command in this many is timed. */
const TIMED_EVERY = 16;
const MAX_TIMED = 1_000_000;

const latencies = new Float64Array(MAX_TIMED);

/** `concurrency` callers, each of which awaits one GET after the other, for `seconds`. */
export async function measure(
  client: Client,
  keys: readonly string[],
  concurrency: number,
  seconds: number,
  signal: AbortSignal,
): Promise<Sample> {
  let running = true;
  let commands = 0;
  let timed = 0;
  const timer = setTimeout(() => {
    running = false;
  }, seconds * 1000);
  const stop = (): void => {
    running = false;
  };
  signal.addEventListener('abort', stop);

  const call = async (caller: number): Promise<void> => {
    // Each starts at a different key, so that the callers do not all read one key at the same time.
    let next = Math.floor((caller * keys.length) / concurrency);
    let untilTimed = caller % TIMED_EVERY;
    while (running) {
      const key = keys[next]!;
      next = next + 1 === keys.length ? 0 : next + 1;
      if (untilTimed > 0) {
        untilTimed -= 1;
        await client.get(key);
      } else {
        untilTimed = TIMED_EVERY - 1;
        const sent = performance.now();
        await client.get(key);
        if (timed < MAX_TIMED) latencies[timed++] = performance.now() - sent;
      }
      commands += 1;
    }
  };

  const cpuBefore = process.cpuUsage();
  const start = performance.now();
  try {
    await Promise.all(Array.from({ length: concurrency }, (_, caller) => call(caller)));
  } finally {
    running = false;
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
  const elapsed = (performance.now() - start) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  const sorted = latencies.slice(0, timed).sort();
  return {
    perSecond: commands / elapsed,
    p50Ms: percentile(sorted, 0.5),
    p99Ms: percentile(sorted, 0.99),
    cpuUsPerCommand: (cpu.user + cpu.system) / commands,
  };
}

function percentile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
