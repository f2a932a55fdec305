import { CODES, coded } from '../errors.js';
import type { HostQueue } from '../host/types.js';

/** The replies of one connection, counted by the commands that have left the host's queue. */
export class ReplyCount {
  /** Fast entries that were queued: each gets a reply. */
  expected = 0;
  /** Replies to fast entries. */
  fast = 0;
  /** Replies to the host's commands. */
  others = 0;
  /**
   * The head of the host's queue before the host got the bytes that it is reading. Host: when it runs user code
   * (`reconnectOnError`, transformers), the command has left the queue; it is counted when the host has returned.
   */
  leaving: object | undefined;

  /**
   * The length that the host's queue must have once the host has queued what it wrote last; undefined if it has written
   * nothing since the last check.
   */
  expectedQueueLength: number | undefined;

  /**
   * An error if what the host wrote last is not queued: replies would go to the wrong callers (invariants 1 and 3).
   *
   * @param more - commands that the host has queued beyond that, and is about to write.
   */
  queueMismatch(queue: HostQueue, more = 0): Error | undefined {
    const due = this.expectedQueueLength;
    this.expectedQueueLength = undefined;
    if (due === undefined || queue.length === due + more) return undefined;
    return coded(Error, CODES.REPLY, 'the client did not queue what it wrote, the connection is closed');
  }

  get all(): number {
    return this.fast + this.others;
  }

  /** How many commands were queued before the next one. */
  nextPosition(queue: HostQueue): number {
    const hasLeft = this.leaving !== undefined && queue.peekFront() !== this.leaving;
    return this.all + Number(hasLeft) + queue.length;
  }
}
