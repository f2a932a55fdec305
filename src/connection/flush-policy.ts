/**
 * When a part of a batch is sent before the end of its turn (`schedule: 'adaptive'`).
 *
 * One write per turn saves system calls and costs idle time: the server has nothing to do while commands are issued,
 * and the client has nothing to do while they run. Where overlap is faster, a part is sent as soon as it is worth a
 * write, so that issuing, running and settling overlap ("natural" or "smart batching"). Where no processor is idle,
 * only fewer system calls help, so all commands wait for the end of the turn. Trials find out which of the two is
 * faster (`overlap-trial.ts`), and whether it pays to poll for the replies to a turn that is not large
 * (`busy-poll.ts`). Where replies take much longer than the turn (`round-trip.ts`), small turns have nothing to gain.
 *
 * This decides the flush reason `overlap`; `batch.ts` says where the others are decided. A policy gets its clock and
 * its trial as arguments, so a test can drive every decision. The figures are from docs/performance.md.
 */

import type { Schedule } from '../options.js';
import { loopTimes, now } from '../util/clock.js';
import { mayPoll, type OverlapState, OverlapTrial, type TurnSize } from './overlap-trial.js';
import { RoundTrip } from './round-trip.js';

/** Decides when a part of a batch is sent. */
export interface FlushPolicy {
  /**
   * A command was added.
   *
   * @param commands - in the open batch.
   * @param work - the server's work for the open batch, in units of a short `GET`.
   * @param awaiting - commands on the wire that await their reply, the open batch excluded.
   * @param openedAt - milliseconds, when the batch's first command was added.
   * @returns whether to send the pending bytes now.
   */
  sendsNow(commands: number, work: number, awaiting: number, openedAt: number): boolean;
  /**
   * The turn of the event loop has ended.
   *
   * @param now - milliseconds.
   * @returns whether to poll for its replies.
   */
  turnEnded(now: number): boolean;
  /** Replies have come. */
  answered(): void;
}

/** For `'immediate'`, `'tick'` and user functions: only the schedule decides when a batch is sent. */
export const GATHER: FlushPolicy = { sendsNow: () => false, turnEnded: () => false, answered: () => {} };

/** Work that is worth a write: about 4 µs of a server's time, half of what the write costs the client. */
const PART = 8;
/** A turn is sent in about this many parts: they keep a server busy, and more parts are only more system calls. */
const PARTS = 3;
/**
 * Where nothing awaits its reply, the server may sleep, and it wakes up for as long as it takes to issue tens of commands.
 * If a trial finds that faster, the first command of a turn leaves at once, before the others. Turns of more work than
 * this are issued for so long that it makes no difference when the server wakes up.
 */
const LARGEST_LED = 384;
/**
 * A first command replaces one of the parts of a turn with up to this much work: more writes cost more than they gain. In
 * turns of more work, which are huge, it is one write more.
 */
const SMALL_LED = 160;
/** After a first command, up to this much work is not worth two more writes: the rest leaves together. */
const SMALLEST_LED = 40;
/** No part is larger: with turns of thousands of commands, the client would wait long for the first replies. */
const LARGEST_PART = 512;
/** While fewer commands than this await their reply, a command is sent at once, as by a plain client. */
const LEADING_EDGE = 3;
/** Only in small turns: of no more work than this. A larger one is not worth three lone writes. */
const SMALL_TURN = 8;
/** Or of no more commands, and not much more work: a few longer values. */
const FEW_COMMANDS = 8;
const SMALL_TURN_OF_FEW = 64;
/** Turns of up to this much work are medium: to poll for their replies takes no more CPU than to wait for them. */
const MEDIUM_TURN = 24;
/** Turns of fewer commands, on average, are lone commands: one write each, whenever they leave. */
const MORE_THAN_ONE = 1.5;
/** The weight of the last turn in the estimate of the next ones. */
const DAMPING = 1 / 8;
/** The clock is read once per this many commands; reading it costs as much as a tenth of a command. */
const LOOK = 4;
/** A command that has waited for this many milliseconds is sent: this turn is long. */
const LONG_WAIT = 0.02;

