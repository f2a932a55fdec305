/** When a flush runs. */
import { clearTimeout, loopTimes, nextTick, now, setImmediate, setTimeout } from '../util/clock.js';
import { AdaptivePolicy, type FlushPolicy, GATHER } from './flush-policy.js';
import { LoopWatch } from './loop-watch.js';

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
 * - `'adaptive'`: as `'immediate'`, but while the event loop has time to wait, a part of the batch leaves as soon as it is
 *   worth a write, so that the server works while commands are still issued (`flush-policy.ts`).
 * - `'immediate'`: after the I/O callbacks of this turn of the event loop, so that commands issued by every request
 *   that arrived in this turn leave together: one write per turn, up to the limits.
 * - `'tick'`: when the running callback has ended, before further I/O is looked at. Smaller batches, sent sooner.
 */
export type Schedule = 'adaptive' | 'immediate' | 'tick' | ScheduleFunction;

/** The function behind a schedule. One of the user's serves all batches that are given the result: a Cluster's nodes. */
export function scheduleFunction(schedule: Schedule): BatchSchedule {
  if (schedule === 'adaptive' || schedule === 'immediate') return (flush) => void setImmediate(flush);
  if (schedule === 'tick') return (flush) => nextTick(flush);
  return groupedSchedule(schedule);
}

/** A batch of a group that waits for its flush, or has had it. */
interface Grouped {
  readonly number: number;
  readonly flush: () => void;
  /** The last batch that was open when this one was flushed or lost its connection; later ones are not its own. */
  last: number;
}

/**
 * A function of the user's may be a debounce, which forgets every flush but the last it was given, or a throttle, which
 * forgets every one but the first. So each flush sends all batches of the group that are open; one whose own batch is
 * gone, those that were open by then. If the function throws, they are not lost: they are flushed at once.
 */
function groupedSchedule(schedule: ScheduleFunction): BatchSchedule {
  const open = new Map<() => void, Grouped>();
  let last = 0;
  const close = (batch: Grouped) => {
    batch.last = last;
    open.delete(batch.flush);
  };
  const add = (flush: () => void) => {
    last += 1;
    const own: Grouped = { number: last, flush, last: Number.POSITIVE_INFINITY };
    open.set(flush, own);
    const flushOpen = () => {
      const limit = own.last;
      for (const batch of [...open.values()]) {
        if (batch.number > limit) continue;
        close(batch);
        batch.flush();
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
  const discard = (flush: () => void) => {
    const batch = open.get(flush);
    if (batch !== undefined) close(batch);
  };
  return Object.assign(add, { runsUserCode: true, discard } as const);
}

const adaptive = new AdaptivePolicy(new LoopWatch(loopTimes), now);

/** Whether parts of a batch leave before its schedule says so. Not where the options ask for larger batches. */
export function flushPolicy(options: {
  readonly schedule: Schedule;
  readonly maxFlushDelay: number;
  readonly shareReads: boolean;
}): FlushPolicy {
  const gathers = options.schedule !== 'adaptive' || options.maxFlushDelay > 0 || options.shareReads;
  return gathers ? GATHER : adaptive;
}

/** A timer that does not keep the process alive; returns the function that clears it. */
export function delay(ms: number, callback: () => void): () => void {
  const timer = setTimeout(callback, ms);
  timer.unref();
  return () => clearTimeout(timer);
}
