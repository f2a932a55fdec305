import type { Duplex } from 'node:stream';
import { type BatchEvent, debugFlush, hasBatchSubscribers, traceBatch } from '../channels.js';
import type { CommandVariant } from '../commands/fast-commands.js';
import { StreamWriter } from '../host/stream.js';
import type { HostWrite } from '../host/types.js';
import type { ResolvedOptions } from '../options.js';
import { appendParts, encodeAssumingAscii, encodeExactly, isAscii, type Part } from '../resp/encoder.js';
import type { FlushReason, Stats } from '../stats.js';
import { BusyPoll, CLEARTEXT, ENCRYPTED } from '../util/busy-poll.js';
import { nextTick, now } from '../util/clock.js';
import { exiting } from '../util/process-exit.js';
import type { BatchSchedule } from '../util/schedule.js';
import type { Entry } from './entry.js';
import type { Reads } from './features.js';

/** The part of an entry that a batch uses. */
export type Encodable = Pick<Entry, 'encode' | 'encodeAssumingAscii'>;

/** The connection of a batch. */
export interface BatchOwner {
  readonly stream: Duplex;
  readonly options: ResolvedOptions;
  readonly stats: Stats;
  /** Counts the commands that have been handed to the batch or the socket and await their reply. */
  readonly gate: { readonly inFlight: number };
  /** Notified when the batch is sent or the turn ends: later commands belong to another batch. */
  readonly reads: Pick<Reads, 'endRun'> | undefined;
  readonly connection: {
    /** The server's, for subscribers of our channels. */
    readonly address: string;
    /** Whether pending bytes may be written now; if not, the connection has ended. */
    mayWrite(): boolean;
    /** Called if bytes could not be written: their commands are queued and will get no reply. */
    failed(error: unknown): void;
  };
}

/** The last command of a batch while others may still join it. It is encoded when anything else follows. */
export interface Tail {
  /** Closes the tail, and returns the entry to encode. */
  end(): Encodable;
}

/** Bytes of each command that do not count for `maxBatchBytes`: `maxBatchSize` limits small commands. */
const UNCOUNTED_BYTES = 64;
/** Milliseconds. A script flushes a batch whose first command is older. */
const AGE_FOR_SCRIPT_MS = 0.04;

/**
 * If the server is near, the first part of a large turn is sent after this many commands, each later part after twice
 * as many: a server on the same machine executes a part while the next one is encoded.
 */
const FIRST_PART = 32;
/** Number of following batches that are encoded exactly after non-ASCII text, which tends to come in runs. */
const EXACT_BATCHES = 32;

/**
 * The batch of a connection: all bytes between two flushes are sent in one write.
 *
 *     idle ──first command──▶ open ──schedule, size, bytes, end──▶ idle
 *
 *     stream   [host write][fast text][host write]       handed over, corked
 *     #parts                                     [text, Buffer, text]   next: exact bytes
 *     #text                                                           [text]   last: text, not tested for ASCII yet
 *
 * Fast commands are collected in `#text` and `#parts` and go to the stream in one piece: before a write by the host, so
 * that the order is kept, or at the flush.
 */
export class Batch {
  readonly options: ResolvedOptions;
  /** Commands in the open batch; 0 when idle. */
  commands = 0;
  #fastCommands = 0;
  #openedAt = 0;
  /** Subscribers of the batch channel are running. */
  #notifying = false;
  readonly poll: BusyPoll;
  #bytes = 0;
  /** Commands of this turn that have been sent. */
  #sentInTurn = 0;
  /** Whether nothing awaited its reply when this turn's first command was added. */
  #wireWasIdle = false;
  /** Commands at which the open batch leaves before the end of its turn. */
  #limit: number;
  #text = '';
  /** The entries of the commands in `#text`, in order. */
  #textEntries: Encodable[] = [];
  #parts: Part[] = [];
  #tail: Tail | undefined;
  /** Bytes of the tail, by estimate. */
  #tailBytes = 0;
  /** Commands of this batch that share a place in the queue with the one before them. */
  #joined = 0;
  /** The size of a turn's first part; set by a feature that makes commands cheaper for the server. */
  firstPart = FIRST_PART;
  /** Batches still to be encoded exactly: after text that is not ASCII, to assume ASCII would mean encoding twice. */
  #exactBatches = 0;
  #corked = false;
  #scheduled = false;
  /** Writes to the stream past our hook. */
  readonly writer: StreamWriter;

