import type { Duplex } from 'node:stream';
import { CODES, withCode } from '../errors.js';
import { inSubscriberMode } from '../host/state.js';
import type { AnyFunction, HostClient, QueueItem } from '../host/types.js';
import type { ReplyMode } from '../resp/decoder.js';
import { CUT, NOT_DECODED, ReplyDecoder } from '../resp/decoder.js';
import { ReplyAssembler } from '../resp/reply-assembler.js';
import { ReplyScanner } from '../resp/reply-scanner.js';
import type { Stats } from '../stats.js';
import { nextTick } from '../util/clock.js';
import { copyOfReply, Entry, type EntryContext, transformDecodedReply } from './entry.js';
import { EXEC, type ExecEntry } from './pipeline-entry.js';
import type { ReadCache } from './read-cache.js';

/**
 * - `joining`: attached to a connection in use; the host may hold half a reply, so it gets everything until a reply is
 *   seen to end.
 * - `reading`: replies to light entries are decoded here.
 * - `forwarding`: something malformed was seen; the host gets everything and makes its own error of it.
 * - `dead`: the host has dropped its listener; what is left of the chunk is nobody's.
 * - `removed`: detached; the host's listener is back in our place.
 */
type State = 'joining' | 'reading' | 'forwarding' | 'dead' | 'removed';

const LF = 10;
const PUSH = 62; // >
/** Characters of a line that are kept of it: as many as `+QUEUED` has. */
const LINE_KEPT = 7;

/**
 * Stands in front of the host's decoder on one connection. A chunk is cut into replies; a reply is decoded here when
 * the head of the host's queue is a light entry and the reply is whole and plain, else its bytes go untouched to the
 * listener that the host registered.
 *
 * A reply that the end of a chunk cuts has one owner (invariant 4). A light entry's is put together here, and can become
 * the host's from its first byte until the last. Any other is the host's, and the scanner finds its last byte. A light
 * entry whose reply the host decodes is resolved by it, as any command.
 */
export class ReplyReader {
  /** Light entries that have left the queue of this connection. */
  settled = 0;

  /** Bytes of a reply, on average over the last chunks. */
  bytesPerReply = 0;
  /** Bytes read and replies ended since `bytesPerReply` was updated. */
  #bytesRead = 0;
  #repliesBefore = 0;

  /** Light entries that were put into it. */
  #sent = 0;
  #state: State;
  #reading = false;
  /** The host's listener is running, and with it maybe user code. */
  #forwarding = false;
  /** While joining: how the line begins that is being read. */
  #line = '';
  /** A reply has ended for the host, but for the line feed that is still to come. */
  #lineFeedToCome = false;
  readonly #decoder: ReplyDecoder;
  readonly #scanner = new ReplyScanner();
  readonly #assembler: ReplyAssembler;
  /** Whose reply is being put together. */
  #assembledFor: Entry | undefined;

