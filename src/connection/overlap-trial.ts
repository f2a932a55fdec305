import { TrialSlice } from './trial-slice.js';
import { type LoopTimes, PAUSE, VerdictHold } from './verdict-hold.js';

/** A trial ends when one side leads by this many pairs of slices, or after `MOST_PAIRS`. */
const CLEAR_LEAD = 5;
const MOST_PAIRS = 24;
/** The lead with which the last winner begins. */
const HEAD_START = 2;
/** The smallest lead that counts at the end of a trial without a clear winner. */
const SLIGHT_LEAD = 3;
/** What large turns of cheap commands must gain, as a share of the rate: their parts cost a fifth more CPU. */
const WORTH = 0.05;
/** A loop that runs code for more than this share of its time is saturated: only fewer system calls help. */
const SATURATED = 0.88;

/**
 * Which turns are sent in parts:
 *
 * - `parts`: all of them;
 * - `led`: all of them, and a small part of a large turn wakes an idle server first;
 * - `small`: small ones and those of costly commands. Parts of a small turn are its first commands, which then leave as
 *   soon as a plain client's;
 * - `none`.
 */
export type Overlap = 'parts' | 'led' | 'small' | 'none';

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
 * Finds out whether overlap is faster, and which kind of it, for all connections of a thread.
 *
 * That depends on facts that a process cannot look up: whether client and server share a core, the cost of a write and
 * of a wake-up on this machine, the other load there. So the outcome decides: the work sent per time. A trial compares
 * slices of a few milliseconds (`trial-slice.ts`) of two sides in pairs; the side that is faster in more of them is kept
 * for a while (`verdict-hold.ts`). One side overlaps, and the other one is `none`; after such a trial is won, the next one
 * compares both kinds of overlap, and after it is lost, the next one tries the other kind. If neither side wins, the rate
 * depends on other things, and parts of large turns of cheap commands would only cost CPU. The others are then sent in
 * parts to reduce latency, unless the loop is saturated.
 *
 *     trial: slices of A, B, B, A, ... ──one leads──▶ hold: the winner, up to 4 s ──▶ trial
 */
export class OverlapTrial implements OverlapState {
  overlap: Overlap = 'led';
  /** Of the last trial, if there was one. */
  #verdict: Overlap | undefined;
  /** The kind of overlap that was tried last. */
  #kind: 'parts' | 'led' = 'parts';
  /** What the trial compares. */
  #sides: readonly [Overlap, Overlap] = ['led', 'none'];
  /** Pairs won by the first side minus pairs won by the second. */
  #lead = 0;
  /** By how much the first side was faster, as a share, summed up over the pairs. */
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
      if (this.#verdict !== undefined && !this.#hold.isOver(now, work)) return;
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
    const other = this.#kind === 'led' ? 'parts' : 'led';
    const won = this.#verdict === this.#kind;
    if (won && this.#sides[1] === 'none') {
      this.#sides = [other, this.#kind];
    } else {
      if (!won) this.#kind = other;
      this.#sides = [this.#kind, 'none'];
    }
    this.#trying = true;
    this.#from = now;
    this.#slices = 0;
    this.#lead = HEAD_START * (Number(this.#verdict === this.#sides[0]) - Number(this.#verdict === this.#sides[1]));
    this.#gain = 0;
    this.#idle = 0;
    this.#active = 0;
    this.#beginSlice();
  }

  #beginSlice(): void {
    // The first side, the second, the second, the first: a rate that rises or falls favours neither.
    this.overlap = this.#sides[((this.#slices + 1) & 2) / 2] as Overlap;
    this.#slice.begin();
    if (this.overlap === 'none') this.#before = this.times();
  }

  #endSlice(now: number): void {
    if (this.overlap === 'none') {
      const { idle, active } = this.times();
      this.#idle += idle - this.#before.idle;
      this.#active += active - this.#before.active;
    }
    const { rate } = this.#slice;
    this.#slices += 1;
    if (this.#slices % 2 === 1) this.#firstRate = rate;
    else this.#compare(rate, this.overlap === this.#sides[0] ? 1 : -1);
    const ends = this.#slices % 2 === 0 && (Math.abs(this.#lead) >= CLEAR_LEAD || this.#slices === 2 * MOST_PAIRS);
    if (ends) this.#decide(now);
    else this.#beginSlice();
  }

  /** Compares the rate of a pair's second slice with that of its first; `side` is 1 if the second one was the first side's. */
  #compare(rate: number, side: 1 | -1): void {
    if (rate === this.#firstRate) return;
    this.#lead += rate > this.#firstRate ? side : -side;
    this.#gain += (side * 2 * (rate - this.#firstRate)) / (rate + this.#firstRate);
  }

  #decide(now: number): void {
    this.#trying = false;
    const ofKinds = this.#sides[1] !== 'none';
    this.overlap = ofKinds ? this.#kindOfOverlap() : this.#overlapOrNot();
    this.#hold.begin(now, now - this.#from, ofKinds || this.overlap === this.#verdict);
    this.#verdict = this.overlap;
  }

  #overlapOrNot(): Overlap {
    const saturated = this.#active > SATURATED * (this.#idle + this.#active);
    const wins = this.#lead >= SLIGHT_LEAD;
    if (wins && this.#gain >= WORTH * (this.#slices / 2)) return this.#kind;
    return !wins && (saturated || this.#lead <= -SLIGHT_LEAD) ? 'none' : 'small';
  }

  #kindOfOverlap(): Overlap {
    if (this.#lead >= SLIGHT_LEAD) this.#kind = this.#kind === 'led' ? 'parts' : 'led';
    return this.#kind;
  }
}
