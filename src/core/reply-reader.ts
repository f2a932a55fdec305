import type { Duplex } from 'node:stream';
import { keep } from '../host/read-in-place.js';
import { inSubscriberMode, makeOptionsFast, replyModeOf } from '../host/state.js';
import { DataListener } from '../host/stream.js';
import type { AnyFunction, HostClient, QueueItem } from '../host/types.js';
import { INCOMPLETE, NOT_DECODED, ReplyDecoder } from '../resp/decoder.js';
import { MEANING_LENGTH } from '../resp/error-meaning.js';
import { LineByLine } from '../resp/line-by-line.js';
import type { Stats } from '../stats.js';
import { nextTick } from '../util/clock.js';
import { Entry, entryOf } from './entry.js';
import type { Incoming } from './features.js';
import { HostReplies, MINUS, PUSH } from './host-replies.js';
import { notAsWritten, type ReplyCount } from './reply-count.js';
import type { TransactionState } from './transaction-state.js';

/**
 * - `joining`: attached to a connection in use; the host may hold a partial reply, so it gets all bytes until a reply
 *   has ended.
 * - `reading`: replies to fast entries are decoded here.
 * - `forwarding`: the host gets all bytes: some are malformed, or replies and queue are not as expected.
 * - `dead`: the host has dropped its listener; the rest of the chunk is discarded.
 * - `removed`: detached; the host's listener is back in our place.
 */
type State = 'joining' | 'reading' | 'forwarding' | 'dead' | 'removed';

const LF = 10;
/** Characters that distinguish `+QUEUED` from other replies. */
const LINE_KEPT = 7;
/** Bytes of an error line that are held at most. */
const LONGEST_HELD = 1024;
/** Fast replies before a connection is tuned for many of them: many clients ask once and quit. */
const REPLIES_BEFORE_TUNING = 32;

/** What a reader needs of its connection. */
interface ReadConnection {
  readonly client: HostClient;
  readonly stream: Duplex;
  readonly open: boolean;
  readonly stats: Stats;
  readonly replies: ReplyCount;
  readonly incoming: Incoming | undefined;
  /** Compares the queue with what was written; false if the connection has ended. */
  checkQueue(before: 'chunk'): boolean;
  /** The user's. On a connection in use, replies reveal its state. */
  readonly transaction: Pick<TransactionState, 'unknown' | 'replied'>;
  /** A chunk has been read to its end. */
  chunkRead(): void;
  /** Called when from now on the host decodes everything, and entries leave the queue uncounted. */
  readerGaveUp(): void;
}

/**
 * Stands in front of the host's decoder on one connection. It splits a chunk into replies. A reply is decoded here if
 * the head of the host's queue is a fast entry and the reply is of an ordinary kind; otherwise its bytes go
 * untouched to the listener that the host registered.
 *
 * A reply that is split by the end of a chunk has one owner (invariant 4). A fast entry's reply is assembled here;
 * until its last byte it can be handed to the host, from its first byte on. Any other reply is the host's, and the
 * scanner finds its last byte. If the host decodes a fast entry's reply, it resolves the entry like any command.
 */
export class ReplyReader {
  #state: State;
  /** Whether it is amid a chunk. */
  isReading = false;
  /** Code of others is running: the host's listener or a tracer's `resolve`, which may call user code. */
  #othersRun = false;
  /** Whether our listener was on the stream when that code began. If not, others have wrapped it. */
  #wasAttached = false;
  /** While `joining`, and until the line feed of the last line has come. */
  #lines: LineByLine | undefined;
  readonly source: DataListener;
  readonly client: HostClient;
  readonly stats: Stats;
  readonly replies: ReplyCount;
  readonly incoming: Incoming | undefined;
  /** The present chunk for values that refer to it: a copy, if the chunk is in the buffer of reads in place. */
  #keptChunk: Buffer | undefined;
  readonly #decoder: ReplyDecoder;
  readonly #hostReplies = new HostReplies(this);
  /** The queue item whose split reply is being assembled. */
  #assembledFor: QueueItem | undefined;
  /** Whether it is decoded raw, with Buffers for strings, as the host decodes it. */
  #assembledRaw = false;
  /** The beginning of a split error, held until its line feed arrives, since the entry may handle it. */
  #heldError: Buffer | undefined;
  #isTuned = false;

