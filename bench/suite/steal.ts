import { readFileSync } from 'node:fs';

/** More than this share of the processors' time taken by others makes a figure one of theirs. */
const SHARE = 0.02;
const ATTEMPTS = 4;

/**
 * Measures again, up to four times, while the host of a virtual machine gives its processors to others (`steal` in
 * `/proc/stat`), and keeps the figures from the quietest time. Where there is no such count, the first.
 *
 * @param prepareAgain - what a measurement needs that is not the first.
 * @returns the figures, and whether they are from a quiet time.
 */
export async function undisturbed<T>(
  measure: () => Promise<T>,
  prepareAgain: () => Promise<unknown>,
  attempts = ATTEMPTS,
  times = processorTimes,
): Promise<[figures: T, quiet: boolean]> {
  let best: { figures: T; stolen: number } | undefined;
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    if (attempt > 0) await prepareAgain();
    const before = times();
    const figures = await measure();
    const after = times();
    const stolen = (after.stolen - before.stolen) / Math.max(after.all - before.all, 1);
    if (best === undefined || stolen < best.stolen) best = { figures, stolen };
    if (best.stolen <= SHARE) return [best.figures, true];
  }
  return [(best as { figures: T }).figures, false];
}

/** Ticks of all processors together since the machine started; zeros where the system does not count them. */
function processorTimes(): { all: number; stolen: number } {
  let stat: string;
  try {
    stat = readFileSync('/proc/stat', 'utf8');
  } catch {
    return { all: 0, stolen: 0 };
  }
  // proc(5): cpu user nice system idle iowait irq softirq steal guest guest_nice
  const ticks = stat.slice(0, stat.indexOf('\n')).split(/\s+/).slice(1, 9).map(Number);
  return { all: ticks.reduce((sum, value) => sum + value, 0), stolen: ticks[7] ?? 0 };
}
