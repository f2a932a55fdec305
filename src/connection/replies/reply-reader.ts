import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { CODES } from '../../errors.js';
import { transformsReply } from '../../host/command-class.js';
import { type InPlaceReader, keep, shareReadBuffer, unshareReadBuffer } from '../../host/read-in-place.js';
import { inSubscriberMode, isLayered, makeOptionsFast, mayAnswerNothing, replyModeOf } from '../../host/state.js';
import type { AnyFunction, HostClient, QueueItem } from '../../host/types.js';
import { INCOMPLETE, NOT_DECODED, ReplyDecoder } from '../../resp/decoder.js';
import { MEANING_LENGTH } from '../../resp/error-meaning.js';
import { ReplyScanner } from '../../resp/reply-scanner.js';
import type { Stats } from '../../stats.js';
import { nextTick } from '../../util/clock.js';
import type { ReadCache } from '../cache/read-cache.js';
import { Entry, InternalEntry } from '../entries/entry.js';
import { entryOf, type LayeredEntry } from '../entries/layered-entry.js';
import { EXEC, type ExecEntry } from '../entries/pipeline-entry.js';
import type { ReplyCount } from '../reply-count.js';
import type { TransactionState } from '../transaction-state.js';

/**
 * - `joining`: attached to a connection in use; the host may hold a partial reply, so it gets all bytes until a reply
 *   has ended.
 * - `reading`: replies to fast entries are decoded here.
 * - `forwarding`: the host gets all bytes: some are malformed, or replies and queue are not as expected.
 * - `dead`: the host has dropped its listener; the rest of the chunk is discarded.
 * - `removed`: detached; the host's listener is back in our place.
 */
type State = 'joining' | 'reading' | 'forwarding' | 'dead' | 'removed';

const PUSH = 62; // >
const MINUS = 45;
const LF = 10;
/** Characters that are kept of a line: as many as `+QUEUED` has. */
const LINE_KEPT = 7;
/** Bytes of an error line that are held at most. */
const LONGEST_HELD = 1024;
/** Fast replies before a connection is tuned for many of them: many clients ask once and quit. */
const REPLIES_BEFORE_TUNING = 32;

/** The connection of a reader. */
interface ReadConnection {
  readonly client: HostClient;
  readonly stream: Duplex;
  readonly stats: Stats;
  readonly replies: ReplyCount;
  readonly cache: ReadCache | undefined;
  /** The user's; on a connection in use replies tell about it. */
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
 * Bytes come by `readInPlace` where a socket is read into shared memory (`host/read-in-place.ts`), and else by `data`.
 *
 * A reply that is split by the end of a chunk has one owner (invariant 4). A fast entry's reply is assembled here;
 * until its last byte it can be handed to the host, from its first byte on. Any other reply is the host's, and the
 * scanner finds its last byte. If the host decodes a fast entry's reply, it resolves the entry like any command.
 */
export class ReplyReader implements InPlaceReader {
  #state: State;
  #reading = false;
  /** The host's listener is running, which may call user code. */
  #forwarding = false;
  /** The beginning of the line that the host is reading, while `joining` and until its line feed has come. */
  #line = '';
  readonly client: HostClient;
  readonly stats: Stats;
  readonly replies: ReplyCount;
  readonly cache: ReadCache | undefined;
  /** The chunk that is being read, in memory that is not used again, if something refers to it. */
  #keptChunk: Buffer | undefined;
  readonly #decoder: ReplyDecoder;
  readonly #scanner = new ReplyScanner();
  /** The head of the queue when the host got the first byte of a reply; undefined for a push. */
  #answering: QueueItem | undefined;
  /** The element of the queue whose reply is being assembled, and whether as the host's decoder gives it. */
  #assembledFor: QueueItem | undefined;
  #assembledRaw = false;
  /** The beginning of an error that may not be the host's, until its line feed has come. */
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
    this.cache = connection.cache;
    this.#decoder = new ReplyDecoder(replyModeOf(client), keep);
    this.#state = fresh ? 'reading' : 'joining';
    // Entries of an earlier attachment settle here too.
    for (let index = 0; index < client.commandQueue.length; index += 1) {
      if (entryOf(client.commandQueue.peekAt(index)) !== undefined) this.replies.expected += 1;
    }
  }