  constructor(
    readonly owner: BatchOwner,
    readonly schedule: BatchSchedule,
  ) {
    const { options, stats } = owner;
    this.options = options;
    this.#limit = options.maxBatchSize;
    this.writer = new StreamWriter(owner.stream);
    const unanswered = () => owner.gate.inFlight - (this.commands - this.#joined);
    this.poll = new BusyPoll(options.busyPoll, stats, unanswered, 'encrypted' in owner.stream ? ENCRYPTED : CLEARTEXT);
  }

  /** A fast command as text assumed to be ASCII, or exact parts; undefined if its entry must encode itself. */
  encode({ heads }: CommandVariant, args: readonly unknown[]): string | Part[] | undefined {
    const head = heads?.for(args.length);
    if (head === undefined) return undefined;
    return this.#exactBatches > 0 ? encodeExactly(head, args) : encodeAssumingAscii(head, args);
  }

  /**
   * Adds one fast command's bytes.
   *
   * @param entry - encodes the command again if the assumption was wrong.
   */
  addFast(encoded: string | readonly Part[], entry: Encodable): void {
    if (typeof encoded !== 'string') {
      this.addExact(encoded, 1);
      return;
    }
    if (this.#tail !== undefined) this.endTail();
    this.#text += encoded;
    this.#textEntries.push(entry);
    this.#fastCommands += 1;
    this.#bytes += encoded.length;
    this.#added(1);
  }

  /** Whether bytes of queued commands have not been handed to the stream. */
  get holdsBytes(): boolean {
    return this.#parts.length > 0 || this.#textEntries.length > 0 || this.#tail !== undefined;
  }

  /** Whether this is the last command of the batch, so that another one may join it. */
  endsWith(tail: Tail): boolean {
    return this.#tail === tail;
  }

  /** Adds one command to the tail: it begins a new tail, or joins the present one and shares its queue item. */
  addToTail(tail: Tail, bytes: number): void {
    if (this.#tail === tail) this.#joined += 1;
    this.#tail = tail;
    this.#tailBytes += bytes;
    this.#bytes += bytes;
    this.#fastCommands += 1;
    this.#added(1);
  }

  /** Encodes the tail: the next command cannot join it, or the batch is sent. */
  endTail(): void {
    const entry = this.#tail?.end();
    this.#tail = undefined;
    if (entry === undefined) return;
    this.#bytes -= this.#tailBytes;
    this.#tailBytes = 0;
    const encoded = this.#exactBatches > 0 ? entry.encode() : entry.encodeAssumingAscii();
    if (typeof encoded === 'string') {
      this.#text += encoded;
      this.#textEntries.push(entry);
      this.#bytes += encoded.length;
    } else {
      this.#checkText();
      this.#append(encoded);
    }
  }

  /**
   * The command that was added last is a script, which takes Redis at least as long as a write takes us. If they were
   * all sent at the end of a slow turn, a BullMQ worker with ten concurrent jobs would do 0.65× of a plain one's.
   */
  scriptAdded(): void {
    // A schedule function decides for scripts, too.
    if (this.commands === 0 || typeof this.options.schedule === 'function') return;
    if (now() - this.#openedAt > AGE_FOR_SCRIPT_MS) this.flushThenTell('script');
  }

  /**
   * Adds exact bytes of ours.
   *
   * @param fast - the fast commands among them.
   * @param inHostWrite - whether the host is about to queue the last of them.
   */
  addExact(parts: readonly Part[], commands: number, fast = commands, inHostWrite = false): void {
    this.#checkText();
    this.#append(parts);
    this.#fastCommands += fast;
    this.#added(commands, inHostWrite);
  }

  #append(parts: readonly Part[]): void {
    for (const part of parts) this.#bytes += part.length;
    appendParts(this.#parts, parts);
  }

  /**
   * Adds a write by the host. Host: a single command is written before its entry is queued. No user code may run until
   * then: it could send, and every later reply would go to the wrong caller (invariant 1).
   *
   * @returns the result of the stream's `write`.
   */
  addHost({ data, encoding, callback }: HostWrite, commands: number): boolean {
    const bytes = typeof data === 'string' ? Buffer.byteLength(data, encoding) : data.length;
    // Node reserves three bytes per character for a writev of strings and fails with ENOBUFS beyond about 700 MB. So a
    // write that is larger than a batch goes alone, as a plain client would send it.
    if (bytes > this.options.maxBatchBytes) this.flushThenTell('large');
    this.#cork();
    this.writePending();
    const result = this.writer.write(data, encoding, callback);
    this.#bytes += bytes;
    this.#added(commands, true);
    return result;
  }

  /**
   * Writes the pending bytes, if there are any.
   * Ordering: subscribers run before any state changes. If one re-entrantly sends, flushes or ends the connection, the
   * pending bytes are still written first (invariant 2).
   */
  flush(reason: FlushReason): void {
    if (this.commands === 0) return;
    this.#checkText();
    if (this.#notifying || !hasBatchSubscribers()) {
      this.#send(reason);
      return;
    }
    this.#notifying = true;
    try {
      traceBatch(this.#event(reason), () => this.#send(reason));
    } finally {
      this.#notifying = false;
    }
  }

  /** Flushes where user code must not run: subscribers are called on the next tick. */
  flushThenTell(reason: FlushReason): void {
    if (this.commands === 0) return;
    this.#checkText();
    const event = hasBatchSubscribers() ? this.#event(reason) : undefined;
    this.#send(reason);
    if (event !== undefined) nextTick(() => traceBatch(event, () => {}));
  }

  #event(reason: FlushReason): BatchEvent {
    return {
      size: this.commands,
      fastCommands: this.#fastCommands,
      fallbackCommands: this.commands - this.#fastCommands,
      bytes: this.#bytes,
      reason,
      waited: now() - this.#openedAt,
      address: this.owner.connection.address,
    };
  }

  #send(reason: FlushReason): void {
    const { commands } = this;
    if (commands === 0) return;
    const bytes = this.#bytes;
    this.owner.stats.flushed(reason, commands, bytes, now() - this.#openedAt);
    if (debugFlush.enabled) {
      const what = commands === 1 ? 'command' : 'commands';
      const { address } = this.owner.connection;
      // Later: users may replace the log function, whose code must not run within the host's write (invariant 1).
      nextTick(() => debugFlush('%s: %d %s, %d bytes, %s', address, commands, what, bytes, reason));
    }
    if (this.#exactBatches > 0) this.#exactBatches -= 1;
    this.#sentInTurn += commands;
    this.commands = 0;
    this.#joined = 0;
    this.#fastCommands = 0;
    this.#bytes = 0;
    // Before the write: after it, the reply may arrive, and user code may then issue the same read.
    this.owner.reads?.endRun();
    this.writePending();
    if (!this.#corked) return;
    this.#corked = false;
    try {
      // Node drops what is written within this call. None of our code runs in it: even if a stream in memory answers at
      // once, our listener gets the answer later (`DataListener#start`).
      this.owner.stream.uncork();
    } catch (error) {
      this.owner.connection.failed(error);
    }
  }

  /** The connection is gone, and pending bytes with it (invariant 8). The host re-sends or rejects their commands. */
  discard(): void {
    this.schedule.discard?.(this.#onSchedule);
    this.commands = 0;
    this.#tail = undefined;
    this.#tailBytes = 0;
    this.#text = '';
    this.#textEntries = [];
    this.#parts = [];
  }

  #added(commands: number, inHostWrite = false): void {
    if (this.commands === 0) {
      this.#openedAt = now();
      // Host: the last entry of a host's write is not queued yet.
      if (this.#sentInTurn === 0) {
        this.#wireWasIdle = this.owner.gate.inFlight <= (inHostWrite ? commands - 1 : commands);
        const { schedule, maxBatchSize } = this.options;
        // A schedule function decides when commands are sent.
        const sendsParts = this.poll.polls && typeof schedule !== 'function';
        this.#limit = Math.min(sendsParts ? this.firstPart : Number.POSITIVE_INFINITY, maxBatchSize);
      }
    }
    this.commands += commands;
    if (this.commands >= this.#limit) this.#sendPart();
    else if (this.#bytes - UNCOUNTED_BYTES * this.commands >= this.options.maxBatchBytes) this.flushThenTell('bytes');
    else if (exiting) this.flushThenTell('exit');
    this.scheduleFlush();
  }

  /**
   * Invariant 8: one flush is scheduled at a time, and it always runs. A command that is added after a flush by size is
   * sent by the flush that was scheduled before.
   */
  scheduleFlush(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.schedule(this.#onSchedule);
  }

  get serverIsNear(): boolean {
    return this.poll.isNear;
  }

  #sendPart(): void {
    const { maxBatchSize } = this.options;
    // Its replies may arrive before the turn ends, so they say nothing about the server's distance.
    this.#wireWasIdle = false;
    this.flushThenTell(this.#limit < maxBatchSize ? 'part' : 'size');
    this.#limit = Math.min(2 * this.#limit, maxBatchSize);
  }

  readonly #onSchedule = (): void => {
    this.#scheduled = false;
    if (this.commands === 0) this.owner.reads?.endRun();
    else this.flush('schedule');
    this.poll.turnSent(this.#sentInTurn, this.#wireWasIdle);
    this.#sentInTurn = 0;
  };

  /**
   * Moves the text that was assumed to be ASCII to the exact parts. Text that is not ASCII states its lengths in
   * characters instead of bytes, so its commands are encoded again, from their entries.
   */
  #checkText(): void {
    if (this.#tail !== undefined) this.endTail();
    const entries = this.#textEntries;
    if (entries.length === 0) return;
    const text = this.#text;
    this.#text = '';
    this.#textEntries = [];
    if (isAscii(text)) {
      appendParts(this.#parts, [text]);
      return;
    }
    this.#bytes -= text.length;
    this.#exactBatches = EXACT_BATCHES;
    try {
      for (const entry of entries) this.#append(entry.encode());
    } catch (error) {
      this.owner.connection.failed(error);
    }
  }

  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    this.owner.stream.cork();
  }

  /** Ordering: pending bytes of fast commands reach the stream here, before the host's next write (invariant 2). */
  writePending(): void {
    this.#checkText();
    if (this.#parts.length === 0 || !this.owner.connection.mayWrite()) return;
    const parts = this.#parts;
    this.#parts = [];
    if (parts.length > 1) this.#cork();
    try {
      for (const part of parts) this.writer.writePart(part);
    } catch (error) {
      this.owner.connection.failed(error);
    }
  }
}
