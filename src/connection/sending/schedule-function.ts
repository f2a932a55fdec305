/** When a flush runs. */
import type { Schedule, ScheduleFunction } from '../../options.js';
import { clearTimeout, nextTick, setImmediate, setTimeout } from '../../util/clock.js';

/** A schedule, and whether it runs user code, which may send and flush itself. */
export interface BatchSchedule {
  (flush: () => void): void;
  readonly runsUserCode?: true;
  /** The batch of this flush was lost with its connection. */
  discard?(flush: () => void): void;
}

/** By user function: all connections with the same function share its state. */
const groups = new WeakMap<ScheduleFunction, BatchSchedule>();

/**
 * The function behind a schedule. A user function serves the batches of all clients that have it in their options: a
 * Cluster's nodes, a client and its duplicates.
 */
export function scheduleFunction(schedule: Schedule): BatchSchedule {
  if (schedule === 'immediate') return (flush) => void setImmediate(flush);
  if (schedule === 'tick') return (flush) => nextTick(flush);
  let group = groups.get(schedule);
  if (group === undefined) {
    group = groupedSchedule(schedule);
    groups.set(schedule, group);
  }
  return group;
}

/** A batch that waits for its flush, or has been flushed. */
interface Grouped {
  /** It was flushed with others. If its own flush still comes, that does not count for batches opened since. */
  flushed: boolean;
}

/**
 * A user function may be a debounce, which drops every flush except the last one, or a throttle, which drops every
 * flush except the first. So each flush sends all open batches of the group. This includes a flush whose own batch was
 * lost with its connection, since a throttle then drops the flushes of the next connection. If the function throws, the
 * batches are not lost: they are flushed at once.
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
  const callSchedule = (batch: Grouped) => {
    try {
      schedule(() => {
        if (!batch.flushed) flushOpen(true);
        batch.flushed = true;
      });
    } catch (error) {
      // It may have kept one of the flushes that it got, and then drop the others.
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
      callSchedule(batch);
      return;
    }
    // Opened by a subscriber: a throttle may mistake the flush that is running for one that is still to come.
    nextTick(() => {
      if (open.get(flush) === batch) callSchedule(batch);
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
