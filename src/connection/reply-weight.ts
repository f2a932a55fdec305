/** How many bytes a reply has, as a moving average over the last chunks. */
export class ReplyWeight {
  /** Average bytes per reply. */
  bytes = 0;
  /** Bytes read, and replies ended, since the average was updated. */
  #bytesRead = 0;
  #repliesBefore = 0;

  /**
   * A chunk has been read.
   *
   * @param bytes - its length.
   * @param replies - number of replies that have ended on the connection so far.
   */
  add(bytes: number, replies: number): void {
    this.#bytesRead += bytes;
    if (replies === this.#repliesBefore) return;
    this.bytes += (this.#bytesRead / (replies - this.#repliesBefore) - this.bytes) / 8;
    this.#bytesRead = 0;
    this.#repliesBefore = replies;
  }
}
