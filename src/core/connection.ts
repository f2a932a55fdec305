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

const NOT_READ = 'replies or the queue are not as expected, the client decodes all replies';

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
  /** The function in place of our hook, once what was held has been written. */
  #replacedBy: unknown;
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
    const { reader } = this;
    if (!this.open) return 'connection';
    // Fast bytes would overtake what a wrapper over our hook holds back.
    if (this.stream.write !== this.#hostWrites.write) {
      this.#handOver();
      return 'patched';
    }
    this.#replacedBy = undefined;
    if (!reader.checkReady()) return reader.stoppedDecoding ? 'downgraded' : 'connection';
    return clientFallbackReason(this.client, this.stream);
  }

  /** Whether the host's writes reach our hook first. */
  get isHooked(): boolean {
    return this.stream.write === this.#hostWrites.write;
  }

  /** What the host writes past our hook is queued, too. But it must not come before bytes that are held here. */
  get isQueueKnown(): boolean {
    const { gate, batch } = this.outgoing;
    return this.isHooked || gate.waiting > 0 || batch.holdsBytes;
  }

  /** False if the host has queued commands after pending ones, and written them past our hook: the connection ends. */
  mayWrite(): boolean {
    const { lastQueued, expectedQueueLength: due = Number.POSITIVE_INFINITY } = this.replies;
    const { commandQueue } = this.client;
    const isLast = lastQueued === undefined ? commandQueue.length <= due : commandQueue.peekAt(-1) === lastQueued;
    if (isLast || this.isHooked) return true;
    this.failed(notAsWritten());
    return false;
  }

  /** Writes all that is held here, once for each function that has taken our hook's place. */
  #handOver(): void {
    const { gate, batch } = this.outgoing;
    if (this.#replacedBy === this.stream.write) return;
    this.#replacedBy = this.stream.write;
    this.checkQueue();
    if (!this.open) return;
    gate.drain(batch);
    batch.writePending();
  }

  /** The reader says that from now on the host decodes everything, and entries leave the queue uncounted. */
  readerGaveUp(): void {
    // Later: subscribers must not run inside the reader (invariant 7).
    nextTick(() => reportConnection(this, 'downgraded', NOT_READ));
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
   * Ends the connection if the host has not queued what it wrote last (invariant 3). But layers over `sendCommand` may
   * delay commands of a pipeline, so that the host writes others between them, mostly SELECT; then the host decodes all
   * later replies.
   *
   * @param queuedAhead - for a write of the host: how many of its commands are queued already (all but the last);
   * undefined if the check precedes fast entries.
   */
  checkQueue(queuedAhead?: number): void {
    const { client, reader, outgoing } = this;
    const mismatch = this.replies.queueMismatch(client.commandQueue, queuedAhead);
    if (mismatch === undefined || !this.open || !this.isQueueKnown) return;
    if (queuedAhead !== undefined && !mismatch.isShort && isLayered(client)) {
      reader.giveUp();
      // The queue also holds commands that are not written yet: its length does not count replies any more.
      outgoing.gate.lift(outgoing.batch);
    } else if (reader.checkReady() && this.stream.listenerCount('data') > 0) {
      // Host: without `data` listeners it has just emptied its queue, so the length means nothing.
      this.failed(mismatch.error);
    }
  }

  /** A chunk has been read to its end. */
  readonly chunkRead = (): void => {
    const { socketTimeout, gate, batch } = this.outgoing;
    socketTimeout?.received();
    if (!this.open) return;
    // Its replies have taken commands out of the queue. An idle connection keeps none alive.
    this.replies.expectedQueueLength = undefined;
    if (this.client.commandQueue.length === 0) this.replies.lastQueued = undefined;
    this.#hasAnswered ||= this.client.status === 'ready';
    if (gate.waiting > 0) gate.release(batch);
    batch.poll.repliesCame();
  };

  /** Sends the backlog and all pending bytes, without limits: the stream or the process is about to end. */
  drain(reason: 'end' | 'exit'): void {
    if (!this.open || this.stream.destroyed) return;
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