  /** Takes the place of the host's listener. */
  start(): void {
    const { stream } = this.connection;
    stream.removeListener('data', this.hostListener);
    // In front of other listeners, which may rely on the queue having moved on (the host's `setSocketTimeout`). Where
    // there are none, `on`: Node emits data within the read for listeners added by `on`, and on nextTick for prepended
    // ones. Host: other streams than sockets may answer within a write, before it has queued what it writes.
    if (stream.listenerCount('data') === 0 && stream instanceof Socket) stream.on('data', this.#onData);
    else stream.prependListener('data', this.#onData);
  }

  /** Whether fast commands may be encoded: replies are read here, from a known beginning on. */
  checkReady(): boolean {
    if (this.#forwarding) this.#checkDetached();
    return this.#state === 'reading';
  }

  /** Whether it is amid a chunk, or the host is: transformers and tracers, which may send commands, run now. */
  get isReading(): boolean {
    return this.#reading || this.#forwarding;
  }

  /** Whether the host decodes everything for the rest of this connection. */
  get stoppedDecoding(): boolean {
    return this.#state === 'forwarding';
  }

  /** Puts the host's listener back in our place. It decodes all later replies, those to fast entries included. */
  remove(): void {
    this.#checkDetached();
    if (this.#state === 'removed' || this.#state === 'dead') return;
    this.#state = 'removed';
    const { stream } = this.connection;
    unshareReadBuffer(stream, this);
    stream.removeListener('data', this.#onData);
    stream.prependListener('data', this.hostListener);
    this.#forwardPartial();
  }

  /** The stream has ended. Drops the partial reply: the host would take it for the start of the next stream's reply. */
  close(): void {
    this.#decoder.discard();
    this.#assembledFor = undefined;
    this.#heldError = undefined;
    if (this.#state !== 'removed') this.#state = 'dead';
  }

  /**
   * Invariant 9. Host: `flushQueue` removes all `data` listeners, and user code may do so too. Node does not emit
   * `removeListener` for the only listener of an event, so this is checked when other code has run, and while it runs.
   */
  #checkDetached(): void {
    const isGone = this.connection.stream.listenerCount('data', this.#onData) === 0;
    if (isGone && this.#state !== 'removed') this.#state = 'dead';
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#reading || !(chunk instanceof Buffer)) {
      // User code has emitted `data` on the stream itself, or has set its encoding: the host decides what to do.
      this.giveUp();
      this.#forward(chunk);
      return;
    }
    this.#readChunk(chunk);
  };

  /** Refuses bytes while other listeners get what is read, too. */
  readInPlace(bytes: Buffer): boolean {
    const { stream } = this.connection;
    if (this.#reading || stream.listenerCount('data') !== 1 || !stream.listenerCount('data', this.#onData))
      return false;
    this.#readChunk(bytes);
    return true;
  }

  #readChunk(chunk: Buffer): void {
    this.#reading = true;
    this.cache?.liveness.bytesReceived();
    try {
      const disagreement = this.replies.disagreement(this.client.commandQueue);
      // Layers may have let through only some commands of a pipeline, which is written with its last one.
      if (disagreement !== undefined && this.#state === 'reading' && !isLayered(this.client)) throw disagreement;
      // Ordering: before later replies.
      this.cache?.deliver();
      this.#read(this.#heldError === undefined ? chunk : Buffer.concat([...this.#takeBack(), chunk]));
    } catch (error) {
      // It is unknown which reply comes next, and the rest would go to the wrong callers (invariant 3).
      this.#end(error as Error);
    } finally {
      this.#reading = false;
      this.#keptChunk = undefined;
    }
    if (!this.#isTuned && this.#state === 'reading' && this.replies.fast >= REPLIES_BEFORE_TUNING) {
      this.#isTuned = true;
      makeOptionsFast(this.client);
      shareReadBuffer(this.connection.stream, this);
    }
    this.connection.chunkRead();
  }

  #read(chunk: Buffer): void {
    let position = 0;
    if (this.#state === 'joining') position = this.#join(chunk);
    else if (this.#line !== '') position = this.#passLineEnd(chunk);
    const { cache, replies } = this;
    const { transaction } = this.connection;
    if (cache?.invalidations.open) position = this.#readPush(cache, chunk, position);
    else if (this.#assembledFor !== undefined) position = this.#assemble(this.#assembledFor, chunk);
    else if (this.#scanner.outstanding > 0 && this.#state === 'reading') position = this.#forwardReply(chunk, position);
    while (position < chunk.length) {
      if (this.#state !== 'reading') {
        this.#finish(chunk, position);
        return;
      }
      if (transaction.unknown && chunk[position] !== PUSH) {
        transaction.replied(chunk.latin1Slice(position, Math.min(position + LINE_KEPT, chunk.length)));
      }
      if (cache !== undefined && chunk[position] === PUSH) position = this.#readPush(cache, chunk, position);
      else if (replies.expected === replies.fast && cache === undefined) position = this.#forwardRest(chunk, position);
      else position = this.#readReply(chunk, position);
    }
  }

  /** Reads invalidations here, and forwards other pushes to the host. */
  #readPush(cache: ReadCache, chunk: Buffer, position: number): number {
    const { invalidations } = cache;
    if (invalidations.read(chunk, position)) return invalidations.end;
    cache.pushed();
    if (invalidations.open) this.#forwardReply(invalidations.release(), 0);
    return this.#forwardReply(chunk, position);
  }

  /** Hands the host the rest of a chunk that is not read here, if it still has its listener. */
  #finish(chunk: Buffer, position: number): void {
    if (this.#state !== 'dead') this.#forward(position === 0 ? chunk : chunk.subarray(position));
  }

  /** Reads the reply at `position`; returns where it, or the chunk, ends. */
  #readReply(chunk: Buffer, position: number): number {
    const queue = this.client.commandQueue;
    const item = queue.peekFront();
    const head = item instanceof Entry ? item : entryOf(item);
    // Host: under RESP2 messages of a subscription look like replies; its decoder recognizes them by this condition.
    if (head === undefined || inSubscriberMode(this.client)) return this.#forwardReply(chunk, position);
    if (chunk[position] === MINUS) return this.#readError(head, chunk, position);
    const { command, encoding } = head.variant;
    const raw = head !== item && (head as LayeredEntry).takesRaw;
    const isText = encoding === 'utf8' && !raw;
    const bytes = isText ? chunk : this.#kept(chunk);
    const value =
      head.variant === EXEC
        ? this.#decodeExec(head as ExecEntry, bytes, position)
        : this.#decoder.decode(bytes, position, isText, command.paired && !raw);
    if (value === NOT_DECODED) return this.#forwardReply(chunk, position);
    if (value === INCOMPLETE) {
      this.#assembledFor = item;
      this.#assembledRaw = raw;
      return chunk.length;
    }
    const { end } = this.#decoder;
    this.#answer(head, value, raw);
    return end;
  }

  /** Hands the host an error, unless it is nobody's, or the entry sends its calls again. */
  #readError(head: Entry, chunk: Buffer, position: number): number {
    const end = chunk.indexOf(LF, position);
    if (!(head instanceof InternalEntry) || (end < 0 && chunk.length - position > LONGEST_HELD))
      return this.#forwardReply(chunk, position);
    if (end < 0) {
      this.#heldError = Buffer.from(chunk.subarray(position));
      return chunk.length;
    }
    const message = chunk.utf8Slice(position + 1, end - 1);
    this.cache?.failed(head, message.padEnd(MEANING_LENGTH));
    if (!head.handlesError(message)) return this.#forwardReply(chunk, position);
    this.#shiftAnswered();
    this.cache?.answered(head, undefined);
    return end + 1;
  }

  /** Decodes all replies of a transaction. A user's transformer for EXEC expects them as the host decodes them. */
  #decodeExec(head: ExecEntry, chunk: Buffer, position: number): unknown {
    if (transformsReply(head.context.commandClass, 'exec')) return NOT_DECODED;
    return this.#decoder.decodeElements(chunk, position, head);
  }

  /** Reads the next piece of a fast entry's split reply; returns where the piece ends. */
  #assemble(item: QueueItem, chunk: Buffer): number {
    const raw = this.#assembledRaw;
    const entry = entryOf(item);
    const isSame = entry !== undefined && this.client.commandQueue.peekFront() === item;
    // A tracer may replace `resolve` at any time.
    if (!isSame || (entry !== item && (entry as LayeredEntry).takesRaw !== raw)) {
      this.giveUp();
      return 0;
    }
    const value = this.#decoder.resume(chunk);
    if (value === INCOMPLETE) return chunk.length;
    const { end } = this.#decoder;
    if (value === NOT_DECODED) {
      for (const piece of this.#takeBack()) {
        const forwarded = this.#state === 'reading' ? this.#forwardReply(piece, 0) : 0;
        if (forwarded < piece.length) this.#finish(piece, forwarded);
      }
      // A string that does not end in CR LF was whole already.
      const goesOn = this.#state === 'reading' && this.#scanner.outstanding > 0 && end < chunk.length;
      return goesOn ? this.#forwardReply(chunk, end) : end;
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

  /** Settles the head of the queue with its reply; through a `resolve` that a tracer has put there if it is `raw`. */
  #answer(head: Entry, value: unknown, raw: boolean): void {
    this.#shiftAnswered();
    this.cache?.answered(head, value);
    if (raw) this.#runOthers(() => head.resolve(value));
    else head.answer(value, 'decoded');
  }

  /**
   * Looks for the end of a reply. After what is unreadable, nothing more of the connection is read here. The connection
   * ends before the host sees a header that announces too much; its `error` handler does the rest.
   */
  #scan(chunk: Buffer, position: number): 'whole' | 'more' | 'unreadable' {
    const result = this.#scanner.scan(chunk, position);
    if (result === 'whole' || result === 'more') return result;
    if (result === 'malformed') this.giveUp();
    else {
      const error = new Error(`the server announced ${this.#scanner.excess}, the connection is closed`);
      this.#end(Object.assign(error, { code: CODES.REPLY }));
    }
    return 'unreadable';
  }

  /** Hands the host one reply, or the part of it in this chunk; returns where that ends. */
  #forwardReply(chunk: Buffer, position: number): number {
    const queue = this.client.commandQueue;
    const head = queue.peekFront();
    if (this.#scanner.outstanding === 0) this.#answering = chunk[position] === PUSH ? undefined : head;
    if (head !== undefined && chunk[position] === MINUS && this.#scanner.outstanding === 0) {
      const start = position + 1;
      this.cache?.failed(head.command, chunk.latin1Slice(start, Math.min(start + MEANING_LENGTH, chunk.length)));
    }
    const result = this.#scan(chunk, position);
    if (result === 'unreadable') return position;
    const end = result === 'whole' ? this.#scanner.end : chunk.length;
    this.#forward(position === 0 && end === chunk.length ? chunk : chunk.subarray(position, end));
    if (head !== undefined && queue.peekFront() !== head) this.#hostAnswered(head);
    if (result !== 'whole') return end;
    this.stats.fallbackReplies += 1;
    const late = this.#answering;
    // The host answers later, and the next reply would go to the head: let it decode all of them (invariant 3).
    if (late !== undefined && queue.peekFront() === late && !mayAnswerNothing(this.client, late)) this.giveUp();
    return end;
  }

  /** The host has removed the head of the queue. */
  #hostAnswered(head: QueueItem): void {
    const entry = entryOf(head);
    if (entry === undefined) this.replies.others += 1;
    else this.replies.fast += 1;
    this.cache?.answered(entry, undefined);
  }

  /** No fast entry is in flight: the host gets the rest of the chunk in one piece; the scanner only counts replies. */
  #forwardRest(chunk: Buffer, start: number): number {
    let position = start;
    while (position < chunk.length) {
      const result = this.#scan(chunk, position);
      if (result === 'unreadable') return start;
      if (result === 'more') break;
      this.stats.fallbackReplies += 1;
      position = this.#scanner.end;
    }
    this.#forward(start === 0 ? chunk : chunk.subarray(start));
    return chunk.length;
  }

  /**
   * Finds where a reply begins on a connection in use: the host may hold a partial reply, and there is no way to ask.
   * But when it removes the head of its queue, a reply has just ended. So it gets the bytes line by line until then;
   * the next byte begins a reply. Returns how many bytes it was given.
   */
  #join(chunk: Buffer): number {
    const { commandQueue } = this.client;
    const head = commandQueue.peekFront();
    let position = 0;
    while (position < chunk.length && this.#state === 'joining') {
      const lineEnd = chunk.indexOf(LF, position);
      const next = lineEnd < 0 ? chunk.length : lineEnd + 1;
      this.#line = (this.#line + chunk.latin1Slice(position, Math.min(next, position + LINE_KEPT))).slice(0, LINE_KEPT);
      this.#forward(chunk.subarray(position, next));
      position = next;
      if (this.#state === 'joining' && head !== undefined && commandQueue.peekFront() !== head) {
        this.#state = 'reading';
        this.#hostAnswered(head);
        this.connection.transaction.replied(this.#line);
      }
      if (lineEnd >= 0) this.#line = '';
    }
    return position;
  }

  /** Host: ioredis 6 answers a command before the end of its last line, at `$-` of a null, and skips the rest. */
  #passLineEnd(chunk: Buffer): number {
    const end = chunk.indexOf(LF) + 1 || chunk.length;
    if (chunk[end - 1] === LF) this.#line = '';
    this.#forward(chunk.subarray(0, end));
    return end;
  }

  #end(error: Error): void {
    this.#state = 'dead';
    this.connection.stream.destroy(error);
  }

  /** Leaves all decoding to the host from now on, also of what is held here of a reply. */
  giveUp(): void {
    if (this.#state !== 'reading') return;
    this.#state = 'forwarding';
    this.cache?.end();
    this.connection.readerGaveUp();
    this.#forwardPartial();
  }

  /** Hands the host the partial reply that is being assembled, if there is one. */
  #forwardPartial(): void {
    for (const piece of this.#takeBack()) this.#finish(piece, 0);
    if (this.cache?.invalidations.open) this.#forward(this.cache.invalidations.release());
  }

  #takeBack(): Buffer[] {
    this.#assembledFor = undefined;
    const pieces = this.#heldError === undefined ? this.#decoder.release() : [this.#heldError];
    this.#heldError = undefined;
    return pieces;
  }

  /** Invariant 7: an error that user code throws out of the host's listener is rethrown later. */
  #forward(bytes: Buffer): void {
    const { replies } = this;
    const kept = keep(bytes);
    replies.leaving = this.client.commandQueue.peekFront();
    this.#runOthers(() => this.hostListener.call(this.connection.stream, kept));
    replies.leaving = undefined;
  }

  #runOthers(code: () => void): void {
    this.#forwarding = true;
    try {
      code();
    } catch (error) {
      nextTick(() => {
        throw error;
      });
    } finally {
      this.#forwarding = false;
    }
    this.#checkDetached();
  }

  #kept(chunk: Buffer): Buffer {
    this.#keptChunk ??= keep(chunk);
    return this.#keptChunk;
  }
}
