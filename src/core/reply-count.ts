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
   * The head of the queue when the host got its present bytes; undefined while the host is not running. Host: it
   * removes a command before it runs user code (`reconnectOnError`, transformers); the reply is counted when the host
   * returns.
   */
  headBeforeForward: object | undefined;

  /**
   * The length of the queue to expect after the host's last write. Host: it queues a command when `write` returns.
   * Undefined if there is nothing to check.
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

  /** Whether a fast entry awaits its reply. */
  get hasFastInFlight(): boolean {
    return this.expected !== this.fast;
  }

  get all(): number {
    return this.fast + this.others;
  }

  /** The position of the next command: how many were queued on this connection so far, answered or not. */
  nextPosition(queue: HostQueue): number {
    const hasLeft = this.headBeforeForward !== undefined && queue.peekFront() !== this.headBeforeForward;
    return this.all + Number(hasLeft) + queue.length;
  }
}
