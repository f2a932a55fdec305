import type { Duplex } from 'node:stream';
import { reportConnection } from '../channels.js';
import { addressOf, clientFallbackReason, isLayered } from '../host/state.js';
import type { AnyFunction, HostClient } from '../host/types.js';
import type { FallbackReason, Stats } from '../stats.js';
import { nextTick, setImmediate } from '../util/clock.js';
import { hookStream } from '../util/hook-stream.js';
import { drainAtExit } from '../util/process-exit.js';
import type { Incoming } from './features.js';
import { HostWriteHook } from './host-writes.js';
import { type ConnectionSetup, Outgoing } from './outgoing.js';
import { notAsWritten, ReplyCount } from './reply-count.js';
import { ReplyReader } from './reply-reader.js';
import { TransactionState } from './transaction-state.js';

const NOT_READ = "replies, the queue or the stream's write are not as expected, the client decodes all replies";

/**
 * The life of one connection: hooks its stream, and ends with it. `Outgoing` sends this package's commands,
 * `HostWriteHook` receives the host's writes, `ReplyReader` reads replies. The client's next stream gets a new
 * `Connection`.
 */
export class Connection {
  readonly client: HostClient;
  readonly stats: Stats;
  /** False once the stream ends or fails, or the client is detached. */
  open = true;
  /** Whether the user has a transaction open. */
  readonly transaction: TransactionState;
  readonly replies = new ReplyCount();
  readonly outgoing: Outgoing;
  readonly reader: ReplyReader;
  readonly incoming: Incoming | undefined;
  readonly #hostWrites: HostWriteHook;
  /** Whether anything but replies to the handshake has come. */
  #hasAnswered = false;
  #isDetached = false;
  /** Whether the host does everything itself from now on: nothing is held here or sent fast. */
  isLeftToHost = false;
  #unhook = () => {};
  #address: string | undefined;
  #forgetExit = () => {};

  /** Creates the parts; none of them acts before `start()`. */
  constructor(
    setup: ConnectionSetup,
    readonly stream: Duplex,
    /** The host's `data` listener on it. */
    listener: AnyFunction,
    /** Whether nothing has been received on the stream yet. */
    readonly fresh: boolean,
  ) {
    const { client, counters } = setup;
    this.client = client;
    this.stats = counters;
    this.transaction = new TransactionState(client.commandQueue, !fresh);
    this.outgoing = new Outgoing(setup, this);
    this.incoming = this.outgoing.reads?.incoming;
    this.#hostWrites = new HostWriteHook(this.outgoing);
    this.reader = new ReplyReader(this, listener, fresh);
  }

