/** A bound doubles after this many times as many replies: long enough not to lose connections again and again. */
const REPLIES_BEFORE_GROWTH = 16;

/**
 * How many commands of a client may be unanswered on the wire: `maxInFlight`, or fewer for a while.
 *
 * Redis runs all commands that it has read before it writes their replies, and closes a connection when these exceed
 * `client-output-buffer-limit`. If all of them are sent again at once, the next connection ends at the same place, and
 * so on: nobody ever gets a reply. So a connection that is lost with more commands open than were answered halves what
 * is sent at once, and replies let it grow again.
 */
export class InFlightBound {
  current: number;
  #replies = 0;

  constructor(readonly maxInFlight: number) {
    this.current = maxInFlight;
  }

  /**
   * A connection was lost, not closed by the client.
   *
   * @param answered - replies since it was ready.
   */
  lost(inFlight: number, answered: number): void {
    if (inFlight < 2 || answered >= inFlight) return;
    this.current = Math.min(this.current, inFlight) >> 1 || 1;
    this.#replies = 0;
  }

  /** Replies have come while commands wait for room. */
  answered(replies: number): void {
    if (this.current === this.maxInFlight) return;
    this.#replies += replies;
    if (this.#replies < REPLIES_BEFORE_GROWTH * this.current) return;
    this.#replies = 0;
    this.current = Math.min(this.maxInFlight, this.current * 2);
  }
}