/** Sends parts while overlap is faster. */
export class AdaptivePolicy implements FlushPolicy {
  /** Work and commands of recent turns, moving averages. */
  #expected = 0;
  #expectedCommands = 0;
  /** Work and commands of this turn that have been sent, and those in the open batch. */
  #sent = 0;
  #sentCommands = 0;
  #open = 0;
  #openCommands = 0;
  /** When the first command of this turn was added, if nothing awaited its reply then. */
  #aloneSince: number | undefined;
  /** Whether the first command of this turn has left at once, to wake the server. */
  #led = false;
  readonly #roundTrip = new RoundTrip();

  constructor(
    readonly trial: OverlapState,
    /** Milliseconds of a monotonic clock. */
    readonly now: () => number,
  ) {}

  sendsNow(commands: number, work: number, awaiting: number, openedAt: number): boolean {
    if (this.#sent === 0 && this.#open === 0) this.#aloneSince = awaiting === 0 ? openedAt : undefined;
    this.#open = work;
    this.#openCommands = commands;
    if (!this.#isWorthAWrite(commands, work, awaiting, openedAt)) return false;
    if (this.#sent === 0 && this.#aloneSince !== undefined) this.#roundTrip.sent(openedAt);
    this.#sent += work;
    this.#sentCommands += commands;
    this.#open = 0;
    this.#openCommands = 0;
    return true;
  }

  #isWorthAWrite(commands: number, work: number, awaiting: number, openedAt: number): boolean {
    const expected = this.#expected;
    const { overlap } = this.trial;
    if (overlap === 'none') return false;
    if (this.#size() !== 'small') {
      // Where large turns wait for their end, commands do not that are worth a write each.
      if (overlap === 'small' && work < PART * commands) return false;
      if (this.#sent === 0) {
        this.#led = overlap === 'led' && awaiting === 0 && expected <= LARGEST_LED;
        if (this.#led) return true;
      }
      return work >= PART && (work >= LARGEST_PART || work * this.#parts(expected) >= expected);
    }
    if (this.#expectedCommands >= MORE_THAN_ONE && this.#roundTrip.isLong) return false;
    // The server is almost idle.
    if (awaiting < LEADING_EDGE) return true;
    return work >= PART || (commands % LOOK === 0 && this.now() - openedAt >= LONG_WAIT);
  }

  /**
   * In how many parts of equal size a turn that is not small is sent, after its first command if that has left; 0 if all
   * of it leaves at the end.
   */
  #parts(expected: number): number {
    if (!this.#led || expected > SMALL_LED) return PARTS;
    return expected > SMALLEST_LED ? PARTS - 1 : 0;
  }

  /** Of recent turns. */
  #size(): TurnSize {
    const expected = this.#expected;
    if (expected <= SMALL_TURN) return 'small';
    if (expected <= SMALL_TURN_OF_FEW && this.#expectedCommands <= FEW_COMMANDS) return 'small';
    if (expected <= MEDIUM_TURN) return 'medium';
    return expected <= SMALL_LED ? 'large' : 'huge';
  }

  turnEnded(now: number): boolean {
    const work = this.#sent + this.#open;
    if (this.#aloneSince !== undefined) {
      if (this.#sent === 0) this.#roundTrip.sent(now);
      this.#roundTrip.issued(now - this.#aloneSince);
      this.#aloneSince = undefined;
    }
    this.#expected += (work - this.#expected) * DAMPING;
    this.#expectedCommands += (this.#sentCommands + this.#openCommands - this.#expectedCommands) * DAMPING;
    this.#sent = 0;
    this.#sentCommands = 0;
    this.#open = 0;
    this.#openCommands = 0;
    const size = this.#size();
    this.trial.turnEnded(now, work, this, size);
    return mayPoll(size) && this.trial.polls;
  }

  answered(): void {
    this.#roundTrip.answered(this.now);
  }
}

/** One for all connections of a thread. */
const trial = new OverlapTrial(loopTimes);

/** Whether parts of a batch are sent before its schedule runs. Not if the options ask for larger batches. */
export function flushPolicy(options: {
  readonly schedule: Schedule;
  readonly maxFlushDelay: number;
  readonly shareReads: boolean;
}): FlushPolicy {
  const gathers = options.schedule !== 'adaptive' || options.maxFlushDelay > 0 || options.shareReads;
  return gathers ? GATHER : new AdaptivePolicy(trial, now);
}
