/** When a flush runs. */
import { clearTimeout, nextTick, setImmediate, setTimeout } from '../util/clock.js';

/** Takes the function that flushes the batch and calls it once, later. */
export type ScheduleFunction = (flush: () => void) => void;

/**
 * - `'immediate'`: after the I/O callbacks of this turn of the event loop, so that commands issued by every request
 *   that arrived in this turn leave together.
 * - `'tick'`: when the running callback has ended, before further I/O is looked at. Smaller batches, sent sooner.
 */
export type Schedule = 'immediate' | 'tick' | ScheduleFunction;

/** The function behind a schedule. A function of the user's that throws must not lose the batch: it is flushed at once. */
export function scheduleFunction(schedule: Schedule): ScheduleFunction {
  if (schedule === 'immediate') return (flush) => void setImmediate(flush);
  if (schedule === 'tick') return (flush) => nextTick(flush);
  return (flush) => {
    try {
      schedule(flush);
    } catch (error) {
      flush();
      nextTick(() => {
        throw error;
      });
    }
  };
}

/** A timer that does not keep the process alive; returns the function that clears it. */
export function delay(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  timer.unref();
  return () => clearTimeout(timer);
}
