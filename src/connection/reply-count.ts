/** The replies of one connection, counted by the commands that have left the host's queue. */
export class ReplyCount {
  /** Replies to light entries. */
  light = 0;
  /** Replies to the host's commands. */
  others = 0;
  /** Replies to light entries up to this number need not be shown to the cache. */
  quietUntil = 0;

  get all(): number {
    return this.light + this.others;
  }
}
