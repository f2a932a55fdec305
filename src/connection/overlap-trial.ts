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
/** What a first command that wakes the server must gain in huge turns: it is one write more there. */
const WORTH_LEADING = 0.05;
/** What polling must gain, as a share of the rate, since the loop is then busy all the time, */
const WORTH_POLLING = 0.15;
/** and the lead that decides on it: where requests come at a rate of their own, neither side is faster. */
const CLEAR_LEAD_OF_POLLING = 8;
/**
 * After a pause, the kernel often wakes a server on its client's processor, where polling is slower, and moves it
 * elsewhere when the loop has polled for some 30 ms. So waiting needs a larger lead,
 */
const CLEAR_LEAD_OF_WAITING = 16;
/** and a gain of this share of the rate, over all pairs of a trial, decides for polling whatever the lead. */
const CLEAR_GAIN_OF_POLLING = 0.3;
/** A loop that runs code for more than this share of its time is saturated: only fewer system calls help. */
const SATURATED = 0.88;

/**
 * Which turns are sent in parts:
 *
 * - `parts`: all of them;
 * - `led`: all of them, and the first command of a large turn wakes an idle server first;
 * - `small`: small ones and those of costly commands. Parts of a small turn are its first commands, which then leave as
 *   soon as a plain client's;
 * - `none`.
 */
export type Overlap = 'parts' | 'led' | 'small' | 'none';

/**
 * How much recent turns sent. Small turns leave the same way under both kinds of overlap, and huge ones in one write more
 * if their first command leads. After small and medium ones it may pay to poll for the replies.
 */
export type TurnSize = 'small' | 'medium' | 'large' | 'huge';

/** Whether it may pay to poll for the replies to such turns. */
export function mayPoll(size: TurnSize): boolean {
  return size === 'small' || size === 'medium';
}

/** Which turns are sent in parts, and whether the loop polls for replies. */
export interface OverlapState {
  readonly overlap: Overlap;
  /** Whether to poll for the replies to a small or medium turn (`busy-poll.ts`). */
  readonly polls: boolean;
  /**
   * A connection's turn has ended.
   *
   * @param now - milliseconds.
   * @param work - that was sent in it.
   * @param connection - any object that stands for it.
   * @param size - of its recent turns.
   */
  turnEnded(now: number, work: number, connection: object, size: TurnSize): void;
}

/** What a trial compares: overlap and none, both kinds of overlap, or polling and waiting. */
type Question = 'overlap' | 'kind' | 'polling';

/**
 * Finds out whether overlap is faster, which kind of it, and whether polling is, for all connections of a thread.
 *
 * That depends on facts that a process cannot look up: whether client and server share a core, the cost of a write and
 * of a wake-up on this machine, the other load there. So the outcome decides: the work sent per time. A trial compares
 * slices of a few milliseconds (`trial-slice.ts`) of two sides in pairs; the side that is faster in more of them is kept
 * for a while (`verdict-hold.ts`). One side overlaps, and the other one is `none`; after such a trial is won, the next one
 * compares both kinds of overlap, and after it is lost, the next one tries the other kind. If neither side wins, the rate
 * depends on other things, and parts of large turns of cheap commands would only cost CPU. The others are then sent in
 * parts to reduce latency, unless the loop is saturated. Where turns are small, both kinds are the same, and every second
 * trial is about polling; where they are medium, one follows each trial, or pair of trials, about overlap.
 *
 *     trial: slices of A, B, B, A, ... ──one leads──▶ hold: the winner, up to 4 s ──▶ trial
 */
export class OverlapTrial implements OverlapState {
  overlap: Overlap = 'led';
  polls = false;
  /** Of the last trial, if there was one. */
  #verdict: Overlap | undefined;
  /** The kind of overlap that was tried last. */
  #kind: 'parts' | 'led' = 'parts';
  /** Of the last trial. */
  #question: Question = 'polling';
  #size: TurnSize = 'large';
  /** Both sides of a trial about overlap. */
  #sides: readonly [Overlap, Overlap] = ['led', 'none'];
  #triedPolling = false;
  /** Whether it polled before this trial. */
  #polledBefore = false;
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