  constructor(
    readonly connection: ReadConnection,
    readonly hostListener: AnyFunction,
    /** Whether nothing has been received on the stream yet. */
    fresh: boolean,
  ) {
    const { client } = connection;
    this.client = client;
    this.stats = connection.stats;
    this.replies = connection.replies;
    this.incoming = connection.incoming;
    this.#decoder = new ReplyDecoder(replyModeOf(client), keep);
    this.#state = fresh ? 'reading' : 'joining';
    if (!fresh) this.#lines = new LineByLine();
    this.source = new DataListener(connection.stream, hostListener, this, this.#onData);
    // Entries of an earlier attachment settle here too.
    for (let index = 0; index < client.commandQueue.length; index += 1) {
      if (entryOf(client.commandQueue.peekAt(index)) !== undefined) this.replies.expected += 1;
    }
  }

  /** Whether fast commands may be encoded: replies are read here, from a known beginning on. */
  checkReady(): boolean {
    return this.#state === 'reading' && !(this.#othersRun && this.#isTakenOff);
  }

  /** Whether it is amid a chunk, or the host is: transformers and tracers, which may send commands, run now. */
  get isBusy(): boolean {
    return this.isReading || this.#othersRun;
  }

  /** Whether the host decodes everything for the rest of this connection. */
  get stoppedDecoding(): boolean {
    return this.#state === 'forwarding' && !this.#isTakenOff;
  }

  /** Puts the host's listener back in our place. It decodes all later replies, those to fast entries included. */
  remove(): void {
    if (this.#isTakenOff || this.connection.stream.listenerCount('data') === 0) this.#state = 'dead';
    if (this.#state === 'removed' || this.#state === 'dead') return;
    this.#state = 'removed';
    // If others have wrapped our listener, it stays, and passes all on.
    if (this.source.isAttached) this.source.restore();
    this.#forwardPartial();
  }

  /** The stream has ended. Drops the partial reply: the host would take it for the start of the next stream's reply. */
  close(): void {
    this.#decoder.discard();
    this.#assembledFor = undefined;
    this.#heldError = undefined;
    if (this.#state !== 'removed') this.#state = 'dead';
  }

  /** Whether code of others that runs now has removed our listener from the stream. */
  get #isTakenOff(): boolean {
    return this.#wasAttached && !this.source.isAttached;
  }

  /**
   * Invariant 9: the host removes all `data` listeners when it empties its queue, and then ends the stream; user code
   * that ran meanwhile may have added others. If it has wrapped ours, the stream goes on. Called once others have run.
   */
  #checkListener(): void {
    const { stream, open } = this.connection;
    if (this.#state !== 'removed' && ((this.#isTakenOff && !open) || stream.listenerCount('data') === 0))
      this.#state = 'dead';
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.isReading || !(chunk instanceof Buffer)) {
      // User code has emitted `data` on the stream itself, or has set its encoding: the host decides what to do.
      this.giveUp();
      this.forward(chunk);
      return;
    }
    this.readChunk(chunk);
  };

  readChunk(chunk: Buffer): void {
    this.isReading = true;
    this.incoming?.chunkCame();
    try {
      const { expectedQueueLength, lastQueued } = this.replies;
      const isToCheck = expectedQueueLength !== undefined || this.client.commandQueue.peekAt(-1) !== lastQueued;
      if (isToCheck && !this.connection.checkQueue('chunk')) throw notAsWritten();
      // Ordering: before later replies.
      this.incoming?.deliver();
      this.#read(this.#heldError === undefined ? chunk : Buffer.concat([...this.#takeBack(), chunk]));
    } catch (error) {
      // It is unknown which reply comes next, and the rest would go to the wrong callers (invariant 3).
      this.end(error as Error);
    } finally {
      this.isReading = false;
      this.#keptChunk = undefined;
    }
    if (!this.#isTuned && this.#state === 'reading' && this.replies.fast >= REPLIES_BEFORE_TUNING) {
      this.#isTuned = true;
      makeOptionsFast(this.client);
      this.source.tune();
    }
    this.connection.chunkRead();
  }

  #read(chunk: Buffer): void {
    let position = 0;
    if (this.#lines !== undefined) position = this.#forwardLines(chunk, this.#lines);
    const { incoming, replies } = this;
    const { transaction } = this.connection;
    if (incoming?.holdsPush) position = this.#readPush(incoming, chunk, position);
    else if (this.#assembledFor !== undefined) position = this.#assemble(this.#assembledFor, chunk);
    else if (this.#hostReplies.isAmidReply && this.#state === 'reading')
      position = this.#hostReplies.forward(chunk, position);
    while (position < chunk.length) {
      if (this.#state !== 'reading') {
        this.#finish(chunk, position);
        return;
      }
      if (transaction.unknown && chunk[position] !== PUSH) {
        transaction.replied(chunk.latin1Slice(position, Math.min(position + LINE_KEPT, chunk.length)));
      }
      if (incoming !== undefined && chunk[position] === PUSH) position = this.#readPush(incoming, chunk, position);
      else if (replies.expected === replies.fast && !incoming)
        position = this.#hostReplies.forwardRest(chunk, position);
      else position = this.#readReply(chunk, position);
    }
  }

  /** Offers a push to the feature that follows the bytes, and forwards it to the host otherwise. */
  #readPush(incoming: Incoming, chunk: Buffer, position: number): number {
    const end = incoming.push(chunk, position);
    if (end >= 0) return end;
    const held = incoming.release();
    if (held !== undefined) this.#hostReplies.forward(held, 0);
    return this.#hostReplies.forward(chunk, position);
  }

  /** Hands the host the rest of a chunk that is not read here, if it still has its listener. */
  #finish(chunk: Buffer, position: number): void {
    if (this.#state !== 'dead') this.forward(position === 0 ? chunk : chunk.subarray(position));
  }

  /** Reads the reply at `position`; returns where it, or the chunk, ends. */
  #readReply(chunk: Buffer, position: number): number {
    const queue = this.client.commandQueue;
    const item = queue.peekFront();
    const head = item instanceof Entry ? item : entryOf(item);
    // Host: under RESP2 messages of a subscription look like replies; its decoder recognizes them by this condition.
    if (head === undefined || inSubscriberMode(this.client)) return this.#hostReplies.forward(chunk, position);
    if (chunk[position] === MINUS) return this.#readError(head, chunk, position);
    const raw = head !== item && head.takesRaw;
    // Text is copied out of the chunk; anything else may refer to it.
    const bytes = head.variant.encoding === 'utf8' && !raw ? chunk : this.#kept(chunk);
    const value = head.decode(this.#decoder, bytes, position, raw);
    if (value === NOT_DECODED) return this.#hostReplies.forward(chunk, position);
    if (value === INCOMPLETE) {
      this.#assembledFor = item;
      this.#assembledRaw = raw;
      return chunk.length;
    }
    const { end } = this.#decoder;
    this.#answer(head, value, raw);
    return end;
  }

  /** Hands an error to the host, unless the entry handles it. */
  #readError(head: Entry, chunk: Buffer, position: number): number {
    const end = chunk.indexOf(LF, position);
    if (head.handlesError === undefined || (end < 0 && chunk.length - position > LONGEST_HELD))
      return this.#hostReplies.forward(chunk, position);
    if (end < 0) {
      this.#heldError = Buffer.from(chunk.subarray(position));
      return chunk.length;
    }
    const message = chunk.utf8Slice(position + 1, end - 1);
    this.incoming?.failed(head, message.padEnd(MEANING_LENGTH));
    if (!head.handlesError(message)) return this.#hostReplies.forward(chunk, position);
    this.#shiftAnswered();
    this.incoming?.answered(head, undefined);
    return end + 1;
  }

  /** Reads the next piece of a fast entry's split reply; returns where the piece ends. */
  #assemble(item: QueueItem, chunk: Buffer): number {
    const raw = this.#assembledRaw;
    const entry = entryOf(item);
    const isSame = entry !== undefined && this.client.commandQueue.peekFront() === item;
    // A tracer may replace `resolve` at any time.
    if (!isSame || (entry !== item && entry.takesRaw !== raw)) {
      this.giveUp();
      return 0;
    }
    const value = this.#decoder.resume(chunk);
    if (value === INCOMPLETE) return chunk.length;
    const { end } = this.#decoder;
    if (value === NOT_DECODED) {
      for (const piece of this.#takeBack()) {
        const forwarded = this.#state === 'reading' ? this.#hostReplies.forward(piece, 0) : 0;
        if (forwarded < piece.length) this.#finish(piece, forwarded);
      }
      // If the scanner is still amid this reply, the host gets its rest, too. It is not if only the CR LF after a
      // string was wrong, which only the decoder checks: then the host already has the whole reply.
      const goesOn = this.#state === 'reading' && this.#hostReplies.isAmidReply && end < chunk.length;
      return goesOn ? this.#hostReplies.forward(chunk, end) : end;
    }
    this.#assembledFor = undefined;
    this.#answer(entry, value, raw);
    return end;
  }

  #shiftAnswered(): void {
    this.client.commandQueue.shift();
    this.replies.fast += 1;
    this.stats.fastReplies += 1;
  }

