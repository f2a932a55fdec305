import { CODES, coded } from '../errors.js';
import type { HostQueue, QueueItem } from '../host/types.js';

/** A short queue lacks a command that was written; a long one may hold commands that are not written yet. */
export interface QueueMismatch {
  readonly error: Error;
  readonly isShort: boolean;
}

/** Queue and wire do not match. */
export function notAsWritten(): Error {
  return coded(Error, CODES.REPLY, 'the client did not queue what it wrote, the connection is closed');
}

/** The replies of one connection, counted by the commands that have left the host's queue. */
export class ReplyCount {
  /** Fast entries that were queued: each gets a reply. */
  expected = 0;
  /** Replies to fast entries. */
  fast = 0;
  /** Replies to the host's commands; complete only while a feature follows the bytes (`Incoming`). */
  others = 0;
  /**
   * The head of the queue before the bytes that the host is reading now; undefined while it reads none. Host: it
   * removes a command from the queue before it runs user code for it (`reconnectOnError`, transformers); the reply is
   * counted only when the host returns.
   */
  headBeforeForward: object | undefined;

  /** The last item of the queue, unless the host has written since it was seen. */
  lastQueued: QueueItem | undefined;

  /**
   * The length that the queue must have once the host has queued what it wrote last: one more than when `write`
   * returned, because the host queues the last command only then. Undefined if there is nothing to check.
   */
  expectedQueueLength: number | undefined;

  /**
   * Whether the queue ends with the item that was seen or written last.
   *
   * @param queuedAhead - items behind it, which the host is about to write.
   */
  isLast(queue: HostQueue, queuedAhead = 0): boolean {
    const length = queue.length - queuedAhead;
    const { lastQueued } = this;
    return lastQueued === undefined ? length === this.expectedQueueLength : queue.peekAt(length - 1) === lastQueued;
  }

  /**
   * An error if the queue does not match what the host wrote last: replies would go to the wrong callers (invariants 1
   * and 3).
   *
   * @param queuedAhead - commands of the write that begins now that are in the queue already: all but its last.
   * @param isBetweenChunks - whether no reply has left the queue since the last command.
   */
  queueMismatch(queue: HostQueue, queuedAhead: number, isBetweenChunks: boolean): QueueMismatch | undefined {
    const due = this.expectedQueueLength;
    const isKnown = due !== undefined || (isBetweenChunks && this.lastQueued !== undefined);
    const isAsWritten = !isKnown || this.isLast(queue, queuedAhead);
    this.expectedQueueLength = undefined;
    if (isAsWritten) return undefined;
    return { error: notAsWritten(), isShort: due !== undefined && queue.length < due + queuedAhead };
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
