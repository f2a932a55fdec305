/** A slice takes at least this many milliseconds, and at least `SLICE_TURNS` turns. */
const SLICE = 3;
const SLICE_TURNS = 8;
/** A trial ends when one side leads by this many pairs of slices, or after `MOST_PAIRS`. */
const CLEAR_LEAD = 5;
const MOST_PAIRS = 24;
/** The lead that the last winner begins with. */
const HEAD_START = 2;
/** The least lead that counts at the end of a trial without a clear one. */
const SLIGHT_LEAD = 3;
/** Milliseconds until the next trial: twice as many each time that the winner is the same. */
const FIRST_HOLD = 500;
const LONGEST_HOLD = 4_000;
/** A loop that runs code for more than this share of its time is saturated: without a winner, commands gather. */
const SATURATED = 0.88;

/** Whether parts of a batch are sent. */
export interface OverlapState {
  readonly overlaps: boolean;
  /** A turn of the event loop has ended, `now` in milliseconds, in which this much work was sent. */
  turnEnded(now: number, work: number): void;
}

/** Milliseconds that the loop has waited for events (`idle`) and run code (`active`), since the process began. */
export interface LoopTimes {
  readonly idle: number;
  readonly active: number;
}

/**
 * Finds out whether overlap pays, for all connections of a thread.
 *
 * Whether it does depends on what nobody can ask for: whether client and server share a core, what a write and a
 * wake-up cost on this machine, who else is busy there. So the outcome decides: the work that is sent in a time. A trial
 * compares slices of some milliseconds, with overlap and without, in pairs; the side that is faster in more of them is
 * kept for seconds. Where neither wins, the rate is not ours to change: parts are sent, for the sake of latency, unless
 * the loop is saturated.
 *
 *     trial: slices with, without, without, with, ... ──one leads──▶ hold: the winner, 0.5 to 4 s ──▶ trial
 */
export class OverlapTrial implements OverlapState {
  overlaps = true;
  /** Whether overlap has won the last trial, if there was one. */
  #winner: boolean | undefined;
  /** Pairs won by overlap less pairs won by gathering. */
  #lead = 0;
  #trying = false;
  /** Slices that have ended in this trial. */
  #slices = 0;
  #hold = FIRST_HOLD;
  #from = 0;
  #until = 0;
  #turns = 0;
  #work = 0;
  /** Work per millisecond of the first slice of the pair. */
  #firstRate = 0;
  /** The loop's times in the slices without overlap. */
  #idle = 0;
  #active = 0;
  #before: LoopTimes = { idle: 0, active: 0 };

  constructor(readonly times: () => LoopTimes) {}

  turnEnded(now: number, work: number): void {
    this.#turns += 1;
    this.#work += work;
    if (now < this.#until) return;
    if (!this.#trying) this.#begin();
    else if (this.#turns >= SLICE_TURNS) this.#endSlice(now);
    else return;
    if (this.#trying) this.#beginSlice(now);
  }

  #begin(): void {
    this.#trying = true;
    this.#slices = 0;
    if (this.#winner !== undefined) this.#lead = this.#winner ? HEAD_START : -HEAD_START;
    this.#idle = 0;
    this.#active = 0;
  }

  #beginSlice(now: number): void {
    // With, without, without, with: a rate that rises or falls favours neither side.
    this.overlaps = ((this.#slices + 1) & 2) === 0;
    this.#from = now;
    this.#until = now + SLICE;
    this.#turns = 0;
    this.#work = 0;
    if (!this.overlaps) this.#before = this.times();
  }

  #endSlice(now: number): void {
    if (!this.overlaps) {
      const { idle, active } = this.times();
      this.#idle += idle - this.#before.idle;
      this.#active += active - this.#before.active;
    }
    const rate = this.#work / (now - this.#from);
    this.#slices += 1;
    if (this.#slices % 2 === 1) {
      this.#firstRate = rate;
      return;
    }
    if (rate !== this.#firstRate) this.#lead += rate > this.#firstRate === this.overlaps ? 1 : -1;
    if (Math.abs(this.#lead) >= CLEAR_LEAD || this.#slices === 2 * MOST_PAIRS) this.#decide(now);
  }

  #decide(now: number): void {
    this.#trying = false;
    const saturated = this.#active > SATURATED * (this.#idle + this.#active);
    this.overlaps = saturated ? this.#lead >= SLIGHT_LEAD : this.#lead > -SLIGHT_LEAD;
    this.#hold = this.overlaps === this.#winner ? Math.min(2 * this.#hold, LONGEST_HOLD) : FIRST_HOLD;
    this.#until = now + this.#hold;
    this.#winner = this.overlaps;
  }
}