  constructor(
    readonly client: HostClient,
    readonly stream: Duplex,
    readonly hostListener: AnyFunction,
    readonly context: EntryContext,
    mode: ReplyMode,
    readonly stats: Stats,
    /** Whether nothing has been received on the stream yet. */
    fresh: boolean,
    readonly cache: ReadCache | undefined,
    readonly observer: {
      /** A reply was seen to end on a connection in use; `line` is how its last line begins. */
      joined(line: string): void;
      /** A chunk has been read to its end. */
      chunkRead(): void;
      /** From now on the host decodes everything, and entries leave the queue uncounted. */
      stoppedDecoding(): void;
    },
  ) {
    this.#decoder = new ReplyDecoder(mode);
    this.#assembler = new ReplyAssembler(this.#decoder);
    this.#state = fresh ? 'reading' : 'joining';
    // Of an attachment before this one; they settle here.
    for (let index = 0; index < client.commandQueue.length; index += 1) {
      if (client.commandQueue.peekAt(index) instanceof Entry) this.#sent += 1;
    }
    stream.removeListener('data', hostListener);
    // In front of other listeners, which may rely on the queue having moved on (the host's `setSocketTimeout`). Where
    // there are none, `on`: Node emits data within the read for listeners added so, and on nextTick for prepended ones.
    if (stream.listenerCount('data') === 0) stream.on('data', this.#onData);
    else stream.prependListener('data', this.#onData);
  }

  /** A light entry is about to be queued; returns its number on this connection. */
  expect(): number {
    const number = this.#sent;
    this.#sent = number + 1;
    return number;
  }

  /** Whether hot commands may be encoded: their replies will come past here, or reach the host in order. */
  checkReady(): boolean {
    if (this.#forwarding) this.#checkDetached();
    return this.#state === 'reading';
  }

  /** Whether the host decodes everything from now on, as long as this connection lasts. */
  get stoppedDecoding(): boolean {
    return this.#state === 'forwarding';
  }

  /** Puts the host's listener back in our place. It decodes what is in flight, light entries included. */
  remove(): void {
    this.#checkDetached();
    if (this.#state === 'removed' || this.#state === 'dead') return;
    this.#state = 'removed';
    this.stream.removeListener('data', this.#onData);
    this.stream.prependListener('data', this.hostListener);
    this.#handOver();
  }

  /** The stream has ended, and what it said of a reply is worth nothing: the host would take it for the next one's. */
  close(): void {
    this.#assembler.discard();
    this.#assembledFor = undefined;
    if (this.#state !== 'removed') this.#state = 'dead';
  }

  /**
   * Invariant 9. Host: `flushQueue` removes all `data` listeners, and user code does so now and then. Node does not emit
   * `removeListener` for the only listener of a stream's event, so we look whenever other code has run, and while it
   * runs.
   */
  #checkDetached(): void {
    if (this.#state !== 'removed' && this.stream.listenerCount('data', this.#onData) === 0) this.#state = 'dead';
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#reading || !(chunk instanceof Buffer)) {
      // Re-entered by user code that emits data on the stream itself, or a stream with an encoding: not ours to judge.
      this.#giveUp();
      this.#forward(chunk);
      return;
    }
    this.#reading = true;
    this.cache?.heard();
    try {
      this.#read(chunk);
    } finally {
      this.#reading = false;
    }
    this.#weigh(chunk.length);
    this.observer.chunkRead();
  };

  #weigh(bytes: number): void {
    this.#bytesRead += bytes;
    const replies = this.stats.hotReplies + this.stats.hostReplies;
    if (replies === this.#repliesBefore) return;
    this.bytesPerReply += (this.#bytesRead / (replies - this.#repliesBefore) - this.bytesPerReply) / 8;
    this.#bytesRead = 0;
    this.#repliesBefore = replies;
  }

  #read(chunk: Buffer): void {
    let position = this.#state === 'joining' ? this.#join(chunk) : this.#passLineFeed(chunk);
    const { cache } = this;
    if (cache?.invalidations.open) position = this.#readPush(cache, chunk, position);
    else if (this.#assembler.open) position = this.#assemble(chunk);
    else if (this.#scanner.midReply && this.#state === 'reading') position = this.#forwardReply(chunk, position);
    while (position < chunk.length) {
      if (this.#state !== 'reading') {
        this.#finish(chunk, position);
        return;
      }
      if (cache !== undefined && chunk[position] === PUSH) position = this.#readPush(cache, chunk, position);
      else if (this.#sent === this.settled && cache === undefined) position = this.#forwardRest(chunk, position);
      else position = this.#readReply(chunk, position);
    }
  }

  /** Invalidations are taken out; other pushes are the host's, as replies to its commands are. */
  #readPush({ invalidations }: ReadCache, chunk: Buffer, position: number): number {
    if (invalidations.read(chunk, position)) return invalidations.end;
    if (invalidations.open) this.#forwardReply(invalidations.release(), 0);
    return this.#forwardReply(chunk, position);
  }

  /** What happens to the rest of a chunk when we do not read it ourselves. */
  #finish(chunk: Buffer, position: number): void {
    if (this.#state !== 'dead') this.#forward(position === 0 ? chunk : chunk.subarray(position));
  }

  /** Ends where the chunk or the reply at `position` ends; returns that position. */
  #readReply(chunk: Buffer, position: number): number {
    const queue = this.client.commandQueue;
    const head = queue.peekFront();
    // Host: under RESP2 messages of a subscription look like replies, and its decoder tells them by this condition.
    if (!(head instanceof Entry) || inSubscriberMode(this.client)) return this.#forwardReply(chunk, position);
    const utf8 = head.variant.encoding === 'utf8';
    const value =
      head.variant === EXEC
        ? this.#decodeExec(head as ExecEntry, chunk, position)
        : this.#decoder.decode(chunk, position, utf8);
    if (value === NOT_DECODED) return this.#forwardReply(chunk, position);
    if (value === CUT) {
      if (!this.#assembler.begin(chunk, position)) return this.#forwardReply(chunk, position);
      this.#assembledFor = head;
      return chunk.length;
    }
    const { end } = this.#decoder;
    this.#answer(head, value);
    return end;
  }

  /** A transaction's replies at once; a transformer of users' for EXEC expects them as the host decodes them. */
  #decodeExec(head: ExecEntry, chunk: Buffer, position: number): unknown {
    if (this.context.commandClass._transformer.reply.exec !== undefined) return NOT_DECODED;
    return this.#decoder.decodeElements(chunk, position, head);
  }

  /** A light entry's reply that chunks have cut: the next piece of it. Returns where that ends. */
  #assemble(chunk: Buffer): number {
    const entry = this.#assembledFor as Entry;
    if (this.client.commandQueue.peekFront() !== entry) {
      this.#giveUp();
      return 0;
    }
    const value = this.#assembler.add(chunk);
    if (value === CUT) return chunk.length;
    if (value === NOT_DECODED) {
      for (const piece of this.#takeBack()) {
        const end = this.#state === 'reading' ? this.#forwardReply(piece, 0) : 0;
        if (end < piece.length) this.#finish(piece, end);
      }
      return this.#state === 'reading' ? this.#forwardReply(chunk, 0) : 0;
    }
    this.#assembledFor = undefined;
    const { end } = this.#decoder;
    this.#answer(entry, value);
    return end;
  }

  /** The head of the queue has its reply. */
  #answer(head: Entry, value: unknown): void {
    this.client.commandQueue.shift();
    this.settled += 1;
    this.stats.hotReplies += 1;
    this.cache?.answered(head, value);
    const { followers } = head;
    if (followers === undefined) {
      this.#settle(head, value);
      return;
    }
    // Every caller gets a value of its own, Buffers included; made first, since transformers may change theirs.
    const copies = followers.map(() => copyOfReply(value));
    this.#settle(head, value);
    for (const [index, follower] of followers.entries()) this.#settle(follower, copies[index]);
  }

  #settle(entry: Entry, value: unknown): void {
    // Users can set a reply transformer at any time, so it is looked up at each reply, as the host does.
    if (this.context.commandClass._transformer.reply[entry.variant.command.name] === undefined) {
      entry.fulfil(value);
      return;
    }
    let transformed: unknown;
    try {
      transformed = transformDecodedReply(entry, value);
    } catch (error) {
      entry.failAlone(error);
      return;
    }
    entry.fulfil(transformed);
  }

  /** Hands the host one reply, or as much of it as the chunk holds; returns the position behind that. */
  #forwardReply(chunk: Buffer, position: number): number {
    const result = this.#scanner.scan(chunk, position);
    if (result === 'malformed') {
      this.#giveUp();
      return position;
    }
    if (result === 'oversized') {
      this.#abort();
      return position;
    }
    const end = result === 'whole' ? this.#scanner.end : chunk.length;
    const queue = this.client.commandQueue;
    const head = queue.peekFront();
    this.#forward(position === 0 && end === chunk.length ? chunk : chunk.subarray(position, end));
    if (head !== undefined && queue.peekFront() !== head) this.#hostAnswered(head);
    if (result === 'whole') this.stats.hostReplies += 1;
    return end;
  }

  /** The host has taken the head off the queue. */
  #hostAnswered(head: QueueItem): void {
    const entry = head instanceof Entry ? head : undefined;
    if (entry !== undefined) this.settled += 1;
    this.cache?.answered(entry, undefined);
  }

  /** No light entry is in flight: the host gets the rest of the chunk in one piece, we only keep track of its end. */
  #forwardRest(chunk: Buffer, start: number): number {
    let position = start;
    while (position < chunk.length) {
      const result = this.#scanner.scan(chunk, position);
      if (result === 'malformed') {
        this.#giveUp();
        return start;
      }
      if (result === 'oversized') {
        this.#abort();
        return start;
      }
      if (result === 'more') break;
      this.stats.hostReplies += 1;
      position = this.#scanner.end;
    }
    this.#forward(start === 0 ? chunk : chunk.subarray(start));
    return chunk.length;
  }

