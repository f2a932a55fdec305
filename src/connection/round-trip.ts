/** A reply takes longer than this, in milliseconds, where the server is not on the same machine, or not idle, */
const FAR = 0.15;
/** and this many times as long as it takes to issue the commands of a turn. */
const FAR_TIMES = 8;
/** A blocking command, or a server or a turn that stood still, counts as this many milliseconds. */
const LONGEST = 10;
/** The weight of the last turn in the averages. */
const DAMPING = 1 / 8;

/**
 * How long a turn's first reply takes, and how long its commands take to issue, where nothing else is on the wire.
 *
 * A command that leaves before the end of its turn gains at most the time in which the turn is issued.
 */
export class RoundTrip {
  /** Moving averages, in milliseconds. */
  #reply = 0;
  #issue = 0;
  #sentAt: number | undefined;

  /** Bytes were sent at `now`, and nothing else awaits a reply. */
  sent(now: number): void {
    this.#sentAt = now;
  }

  /** A turn took this many milliseconds. */
  issued(took: number): void {
    this.#issue += (Math.min(took, LONGEST) - this.#issue) * DAMPING;
  }

  /** Replies have come. */
  answered(now: () => number): void {
    if (this.#sentAt === undefined) return;
    this.#reply += (Math.min(now() - this.#sentAt, LONGEST) - this.#reply) * DAMPING;
    this.#sentAt = undefined;
  }

  /** Whether leaving early gains little. */
  get isLong(): boolean {
    return this.#reply >= FAR && this.#reply >= FAR_TIMES * this.#issue;
  }
}
