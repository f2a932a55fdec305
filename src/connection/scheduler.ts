/** When a flush runs. */
import { clearTimeout, nextTick, setImmediate, setTimeout } from '../util/clock.js';

/** Takes the function that flushes the batch and calls it once, later. */
export type ScheduleFunction = (flush: () => void) => void;

/** A schedule, and whether it runs code of the user's, which may send and flush itself. */
export interface BatchSchedule {
  (flush: () => void): void;
  readonly runsUserCode?: true;
  /** The batch of this flush has gone with its connection. */
  discard?(flush: () => void): void;
}

/**
 * - `'adaptive'`: as `'immediate'`, but where that is faster, a part of the batch leaves as soon as it is worth a write, so
 *   that the server works while commands are still issued (`flush-policy.ts`).
 * - `'immediate'`: after the I/O callbacks of this turn of the event loop, so that commands issued by every request
 *   that arrived in this turn leave together: one write per turn, up to the limits.
 * - `'tick'`: when the running callback has ended, before further I/O is looked at. Smaller batches, sent sooner.
 */
export type Schedule = 'adaptive' | 'immediate' | 'tick' | ScheduleFunction;

/** By the function of the user's: whoever is given the same one shares what it remembers. */
const groups = new WeakMap<ScheduleFunction, BatchSchedule>();

/**
 * The function behind a schedule. One of the user's serves all batches of whoever has it in his options: a Cluster's
 * nodes, a client and its duplicates.
 */
export function scheduleFunction(schedule: Schedule): BatchSchedule {
  if (schedule === 'adaptive' || schedule === 'immediate') return (flush) => void setImmediate(flush);
  if (schedule === 'tick') return (flush) => nextTick(flush);
  let group = groups.get(schedule);
  if (group === undefined) {
    group = groupedSchedule(schedule);
    groups.set(schedule, group);
  }
  return group;
}

/** A batch that waits for its flush, or has had it. */
interface Grouped {
  /** It was flushed with others: its own flush, if that is still to come, is not that of what was opened since. */
  flushed: boolean;
}

/**
 * A function of the user's may be a debounce, which forgets every flush but the last it was given, or a throttle, which
 * forgets every one but the first. So each flush sends all batches of the group that are open: also one that comes when
 * its own batch has gone with its connection, since a throttle forgets those of the next connection for it. If the
 * function throws, they are not lost: they are flushed at once.
 */
function groupedSchedule(schedule: ScheduleFunction): BatchSchedule {
  /** By the function that flushes the batch. */
  const open = new Map<() => void, Grouped>();
  let flushing = 0;

  const flushOpen = (flushed: boolean) => {
    flushing += 1;
    try {
      for (const [flush, batch] of [...open]) {
        open.delete(flush);
        batch.flushed = flushed;
        flush();
      }
    } finally {
      flushing -= 1;
    }
  };
  const handOver = (batch: Grouped) => {
    try {
      schedule(() => {
        if (!batch.flushed) flushOpen(true);
        batch.flushed = true;
      });
    } catch (error) {
      // It may have kept one of the flushes it was given, and forget others for that.
      flushOpen(false);
      nextTick(() => {
        throw error;
      });
    }
  };
  const add = (flush: () => void) => {
    const batch: Grouped = { flushed: false };
    open.set(flush, batch);
    if (flushing === 0) {
      handOver(batch);
      return;
    }
    // Opened by a subscriber: a throttle may take the flush that is running for one that is still to come.
    nextTick(() => {
      if (open.get(flush) === batch) handOver(batch);
    });
  };
  return Object.assign(add, { runsUserCode: true, discard: (flush: () => void) => void open.delete(flush) } as const);
}

/** A timer that does not keep the process alive; returns the function that clears it. */
export function delay(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  timer.unref();
  return () => clearTimeout(timer);
}
