import type { Schedule, ScheduleFunction } from '../../options.js';
import { nextTick, setImmediate } from '../../util/clock.js';

/** Decides when a flush runs; and whether it runs user code, which may send and flush itself. */
export interface BatchSchedule {
  (flush: () => void): void;
  readonly runsUserCode?: true;
  /** The batch of this flush was lost with its connection. */
  discard?(flush: () => void): void;
}

const groups = new WeakMap<ScheduleFunction, BatchSchedule>();

/**
 * The function behind a schedule. A user function serves the batches of all clients that have it in their options: a
 * Cluster's nodes, a client and its duplicates.
 */
export function scheduleFunction(schedule: Schedule): BatchSchedule {
  if (schedule === 'immediate') return setImmediate;
  if (schedule === 'tick') return nextTick;
  const group = groups.get(schedule) ?? groupedSchedule(schedule);
  groups.set(schedule, group);
  return group;
}

/**
 * A user function may be a debounce, which drops every flush except the last one, or a throttle, which drops every
 * flush except the first. So each flush sends all open batches of the group. This includes a flush whose own batch was
 * lost with its connection, since a throttle then drops the flushes of the next connection. If the function throws, the
 * batches are not lost: they are flushed at once.
 */
function groupedSchedule(schedule: ScheduleFunction): BatchSchedule {
  /**
   * The batches that wait, by the function that flushes each. One that was flushed with others notes it: if its own flush
   * still comes, that does not count for batches opened since.
   */
  const open = new Map<() => void, { flushed: boolean }>();
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
  const callSchedule = (batch: { flushed: boolean }) => {
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
    const batch = { flushed: false };
    open.set(flush, batch);
    // Opened by a subscriber: a throttle may mistake the flush that is running for one that is still to come.
    if (flushing > 0) nextTick(() => open.get(flush) === batch && callSchedule(batch));
    else callSchedule(batch);
  };
  return Object.assign(add, { runsUserCode: true, discard: (flush: () => void) => void open.delete(flush) } as const);
}