  turnEnded(now: number, work: number, connection: object, size: TurnSize): void {
    if (!this.#trying) {
      if (!this.#isDue(now, work, size)) return;
      this.#begin(now, size);
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

  #isDue(now: number, work: number, size: TurnSize): boolean {
    // Most processes have turns of one kind, and many do not live for long.
    const first = this.#verdict === undefined || (mayPoll(size) && !this.#triedPolling);
    return first || this.#hold.isOver(now, work);
  }

  #begin(now: number, size: TurnSize): void {
    this.#question = this.#nextQuestion(size);
    this.#size = size;
    this.#trying = true;
    this.#from = now;
    this.#slices = 0;
    this.#lead = 0;
    this.#gain = 0;
    this.#idle = 0;
    this.#active = 0;
    if (this.#question === 'polling') this.#beginPolling();
    else this.#chooseSides();
    this.#beginSlice();
  }

  #nextQuestion(size: TurnSize): Question {
    if (size !== 'small' && this.#question === 'overlap' && this.#verdict === this.#kind) return 'kind';
    return mayPoll(size) && this.#question !== 'polling' ? 'polling' : 'overlap';
  }

  #beginPolling(): void {
    this.#triedPolling = true;
    this.#polledBefore = this.polls;
  }

  #chooseSides(): void {
    const other = this.#kind === 'led' ? 'parts' : 'led';
    if (this.#question === 'kind') {
      this.#sides = [other, this.#kind];
    } else {
      if (this.#verdict !== this.#kind) this.#kind = other;
      this.#sides = [this.#kind, 'none'];
    }
    this.#lead = HEAD_START * (Number(this.#verdict === this.#sides[0]) - Number(this.#verdict === this.#sides[1]));
  }

  /** Whether this slice is of the first side: the first, the second, the second, the first favour neither if a rate rises. */
  get #isOfFirst(): boolean {
    return ((this.#slices + 1) & 2) === 0;
  }

  #beginSlice(): void {
    if (this.#question === 'polling') this.polls = this.#isOfFirst;
    else this.overlap = this.#sides[this.#isOfFirst ? 0 : 1];
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
    const side = this.#isOfFirst ? 1 : -1;
    this.#slices += 1;
    if (this.#slices % 2 === 1) this.#firstRate = rate;
    else this.#compare(rate, side);
    const ends = this.#slices % 2 === 0 && (this.#isClear || this.#slices === 2 * MOST_PAIRS);
    if (ends) this.#decide(now);
    else this.#beginSlice();
  }

  get #isClear(): boolean {
    if (this.#question !== 'polling') return Math.abs(this.#lead) >= CLEAR_LEAD;
    return this.#lead >= CLEAR_LEAD_OF_POLLING || this.#lead <= -CLEAR_LEAD_OF_WAITING;
  }

  /** Compares the rate of a pair's second slice with that of its first; `side` is 1 if the second one was the first side's. */
  #compare(rate: number, side: 1 | -1): void {
    if (rate === this.#firstRate) return;
    this.#lead += rate > this.#firstRate ? side : -side;
    this.#gain += (side * 2 * (rate - this.#firstRate)) / (rate + this.#firstRate);
  }

  #decide(now: number): void {
    this.#trying = false;
    const confirmed = this.#question === 'polling' ? this.#decidePolling() : this.#decideOverlap();
    this.#hold.begin(now, now - this.#from, confirmed);
  }

  /** Returns whether nothing has changed. */
  #decidePolling(): boolean {
    const gain = this.#gain / (this.#slices / 2);
    this.polls = gain >= (this.#lead >= CLEAR_LEAD_OF_POLLING ? WORTH_POLLING : CLEAR_GAIN_OF_POLLING);
    return this.polls === this.#polledBefore;
  }

  /** Returns whether nothing has changed but the kind of overlap. */
  #decideOverlap(): boolean {
    const before = this.#verdict;
    this.overlap = this.#question === 'kind' ? this.#kindOfOverlap() : this.#overlapOrNot();
    this.#verdict = this.overlap;
    return this.#question === 'kind' || this.overlap === before;
  }

  #overlapOrNot(): Overlap {
    const saturated = !this.polls && this.#active > SATURATED * (this.#idle + this.#active);
    const wins = this.#lead >= SLIGHT_LEAD;
    if (wins && this.#gain >= WORTH * (this.#slices / 2)) return this.#kind;
    return !wins && (saturated || this.#lead <= -SLIGHT_LEAD) ? 'none' : 'small';
  }

  #kindOfOverlap(): Overlap {
    const [other, last] = this.#sides as readonly ['parts' | 'led', 'parts' | 'led'];
    this.#kind = this.#lead >= SLIGHT_LEAD ? other : last;
    const gain = (other === 'led' ? this.#gain : -this.#gain) / (this.#slices / 2);
    if (this.#size === 'huge' && gain < WORTH_LEADING) this.#kind = 'parts';
    return this.#kind;
  }
}