  /**
   * Attached in mid-life: the host may hold half a reply, and nobody says so. But when it takes the head off its queue,
   * a reply has just ended. So it is fed line by line until it does; what follows is the first byte of a reply.
   *
   * @returns how much of the chunk the host was given.
   */
  #join(chunk: Buffer): number {
    const queue = this.client.commandQueue;
    const head = queue.peekFront();
    let position = 0;
    while (position < chunk.length && this.#state === 'joining') {
      const lineEnd = chunk.indexOf(LF, position);
      const next = lineEnd < 0 ? chunk.length : lineEnd + 1;
      const line = (this.#line + chunk.latin1Slice(position, Math.min(next, position + LINE_KEPT))).slice(0, LINE_KEPT);
      this.#line = lineEnd < 0 ? line : '';
      this.#forward(chunk.subarray(position, next));
      position = next;
      if (this.#state === 'joining' && head !== undefined && queue.peekFront() !== head) {
        this.#state = 'reading';
        this.#hostAnswered(head);
        this.observer.joined(line);
        // Host: ioredis 6 answers a command at the carriage return and skips the rest of the line's end unseen.
        this.#lineFeedToCome = lineEnd < 0;
      }
    }
    return position;
  }

  #passLineFeed(chunk: Buffer): number {
    if (!this.#lineFeedToCome) return 0;
    this.#lineFeedToCome = false;
    if (chunk[0] !== LF) return 0;
    this.#forward(chunk.subarray(0, 1));
    return 1;
  }

  /** The host has not seen the header that says too much, and never will. Its `error` handler does the rest. */
  #abort(): void {
    this.#state = 'dead';
    this.stream.destroy(
      withCode(new Error(`the server announced ${this.#scanner.excess}, the connection is closed`), CODES.REPLY),
    );
  }

  #giveUp(): void {
    if (this.#state !== 'reading') return;
    this.#state = 'forwarding';
    this.cache?.end();
    this.observer.stoppedDecoding();
    this.#handOver();
  }

  /** What is there of a reply that is being put together is the host's from now on. */
  #handOver(): void {
    for (const piece of this.#takeBack()) this.#finish(piece, 0);
    if (this.cache?.invalidations.open) this.#forward(this.cache.invalidations.release());
  }

  #takeBack(): Buffer[] {
    this.#assembledFor = undefined;
    return this.#assembler.release();
  }

  /** Invariant 7: whatever user code throws out of the host's listener surfaces later and unwinds nothing here. */
  #forward(bytes: Buffer): void {
    this.#forwarding = true;
    try {
      this.hostListener.call(this.stream, bytes);
    } catch (error) {
      nextTick(() => {
        throw error;
      });
    } finally {
      this.#forwarding = false;
      this.#checkDetached();
    }
  }
}
