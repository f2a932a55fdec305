import { nextTick, setImmediate } from './clock.js';

/** Receives the function that flushes the batch, and calls it once, later. */
export type ScheduleFunction = (flush: () => void) => void;

/**
 * - `'immediate'`: after the I/O callbacks of this turn of the event loop, so that the commands of all requests that
 *   arrived in this turn are sent together: one write per turn, up to the limits. Scripts leave in the middle of a turn
 *   that takes longer than 40 microseconds.
 * - `'tick'`: when the running callback has ended, before further I/O. Smaller batches, sent sooner.
 * - a function, called on the next tick: when it calls the `flush` that it is given.
 */
export type Schedule = 'immediate' | 'tick' | ScheduleFunction;

/** Decides when a flush runs. Must not run user code when called, because a command is being sent. */
export interface BatchSchedule {
  (flush: () => void): void;
  /** The batch of this flush was lost with its connection. */
  discard?(flush: () => void): void;
}

const groups = new WeakMap<ScheduleFunction, BatchSchedule>();

/**
 * The function for a schedule. A user function serves all clients that have it in their options, such as a Cluster's
 * nodes, or a client and its duplicates.
 */
export function scheduleFunction(schedule: Schedule): BatchSchedule {
  if (schedule === 'immediate') return setImmediate;
  if (schedule === 'tick') return nextTick;
  const group = groups.get(schedule) ?? groupedSchedule(schedule);
  groups.set(schedule, group);
  return group;
}

/**
 * A user function may be a debounce, which drops all flushes but the last, or a throttle, which drops all but the
 * first. So each flush sends all open batches of the group, even if its own batch was sent with others, or lost with
 * its connection. A batch may be sent earlier than the function decides, but never later. If the function throws, all
 * batches are flushed at once.
 */
function groupedSchedule(schedule: ScheduleFunction): BatchSchedule {
  /** The functions that flush the waiting batches. */
  const open = new Set<() => void>();
  const flushOpen = () => {
    for (const flush of [...open]) {
      open.delete(flush);
      flush();
    }
  };
  const callSchedule = () => {
    try {
      schedule(flushOpen);
    } catch (error) {
      flushOpen();
      nextTick(() => {
        throw error;
      });
    }
  };
  const add = (flush: () => void) => {
    open.add(flush);
    nextTick(() => open.has(flush) && callSchedule());
  };
  return Object.assign(add, { discard: (flush: () => void) => void open.delete(flush) });
}