  /** Takes the stream over. Called once the client has this connection: subscribers may detach it. */
  start(): void {
    const { stream, reader } = this;
    this.#unhook = hookStream(stream, this.#hostWrites.write, this.#onEnd);
    this.#forgetExit = drainAtExit(() => this.drain('exit'));
    reader.source.start();
    stream.once('close', this.#onClose);
    // If user code attaches while the host reads a chunk, the host reads its rest, too. Those replies may make room.
    if (!this.fresh) setImmediate(this.chunkRead);
    this.incoming?.started();
    reportConnection(this, 'attached', undefined);
  }

  /** Why a command cannot take the fast path on this connection now; undefined if it can. */
  fallbackReason(): FallbackReason | undefined {
    const { reader, replies } = this;
    const mustCheck = replies.expectedQueueLength !== undefined && !replies.isLast(this.client.commandQueue);
    if (!this.mayWrite() || (mustCheck && !this.checkQueue('write'))) return 'connection';
    if (!reader.checkReady()) return reader.stoppedDecoding ? 'downgraded' : 'connection';
    return clientFallbackReason(this.client, this.stream);
  }

  /**
   * Called before pending bytes are written or a command is sent; false if the connection has ended. Once other code
   * has replaced `write`, the host does everything itself: that code may write past our hook, or hold bytes back.
   *
   * @param queuedAhead - for a write of the host: how many of its commands are queued already.
   */
  mayWrite(queuedAhead = 0): boolean {
    if (!this.open || this.isLeftToHost || this.stream.write === this.#hostWrites.write) return this.open;
    const isLast = this.stream.readableEnded || this.replies.isLast(this.client.commandQueue, queuedAhead);
    // The host may have queued commands after those that are held here, and have written them past our hook.
    if (this.#holdsBytes && !isLast) this.failed(notAsWritten());
    else this.#leaveToHost();
    return this.open;
  }

  /** Whether bytes of queued commands have not been handed to the stream. */
  get #holdsBytes(): boolean {
    const { gate, batch } = this.outgoing;
    return gate.waiting > 0 || batch.holdsBytes;
  }

  #leaveToHost(): void {
    const { gate, batch } = this.outgoing;
    this.isLeftToHost = true;
    gate.lift(batch);
    batch.writePending();
    // Node: a socket that the server has ended gets another `write`, too. No reply will come.
    if (this.stream.readableEnded) this.reader.close();
    else this.reader.giveUp();
  }

  /** The reader says that from now on the host decodes everything, and entries leave the queue uncounted. */
  readerGaveUp(): void {
    // Later: subscribers must not run inside the reader (invariant 7).
    nextTick(() => {
      if (!this.#isDetached) reportConnection(this, 'downgraded', NOT_READ);
    });
  }

  /** The server's. Read only when there are subscribers: a socket keeps its peer's address once it was read. */
  get address(): string {
    this.#address ??= addressOf(this.client, this.stream);
    return this.#address;
  }

  /** Leaves the stream as it was found; commands in flight settle through the host. */
  detach(): void {
    this.incoming?.ended(true);
    this.#close();
    this.outgoing.socketTimeout?.leaveToHost();
    this.reader.remove();
    this.stream.removeListener('close', this.#onClose);
    this.#forgetExit();
    this.#unhook();
    this.#reportDetached('detach()');
    this.incoming?.deliver();
  }

  readonly #onEnd = (method: 'end' | 'destroy'): void => {
    if (!this.open) return;
    const { client, stream } = this;
    const { gate } = this.outgoing;
    // Only a ready connection counts (the few commands of a handshake say nothing about `inFlightBound`), and only if
    // the client did not end it.
    const isLost = client.status === 'ready' && (method === 'destroy' || stream.readableEnded);
    if (isLost) gate.inFlightBound.lost(gate.inFlight, this.#hasAnswered);
    this.#close();
    this.incoming?.deliver();
  };

  /**
   * Compares the queue with what was written (invariant 3). If the host has queued more behind all that is held here,
   * it does the rest itself: it wrote past our hook, or layers over `sendCommand` delay commands of a pipeline.
   * Otherwise replies would go to the wrong callers, and the connection ends.
   *
   * @param before - what comes next.
   * @param queuedAhead - for a write of the host: how many of its commands are queued already (all but the last).
   * @returns false if the connection has ended.
   */
  checkQueue(before: 'entry' | 'write' | 'chunk', queuedAhead = 0): boolean {
    const { client, reader, replies } = this;
    const isChunk = before === 'chunk';
    if (isChunk && this.open && !this.mayWrite()) return false;
    const mismatch = replies.queueMismatch(client.commandQueue, queuedAhead, isChunk);
    if (mismatch === undefined || this.isLeftToHost) return true;
    const isDelayed = !mismatch.isShort && isLayered(client);
    if (isDelayed && isChunk) return true;
    const isBehind = isDelayed || (!mismatch.isShort && !this.#holdsBytes);
    if (isBehind && before !== 'entry') this.#leaveToHost();
    else if (reader.checkReady() && this.stream.listenerCount('data') > 0) {
      // Host: without `data` listeners it has just emptied its queue, so the length means nothing.
      this.failed(mismatch.error);
      return false;
    }
    return true;
  }

  /** A chunk has been read to its end. */
  readonly chunkRead = (): void => {
    const { socketTimeout, gate, batch } = this.outgoing;
    socketTimeout?.received();
    const mayWrite = this.mayWrite();
    // Its replies have taken commands out of the queue.
    this.replies.expectedQueueLength = undefined;
    this.replies.lastQueued = this.client.commandQueue.peekAt(-1);
    if (!mayWrite) return;
    this.#hasAnswered ||= this.client.status === 'ready';
    if (gate.waiting > 0) gate.release(batch);
    batch.poll.repliesCame();
  };

  /** Sends the backlog and all pending bytes, without limits: the stream or the process is about to end. */
  drain(reason: 'end' | 'exit'): void {
    if (this.stream.destroyed || !this.mayWrite()) return;
    const { gate, batch } = this.outgoing;
    gate.drain(batch);
    batch.flushThenTell(reason);
  }

  /**
   * The stream is about to end: pending bytes go first (invariant 2), as a plain client has written them by now.
   * Host: `disconnect()` ends the stream, and destroys it after `disconnectTimeout`.
   */
  #close(): void {
    this.incoming?.ended();
    this.drain('end');
    this.open = false;
  }

  /**
   * Ends the connection without sending what is pending: queue and wire no longer match, so every later reply would go
   * to the wrong caller (invariant 3).
   */
  failed(error: unknown): void {
    this.open = false;
    this.stream.destroy(error instanceof Error ? error : new Error(String(error)));
  }

  readonly #onClose = (): void => {
    this.open = false;
    this.incoming?.ended();
    this.transaction.becomes('closed');
    this.#forgetExit();
    this.outgoing.batch.discard();
    this.replies.lastQueued = undefined;
    this.outgoing.socketTimeout?.clear();
    this.reader.close();
    this.#reportDetached('the connection is closed');
    this.incoming?.deliver();
  };

  /** Once: a stream that is destroyed is closed later. */
  #reportDetached(reason: string): void {
    if (this.#isDetached) return;
    this.#isDetached = true;
    reportConnection(this, 'detached', reason);
  }
}
