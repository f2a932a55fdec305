import { TrialSlice } from './trial-slice.js';
import { type LoopTimes, PAUSE, VerdictHold } from './verdict-hold.js';

/** A trial ends when one side leads by this many pairs of slices, or after `MOST_PAIRS`. */
const CLEAR_LEAD = 5;
const MOST_PAIRS = 24;
/** The lead with which the last winner begins. */
const HEAD_STARTS = { all: 2, small: 0, none: -2 } as const;
/** The smallest lead that counts at the end of a trial without a clear winner. */
const SLIGHT_LEAD = 3;
/** What large turns of cheap commands must gain, as a share of the rate: their parts cost a fifth more CPU. */
const WORTH = 0.05;
/** A loop that runs code for more than this share of its time is saturated: only fewer system calls help. */
const SATURATED = 0.88;

/**
 * Which turns are sent in parts: all of them, the small ones and those of costly commands, or none. Parts of a small turn
 * are its first commands, which then leave as soon as a plain client's.
 */
export type Overlap = 'all' | 'small' | 'none';

/** Which turns are sent in parts. */
export interface OverlapState {
  readonly overlap: Overlap;
  /**
   * A connection's turn has ended.
   *
   * @param now - milliseconds.
   * @param work - that was sent in it.
   * @param connection - any object that stands for it.
   */
  turnEnded(now: number, work: number, connection: object): void;
}

/**
 * Finds out whether overlap is faster, for all connections of a thread.
 *
 * That depends on facts that a process cannot look up: whether client and server share a core, the cost of a write and
 * of a wake-up on this machine, the other load there. So the outcome decides: the work sent per time. A trial compares
 * slices of a few milliseconds (`trial-slice.ts`), with overlap and without, in pairs; the side that is faster in more of
 * them is kept for a while (`verdict-hold.ts`). If neither wins, the rate depends on other things, and parts of large
 * turns of cheap commands would only cost CPU. The others are then sent in parts to reduce latency, unless the loop is
 * saturated.
 *
 *     trial: slices with, without, without, with, ... ──one leads──▶ hold: the winner, up to 4 s ──▶ trial
 */
export class OverlapTrial implements OverlapState {
  overlap: Overlap = 'all';
  /** Of the last trial, if there was one. */
  #verdict: Overlap | undefined;
  /** Pairs won with overlap minus pairs won without. */
  #lead = 0;
  /** By how much overlap was faster, as a share, summed up over the pairs. */
  #gain = 0;
  #trying = false;
  /** Slices that have ended in this trial. */
  #slices = 0;
  readonly #slice = new TrialSlice();
  readonly #hold: VerdictHold;
  #from = 0;
  /** The running turn of the loop: its first connection and the others, when the first one ended it, and their work. */
  #first: object | undefined;
  readonly #others = new Set<object>();
  #turnFrom = 0;
  #turnWork = 0;
  /** Work per millisecond of the first slice of the pair. */
  #firstRate = 0;
  /** The loop's times in the slices without overlap. */
  #idle = 0;
  #active = 0;
  #before: LoopTimes = { idle: 0, active: 0 };

  constructor(readonly times: () => LoopTimes) {
    this.#hold = new VerdictHold(times);
  }

  turnEnded(now: number, work: number, connection: object): void {
    if (!this.#trying) {
      if (this.#verdict !== undefined && !this.#hold.isOver(now)) return;
      this.#begin(now);
    } else if (this.#first !== connection && !this.#others.has(connection)) {
      // Connections that send in the same turn of the loop end it one after the other.
      this.#others.add(connection);
      this.#turnWork += work;
      return;
    } else if (now - this.#turnFrom > PAUSE) {
      this.#from += now - this.#turnFrom;
    } else if (this.#slice.add(now - this.#turnFrom, this.#turnWork)) {
      this.#endSlice(now);
    }
    this.#first = connection;
    this.#others.clear();
    this.#turnFrom = now;
    this.#turnWork = work;
  }

  #begin(now: number): void {
    this.#trying = true;
    this.#from = now;
    this.#slices = 0;
    this.#lead = HEAD_STARTS[this.#verdict ?? 'small'];
    this.#gain = 0;
    this.#idle = 0;
    this.#active = 0;
    this.#beginSlice();
  }

  #beginSlice(): void {
    // With, without, without, with: a rate that rises or falls favours neither side.
    this.overlap = ((this.#slices + 1) & 2) === 0 ? 'all' : 'none';
    this.#slice.begin();
    if (this.overlap === 'none') this.#before = this.times();
  }

  #endSlice(now: number): void {
    const overlaps = this.overlap === 'all';
    if (!overlaps) {
      const { idle, active } = this.times();
      this.#idle += idle - this.#before.idle;
      this.#active += active - this.#before.active;
    }
    const { rate } = this.#slice;
    this.#slices += 1;
    if (this.#slices % 2 === 1) this.#firstRate = rate;
    else this.#compare(rate, overlaps ? 1 : -1);
    const ends = this.#slices % 2 === 0 && (Math.abs(this.#lead) >= CLEAR_LEAD || this.#slices === 2 * MOST_PAIRS);
    if (ends) this.#decide(now);
    else this.#beginSlice();
  }

  /** Compares the rate of a pair's second slice with that of its first; `side` is 1 if the second one overlapped. */
  #compare(rate: number, side: 1 | -1): void {
    if (rate === this.#firstRate) return;
    this.#lead += rate > this.#firstRate ? side : -side;
    this.#gain += (side * 2 * (rate - this.#firstRate)) / (rate + this.#firstRate);
  }

  #decide(now: number): void {
    this.#trying = false;
    const saturated = this.#active > SATURATED * (this.#idle + this.#active);
    const wins = this.#lead >= SLIGHT_LEAD;
    if (wins && this.#gain >= WORTH * (this.#slices / 2)) this.overlap = 'all';
    else this.overlap = !wins && (saturated || this.#lead <= -SLIGHT_LEAD) ? 'none' : 'small';
    this.#hold.begin(now, now - this.#from, this.overlap === this.#verdict);
    this.#verdict = this.overlap;
  }
}
