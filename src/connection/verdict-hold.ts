/** Milliseconds until the next trial: doubled each time the verdict is the same. */
const FIRST_HOLD = 500;
const LONGEST_HOLD = 4_000;
/** A verdict holds for this many times as long as its trial took, in half of which the slower side was used, */
const HOLD_PER_TRIAL = 4;
/** and for this share of its time, whatever happens to the loop; twice that each time a trial was begun for nothing. */
const LEAST_SHARE = 1 / 8;
/** The loop is looked at once in this many milliseconds. */
const LOOK = 20;
/** If nothing was sent for this many milliseconds, that time does not count, and the hold is as short as the first. */
export const PAUSE = 100;
/** The loop has changed if it is busy for a share of its time that differs by this much, */
const OTHER_SHARE = 0.2;
/** or its turns have this many times the work, or as many times less, */
const OTHER_WORK = 1.5;
/** this many looks in a row. */
const CHANGED_LOOKS = 3;

/** Milliseconds that the loop has waited for events (`idle`) and run code (`active`), since the process began. */
export interface LoopTimes {
  readonly idle: number;
  readonly active: number;
}

/**
 * How long the verdict of a trial is kept.
 *
 * A verdict is true of the conditions in which it was found: the work, and whether client and server have a processor
 * each. The kernel moves them together and apart as it likes, and what was half as fast again is then slower by as much.
 * The process does not see that, but the loop is then busy for another share of its time. So a hold ends early if that
 * share, or the work of a turn, has changed for good.
 */
export class VerdictHold {
  #hold = FIRST_HOLD;
  #leastShare = LEAST_SHARE;
  #endedEarly = false;
  #earliest = 0;
  #latest = 0;
  /** When the loop is looked at next, its times at the last look, and its turns and their work since then. */
  #lookAt = 0;
  #before: LoopTimes = { idle: 0, active: 0 };
  #turns = 0;
  #work = 0;
  /** At the first look: the share of its time for which the loop was busy, and the work of a turn. */
  #usual: { readonly busy: number; readonly turn: number } | undefined;
  #changedLooks = 0;

  constructor(readonly times: () => LoopTimes) {}

  /**
   * @param now - milliseconds.
   * @param took - milliseconds of the trial.
   * @param confirmed - whether the last verdict was the same.
   */
  begin(now: number, took: number, confirmed: boolean): void {
    this.#hold = confirmed ? Math.min(2 * this.#hold, LONGEST_HOLD) : FIRST_HOLD;
    const least = HOLD_PER_TRIAL * took;
    // Some loops and their work change all the time.
    if (!confirmed) this.#leastShare = LEAST_SHARE;
    else if (this.#endedEarly) this.#leastShare = Math.min(2 * this.#leastShare, 1);
    this.#earliest = now + Math.max(least, this.#hold * this.#leastShare);
    this.#latest = now + Math.max(least, this.#hold);
    this.#usual = undefined;
    this.#changedLooks = 0;
    this.#startLook(now);
  }

  /** Whether it is time for the next trial, at the end of a turn in which `work` units were sent. */
  isOver(now: number, work: number): boolean {
    this.#turns += 1;
    this.#work += work;
    return now >= this.#lookAt && this.#look(now);
  }

  #look(now: number): boolean {
    const late = now - this.#lookAt;
    if (late > PAUSE) {
      this.#earliest += late;
      this.#latest = Math.max(this.#earliest, Math.min(this.#latest + late, now + FIRST_HOLD));
    } else {
      this.#compare();
    }
    this.#endedEarly = now < this.#latest;
    if (!this.#endedEarly || (now >= this.#earliest && this.#changedLooks >= CHANGED_LOOKS)) return true;
    this.#startLook(now);
    return false;
  }

  #startLook(now: number): void {
    this.#lookAt = now + LOOK;
    this.#before = this.times();
    this.#turns = 0;
    this.#work = 0;
  }

  #compare(): void {
    const { idle, active } = this.times();
    const ran = active - this.#before.active;
    const busy = ran / (ran + idle - this.#before.idle);
    const turn = this.#work / this.#turns;
    this.#usual ??= { busy, turn };
    const usual = this.#usual.turn;
    const otherShare = Math.abs(busy - this.#usual.busy) >= OTHER_SHARE;
    const otherWork = turn >= usual * OTHER_WORK || turn * OTHER_WORK <= usual;
    this.#changedLooks = otherShare || otherWork ? this.#changedLooks + 1 : 0;
  }
}
