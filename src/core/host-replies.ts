import { CODES } from '../errors.js';
import { mayAnswerNothing } from '../host/state.js';
import type { HostClient, QueueItem } from '../host/types.js';
import { MEANING_LENGTH } from '../resp/error-meaning.js';
import { ReplyScanner } from '../resp/reply-scanner.js';
import type { Stats } from '../stats.js';
import { entryOf } from './entry.js';
import type { Incoming } from './features.js';
import type { ReplyCount } from './reply-count.js';

export const PUSH = 62; // >
export const MINUS = 45;

/** The reader of the connection. */
interface Reader {
  readonly client: HostClient;
  readonly stats: Stats;
  readonly replies: ReplyCount;
  readonly incoming: Incoming | undefined;
  /** Hands bytes to the host's listener. */
  forward(bytes: Buffer): void;
  /** Leaves all decoding to the host from now on. */
  giveUp(): void;
  /** Ends the connection. */
  end(error: Error): void;
}

/** Hands the host the replies that are not decoded here, from the first byte to the last, across chunks. */
export class HostReplies {
  readonly #scanner = new ReplyScanner();
  /** The head of the queue when the host got the first byte of a reply; undefined for a push. */
  #answering: QueueItem | undefined;
  /** Whether the host has received the beginning of an incomplete reply. */
  isAmidReply = false;

  constructor(readonly reader: Reader) {}

  /** Hands over one reply, or the part of it in this chunk; returns where that ends. */
  forward(chunk: Buffer, position: number): number {
    const { reader } = this;
    const queue = reader.client.commandQueue;
    const head = queue.peekFront();
    if (!this.isAmidReply) {
      this.#answering = chunk[position] === PUSH ? undefined : head;
      if (head !== undefined && chunk[position] === MINUS) {
        const start = position + 1;
        const error = chunk.latin1Slice(start, Math.min(start + MEANING_LENGTH, chunk.length));
        reader.incoming?.failed(head.command, error);
      }
    }
    const result = this.#scan(chunk, position);
    if (result === 'unreadable') return position;
    const end = result === 'whole' ? this.#scanner.end : chunk.length;
    reader.forward(position === 0 && end === chunk.length ? chunk : chunk.subarray(position, end));
    if (head !== undefined && queue.peekFront() !== head) this.answered(head);
    if (result !== 'whole') return end;
    reader.stats.fallbackReplies += 1;
    const late = this.#answering;
    // The reply has ended, but the host left its command at the head, to answer it later. The reader would take the
    // next reply for this command's (invariant 3).
    if (late !== undefined && queue.peekFront() === late && !mayAnswerNothing(reader.client, late)) reader.giveUp();
    return end;
  }

  /** No fast entry is in flight: the host gets the rest of the chunk in one piece; the scanner only counts replies. */
  forwardRest(chunk: Buffer, start: number): number {
    const { reader } = this;
    for (let position = start; position < chunk.length; position = this.#scanner.end) {
      const result = this.#scan(chunk, position);
      if (result === 'unreadable') return start;
      if (result === 'more') break;
      reader.stats.fallbackReplies += 1;
    }
    reader.forward(start === 0 ? chunk : chunk.subarray(start));
    return chunk.length;
  }

  /** The host has removed the head of the queue. */
  answered(head: QueueItem): void {
    const { replies, incoming } = this.reader;
    const entry = entryOf(head);
    if (entry === undefined) replies.others += 1;
    else replies.fast += 1;
    incoming?.answered(entry, undefined);
  }

  /**
   * Looks for the end of a reply. After unreadable bytes nothing more is read here. The connection ends before the host
   * sees a header that announces too much; the host's `error` handler does the rest.
   */
  #scan(chunk: Buffer, position: number): 'whole' | 'more' | 'unreadable' {
    const result = this.#scanner.scan(chunk, position);
    this.isAmidReply = this.#scanner.outstanding > 0;
    if (result === 'whole' || result === 'more') return result;
    if (result === 'malformed') this.reader.giveUp();
    else {
      const error = new Error(`the server announced ${this.#scanner.excess}, the connection is closed`);
      this.reader.end(Object.assign(error, { code: CODES.REPLY }));
    }
    return 'unreadable';
  }
}
