import { now, setImmediate } from '../util/clock.js';

/** A server on this machine answers a turn of tens of commands in less time than this, in milliseconds. */
const WINDOW = 0.1;
/** The most turns that pass without polling after replies have taken longer. */
const MOST_SKIPPED = 1024;

/**
 * Looks for replies again and again for a short time, instead of waiting for them: while the loop has immediates, it
 * asks the kernel for events and goes on ("busy polling").
 *
 * A thread that waits gives its processor up. That processor then halts, in most virtual machines until its host resumes
 * it, and a wake-up takes longer than a server on the same machine needs for tens of commands. Where the server is farther
 * away, polling gains nothing; so after each window without a reply twice as many turns pass before the next one.
 */
export class BusyPoll {
  #polling = false;
  #until = 0;
  #answered = false;
  /** Turns to pass before the next window, and as many as passed before the last one. */
  #toSkip = 0;
  #skipped = 0;

  constructor(
    /** Commands on the wire that await their reply. */
    readonly awaiting: () => number,
  ) {}

  /**
   * A turn was sent: polls until nothing awaits its reply, or the window is over.
   *
   * @returns whether it does, or passes the turn over.
   */
  begin(): boolean {
    if (this.#toSkip > 0) {
      this.#toSkip -= 1;
      return false;
    }
    this.#until = now() + WINDOW;
    if (!this.#polling) {
      this.#polling = true;
      this.#answered = false;
      setImmediate(this.#poll);
    }
    return true;
  }

  /** Replies have come. */
  answered(): void {
    this.#answered = true;
  }

  readonly #poll = (): void => {
    if (this.awaiting() > 0 && now() < this.#until) {
      setImmediate(this.#poll);
      return;
    }
    this.#polling = false;
    this.#skipped = this.#answered ? 0 : Math.min(2 * this.#skipped + 1, MOST_SKIPPED);
    this.#toSkip = this.#skipped;
  };
}
