/** When a flush runs. */
import Denque from 'denque';
import { clearTimeout, nextTick, setImmediate, setTimeout } from '../util/clock.js';

/** Takes the function that flushes the batch and calls it once, later. */
export type ScheduleFunction = (flush: () => void) => void;

/** A schedule, and whether it runs code of the user's, which may send and flush itself. */
export interface BatchSchedule {
  (flush: () => void): void;
  readonly runsUserCode?: true;
}

/**
 * - `'immediate'`: after the I/O callbacks of this turn of the event loop, so that commands issued by every request
 *   that arrived in this turn leave together.
 * - `'tick'`: when the running callback has ended, before further I/O is looked at. Smaller batches, sent sooner.
 */
export type Schedule = 'immediate' | 'tick' | ScheduleFunction;

/** The function behind a schedule. One of the user's serves all batches that are given the result: a Cluster's nodes. */
export function scheduleFunction(schedule: Schedule): BatchSchedule {
  if (schedule === 'immediate') return (flush) => void setImmediate(flush);
  if (schedule === 'tick') return (flush) => nextTick(flush);
  return groupedSchedule(schedule);
}

/**
 * A function of the user's may be a debounce, which forgets every flush but the last it was given. So each flush sends
 * all batches that were opened up to its own. If the function throws, they are not lost: they are flushed at once.
 */
function groupedSchedule(schedule: ScheduleFunction): BatchSchedule {
  const open = new Denque<{ readonly number: number; readonly flush: () => void }>();
  let last = 0;
  const add = (flush: () => void) => {
    last += 1;
    const number = last;
    open.push({ number, flush });
    const flushOpen = () => {
      for (let first = open.peekFront(); first !== undefined && first.number <= number; first = open.peekFront()) {
        open.shift();
        first.flush();
      }
    };
    try {
      schedule(flushOpen);
    } catch (error) {
      flushOpen();
      nextTick(() => {
        throw error;
      });
    }
  };
  return Object.assign(add, { runsUserCode: true } as const);
}

/** A timer that does not keep the process alive; returns the function that clears it. */
export function delay(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  timer.unref();
  return () => clearTimeout(timer);
}
