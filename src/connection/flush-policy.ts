/**
 * When a part of a batch leaves before the end of its turn (`schedule: 'adaptive'`).
 *
 * One write per turn saves system calls and costs idle time: the server has nothing to do while commands are issued,
 * and the client has nothing to do while they run. Where that pays, a part leaves as soon as it is worth a write, so that
 * issuing, running and settling overlap ("natural" or "smart batching"). Where no processor is idle, only fewer system
 * calls help: all commands gather to the end of the turn. Which of the two pays is found out by trial
 * (`overlap-trial.ts`).
 *
 * This decides the flush reason `overlap`; where the others are decided stands in `batch.ts`. A policy is given its clock
 * and its trial: a test can drive every decision. The figures are from docs/performance.md.
 */
import { loopTimes, now } from '../util/clock.js';
import { type OverlapState, OverlapTrial } from './overlap-trial.js';
import type { Schedule } from './scheduler.js';

/** Decides for a batch when a part of it leaves. */
export interface FlushPolicy {
  /**
   * A command was added.
   *
   * @param commands - in the open batch.
   * @param work - the server's work for the open batch, in units of a short `GET`.
   * @param awaiting - commands on the wire that await their reply, the open batch excluded.
   * @param openedAt - milliseconds, when the batch's first command was added.
   * @returns whether the pending bytes leave now.
   */
  sendsNow(commands: number, work: number, awaiting: number, openedAt: number): boolean;
  /** The turn of the event loop has ended, `now` in milliseconds. */
  turnEnded(now: number): void;
}

/** For `'immediate'`, `'tick'` and the user's functions: a batch leaves when its schedule says so. */
export const GATHER: FlushPolicy = { sendsNow: () => false, turnEnded: () => {} };

/** Work that is worth a write: about 4 µs of a server's time, half of what the write costs the client. */
const PART = 8;
/** A turn leaves in about this many parts: they keep a server busy, and more are system calls without a gain. */
const PARTS = 3;
/** No part is larger: the server has work for as long as a round trip takes. */
const LARGEST_PART = 128;
/** While fewer commands than this await their reply, a command leaves at once, as from a plain client. */
const LEADING_EDGE = 3;
/** Not where turns have more work than this: a large turn is not worth three lone writes. */
const SMALL_TURN = 10;
/** The weight of the last turn in what the next ones are expected to be. */
const DAMPING = 1 / 8;
/** The clock is read once per this many commands; reading it costs as much as a tenth of a command. */
const LOOK = 4;
/** A command that has waited this long leaves, in milliseconds: this turn is long. */
const LONG_WAIT = 0.02;

/** Sends parts while overlap pays. */
export class AdaptivePolicy implements FlushPolicy {
  /** Work of recent turns, a moving average. */
  #expected = 0;
  /** Work of this turn that has left, and that is in the open batch. */
  #sent = 0;
  #open = 0;

  constructor(
    readonly trial: OverlapState,
    /** Milliseconds of a monotonic clock. */
    readonly now: () => number,
  ) {}

  sendsNow(commands: number, work: number, awaiting: number, openedAt: number): boolean {
    this.#open = work;
    if (!this.trial.overlaps || !this.#isWorthAWrite(commands, work, awaiting, openedAt)) return false;
    this.#sent += work;
    this.#open = 0;
    return true;
  }

  #isWorthAWrite(commands: number, work: number, awaiting: number, openedAt: number): boolean {
    const expected = this.#expected;
    if (expected > SMALL_TURN) return work >= PART && (work >= LARGEST_PART || work * PARTS >= expected);
    // The server is almost idle.
    if (awaiting < LEADING_EDGE) return true;
    return work >= PART || (commands % LOOK === 0 && this.now() - openedAt >= LONG_WAIT);
  }

  turnEnded(now: number): void {
    const work = this.#sent + this.#open;
    this.#expected += (work - this.#expected) * DAMPING;
    this.#sent = 0;
    this.#open = 0;
    this.trial.turnEnded(now, work);
  }
}

/** One for all connections of a thread. */
const trial = new OverlapTrial(loopTimes);

/** Whether parts of a batch leave before its schedule says so. Not where the options ask for larger batches. */
export function flushPolicy(options: {
  readonly schedule: Schedule;
  readonly maxFlushDelay: number;
  readonly shareReads: boolean;
}): FlushPolicy {
  const gathers = options.schedule !== 'adaptive' || options.maxFlushDelay > 0 || options.shareReads;
  return gathers ? GATHER : new AdaptivePolicy(trial, now);
}
