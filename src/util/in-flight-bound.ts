/** A bound doubles after this many times as many replies: long enough not to lose connections again and again. */
const REPLIES_BEFORE_GROWTH = 16;

/**
 * How many commands of a client may be unanswered on the wire: `maxInFlight`, or fewer for a while.
 *
 * Redis runs all commands that it has read before it writes their replies, and closes a connection when these exceed
 * `client-output-buffer-limit`. If all of them are sent again at once, the next connection ends at the same place, and
 * so on: nobody ever gets a reply. So connections that are lost in a row without a reply quarter what is sent
 * at once, from the second one on, and replies let it grow again. The first may have been lost for any reason: all is
 * sent again at once, as by a plain client. For a Cluster the first one counts, too: it gives a command up after 16
 * attempts.
 */
export class InFlightBound {
  current: number;
  #replies = 0;
  #lostInARow = 0;

  /** @param patience - connections in a row that may be lost without a reply. */
  constructor(
    readonly maxInFlight: number,
    readonly patience: number,
  ) {
    this.current = maxInFlight;
  }

  /**
   * A connection was lost, not closed by the client.
   *
   * @param hasAnswered - whether anything has come since it was ready.
   */
  lost(inFlight: number, hasAnswered: boolean): void {
    this.#lostInARow = inFlight > 1 && !hasAnswered ? this.#lostInARow + 1 : 0;
    if (this.#lostInARow <= this.patience) return;
    this.current = Math.min(this.current, inFlight) >> 2 || 1;
    this.#replies = 0;
  }

  /** Replies have come while commands wait for room. */
  repliesCame(replies: number): void {
    if (this.current === this.maxInFlight) return;
    this.#replies += replies;
    if (this.#replies < REPLIES_BEFORE_GROWTH * this.current) return;
    this.#replies = 0;
    this.current = Math.min(this.maxInFlight, this.current * 2);
  }
}
