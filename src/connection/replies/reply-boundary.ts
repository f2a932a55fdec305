import type { HostQueue, QueueItem } from '../../host/types.js';

const LF = 10;
/** Characters that are kept of a line: as many as `+QUEUED` has. */
export const LINE_KEPT = 7;

/**
 * Finds where a reply begins on a connection in use.
 *
 * The host may hold a partial reply, and there is no way to ask. But when it removes the head of its queue, a reply has
 * just ended. So it gets the bytes line by line until then; the next byte begins a reply.
 */
export class ReplyBoundary {
  /** The host has answered a reply whose last line feed has not come yet. */
  #lineFeedToCome = false;
  /** The beginning of the line that is being read. */
  #line = '';

  constructor(
    readonly client: { readonly commandQueue: HostQueue },
    /** Hands the host bytes; returns whether it may get more of them. */
    readonly forward: (bytes: Buffer) => boolean,
    /**
     * The host has answered this element of its queue, and the boundary is found; `line` is the beginning of the
     * reply's last line.
     */
    readonly answered: (head: QueueItem, line: string) => void,
  ) {}

  /** Hands the host the chunk up to the boundary; returns how many bytes it was given. */
  search(chunk: Buffer): number {
    const queue = this.client.commandQueue;
    const head = queue.peekFront();
    let position = 0;
    let goesOn = true;
    let found = false;
    while (position < chunk.length && goesOn && !found) {
      const lineEnd = chunk.indexOf(LF, position);
      const next = lineEnd < 0 ? chunk.length : lineEnd + 1;
      const line = (this.#line + chunk.latin1Slice(position, Math.min(next, position + LINE_KEPT))).slice(0, LINE_KEPT);
      this.#line = lineEnd < 0 ? line : '';
      goesOn = this.forward(chunk.subarray(position, next));
      position = next;
      if (goesOn && head !== undefined && queue.peekFront() !== head) {
        found = true;
        // Host: ioredis 6 answers a command at the carriage return and skips the next byte, the line feed.
        this.#lineFeedToCome = lineEnd < 0;
        this.answered(head, line);
      }
    }
    return position;
  }

  /** Hands the host the line feed that the reply before the boundary lacks; returns how many bytes it was given. */
  passLineFeed(chunk: Buffer): number {
    if (!this.#lineFeedToCome || chunk[0] !== LF) return 0;
    this.forward(chunk.subarray(0, 1));
    return 1;
  }
}
