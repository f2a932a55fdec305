import type { LoopState } from './flush-policy.js';

/** A loop that runs code for more than this share of its time is saturated: overlap would only add system calls. */
const SATURATED = 0.88;
/** Milliseconds for which parts are sent before the loop is measured again. */
const OVERLAP_PERIOD = 100;
/** A measurement takes at least this many milliseconds, and at least `LOOK_TURNS` turns. */
const LOOK_PERIOD = 3;
const LOOK_TURNS = 6;

/** Milliseconds that the loop has waited for events (`idle`) and run code (`active`), since the process began. */
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
 * commands gather to the end of the turn: a few milliseconds from time to time, and as long as the loop is saturated.
 */
export class LoopWatch implements LoopState {
  /** Whether the loop waits for events, as last measured: parts are sent. */
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
