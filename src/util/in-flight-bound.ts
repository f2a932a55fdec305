/** A bound doubles after this many times as many replies, so that connections are not lost again and again. */
const REPLIES_BEFORE_GROWTH = 16;

/**
 * The number of a client's commands that may be unanswered on the wire: `maxInFlight`, or temporarily fewer.
 *
 * Redis executes all commands that it has read before it writes their replies, and closes a connection whose replies
 * exceed `client-output-buffer-limit`. If all commands were sent again at once, every further connection would end
 * likewise, without any reply. So each connection lost without a reply quarters the bound, from the second in a row on,
 * and replies let it grow again. The first may have been lost for any reason, so all commands are sent again at once,
 * as by a plain client. With a Cluster the first counts, too, because a Cluster abandons a command after 16 attempts.
 */
export class InFlightBound {
  current: number;
  #replies = 0;
  #lostInARow = 0;

  /** @param patience - the connections in a row that may be lost without a reply. */
  constructor(
    readonly maxInFlight: number,
    readonly patience: number,
  ) {
    this.current = maxInFlight;
  }

  /**
   * A connection was lost, not closed by the client.
   *
   * @param hasAnswered - whether it has received anything since it was ready.
   */
  lost(inFlight: number, hasAnswered: boolean): void {
    this.#lostInARow = inFlight > 1 && !hasAnswered ? this.#lostInARow + 1 : 0;
    if (this.#lostInARow <= this.patience) return;
    this.current = Math.min(this.current, inFlight) >> 2 || 1;
    this.#replies = 0;
  }

  /** Replies have arrived while commands wait in the backlog. */
  repliesCame(replies: number): void {
    if (this.current === this.maxInFlight) return;
    this.#replies += replies;
    if (this.#replies < REPLIES_BEFORE_GROWTH * this.current) return;
    this.#replies = 0;
    this.current = Math.min(this.maxInFlight, this.current * 2);
  }
}
