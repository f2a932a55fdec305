import type { LoopState } from './flush-policy.js';

/** Above this share of its time the loop is saturated: overlap would only add system calls. */
const SATURATED = 0.88;
/** Parts are sent for so long before the loop is looked at again, in milliseconds. */
const OVERLAP_PERIOD = 100;
/** A look takes at least this long, in milliseconds, and so many turns. */
const LOOK_PERIOD = 3;
const LOOK_TURNS = 6;

/** Milliseconds for which the loop has waited for events (`idle`) and has run code (`active`), since the process began. */
export interface LoopTimes {
  readonly idle: number;
  readonly active: number;
}

/**
 * Finds out whether the event loop waits, for all connections of a thread.
 *
 *     overlapping ──100 ms──▶ looking ──loop waited──▶ overlapping
 *                                │ ▲
 *                         saturated └──┘
 *
 * Overlap itself keeps the loop busy, so its utilization says nothing while parts are sent. It is measured while all
 * gathers to the end of the turn: a few milliseconds now and then, and for as long as the loop is saturated.
 */
export class LoopWatch implements LoopState {
  /** Whether parts are sent now. */
  waits = true;
  #until = 0;
  #turns = 0;
  #before: LoopTimes = { idle: 0, active: 0 };

  constructor(readonly times: () => LoopTimes) {}

  turnEnded(now: number): void {
    this.#turns += 1;
    if (now < this.#until || (!this.waits && this.#turns < LOOK_TURNS)) return;
    if (this.waits) {
      this.#look(now);
      return;
    }
    const { idle, active } = this.times();
    const waited = idle - this.#before.idle;
    const ran = active - this.#before.active;
    if (ran < SATURATED * (waited + ran)) {
      this.waits = true;
      this.#until = now + OVERLAP_PERIOD;
    } else {
      this.#look(now);
    }
  }

  #look(now: number): void {
    this.waits = false;
    this.#turns = 0;
    this.#until = now + LOOK_PERIOD;
    this.#before = this.times();
  }
}