  /** Removes the head of the queue, and settles it. A `raw` value goes to its `resolve`, which others have replaced. */
  #answer(head: Entry, value: unknown, raw: boolean): void {
    this.#shiftAnswered();
    this.incoming?.answered(head, value);
    if (raw) this.#runOthers(() => head.resolve(value));
    else head.answer(value, 'decoded');
  }

  /**
   * Finds where a reply begins on a connection in use: the host may hold a partial reply, and there is no way to ask.
   * But when it removes the head of its queue, a reply has just ended. So it gets the bytes line by line until then;
   * the next byte begins a reply. Host: ioredis 6 answers a command before the end of its last line, at `$-` of a null,
   * and skips the rest. Returns how many bytes it was given.
   */
  #forwardLines(chunk: Buffer, lines: LineByLine): number {
    const { commandQueue } = this.client;
    const head = commandQueue.peekFront();
    const end = lines.read(chunk, (line, beginning) => {
      this.forward(line);
      if (this.#state === 'joining' && head !== undefined && commandQueue.peekFront() !== head) {
        this.#state = 'reading';
        this.#hostReplies.answered(head);
        this.connection.transaction.replied(beginning);
      }
      return this.#state !== 'joining';
    });
    if (this.#state !== 'joining' && !lines.isWithinLine) this.#lines = undefined;
    return end;
  }

  /** Ends the connection: nothing more of it is read. */
  end(error: Error): void {
    this.#state = 'dead';
    this.connection.stream.destroy(error);
  }

  /** Leaves all decoding to the host from now on, also of what is held here of a reply. */
  giveUp(): void {
    if (this.#state !== 'reading' && this.#state !== 'joining') return;
    this.#state = 'forwarding';
    this.incoming?.ended();
    this.connection.readerGaveUp();
    this.#forwardPartial();
  }

  /** Hands the host the partial reply that is being assembled, if there is one. */
  #forwardPartial(): void {
    for (const piece of this.#takeBack()) this.#finish(piece, 0);
    const held = this.incoming?.release();
    if (held !== undefined) this.forward(held);
  }

  #takeBack(): Buffer[] {
    this.#assembledFor = undefined;
    const pieces = this.#heldError === undefined ? this.#decoder.release() : [this.#heldError];
    this.#heldError = undefined;
    return pieces;
  }

  /** Invariant 7: an error that user code throws out of the host's listener is rethrown later. */
  forward(bytes: Buffer): void {
    const { replies } = this;
    const kept = keep(bytes);
    replies.headBeforeForward = this.client.commandQueue.peekFront();
    this.#runOthers(() => this.hostListener.call(this.connection.stream, kept));
    replies.headBeforeForward = undefined;
  }

  #runOthers(code: () => void): void {
    this.#othersRun = true;
    this.#wasAttached = this.source.isAttached;
    try {
      code();
    } catch (error) {
      nextTick(() => {
        throw error;
      });
    } finally {
      this.#othersRun = false;
    }
    this.#checkListener();
    this.#wasAttached = false;
  }

  #kept(chunk: Buffer): Buffer {
    this.#keptChunk ??= keep(chunk);
    return this.#keptChunk;
  }
}
