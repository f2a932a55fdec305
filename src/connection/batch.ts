import type { Duplex } from 'node:stream';
import { type BatchEvent, traceBatch, watchesBatches } from '../channels.js';
import type { HostWrite } from '../host/types.js';
import type { ResolvedOptions } from '../options.js';
import { appendParts, isAscii, type Part } from '../resp/encoder.js';
import type { FlushReason, Stats } from '../stats.js';
import { now } from '../util/clock.js';
import { debugFlush } from '../util/debug.js';
import { LimitWatch } from './limit-watch.js';
import { delay, type ScheduleFunction } from './scheduler.js';

type Write = (this: Duplex, data: unknown, encoding?: BufferEncoding, callback?: HostWrite['callback']) => boolean;

/** After text that was not ASCII, so many batches are encoded exactly from the start: such text seldom comes alone. */
const EXACT_BATCHES = 32;

/** Batches with something to write: flushed when the process exits, as a plain client would have written by then. */
const unflushed = new Set<Batch>();
let watchingExit = false;

function watchExit(): void {
  if (watchingExit) return;
  watchingExit = true;
  process.on('exit', () => {
    for (const batch of unflushed) batch.flush('exit');
  });
}

/**
 * Layer 1, the cork: what is written on one connection between two flushes leaves in one write.
 *
 *     idle ──first command──▶ open ──schedule, size, bytes, end──▶ idle
 *
 *     stream   [host write][hot text][host write]       corked, in program order
 *     #parts                                     [text, Buffer, text]   exact bytes, not handed over yet
 *     #text                                                           [text]   taken for ASCII, not checked yet
 *
 * Hot commands gather in `#text` and `#parts` and go to the stream in one piece: when the host writes, so that they
 * stay in front of it, or at the flush.
 */
export class Batch {
  /** Commands in the open batch; 0 when idle. */
  commands = 0;
  /** Of these, the hot ones. */
  #hotCommands = 0;
  #openedAt = 0;
  /** Those who watch are being told of this flush. */
  #told = false;
  readonly #bounds: LimitWatch;
  #bytes = 0;
  #text = '';
  /** Commands in `#text`. */
  #textCommands = 0;
  #parts: Part[] = [];
  #exactBatches = 0;
  #corked = false;
  #scheduled = false;
  #clearDelay: (() => void) | undefined;

  constructor(
    readonly stream: Duplex,
    /** The stream's own `write`, past our hook. */
    readonly write: Write,
    readonly options: ResolvedOptions,
    readonly schedule: ScheduleFunction,
    readonly stats: Stats,
    readonly observer: {
      /** The server's, for those who watch. */
      address(): string;
      /** Commands on the wire that await their reply, the open batch excluded. */
      awaiting(): number;
      /** A batch has left. */
      flushed(): void;
      /** The last `count` hot commands that were added, encoded exactly; fewer if the host has dropped some. */
      encodeLast(count: number): Part[];
    },
  ) {
    this.#bounds = new LimitWatch(options);
    watchExit();
  }

  /** Whether assuming ASCII is likely to be work done twice. */
  get encodesExactly(): boolean {
    return this.#exactBatches > 0;
  }

  /** Adds one hot command's bytes. */
  addHot(encoded: string | Part[]): void {
    if (typeof encoded !== 'string') {
      // The entry of this command is in the queue already, and must not be taken for one of the text's.
      this.addExact(encoded, 1);
      return;
    }
    this.#text += encoded;
    this.#textCommands += 1;
    this.#hotCommands += 1;
    this.#bytes += encoded.length;
    this.#added(1);
  }

  /** Adds hot commands' exact bytes. `checkText` was called before their entries could be mistaken for the text's. */
  addExact(parts: Part[], commands: number): void {
    appendParts(this.#parts, parts);
    for (const part of parts) this.#bytes += part.length;
    this.#hotCommands += commands;
    this.#added(commands);
  }

  /** Adds a write of the host's; returns what its `write` returned. */
  addHost({ data, encoding, callback }: HostWrite, commands: number): boolean {
    const bytes = typeof data === 'string' ? Buffer.byteLength(data, encoding) : data.length;
    // Node reserves three bytes a character for a writev of strings and fails with ENOBUFS beyond about 700 MB: what
    // is larger than a batch goes alone, as a plain client would send it.
    if (bytes > this.options.maxBatchBytes) this.flush('large');
    this.#cork();
    this.#handOver();
    const result = this.write.call(this.stream, data, encoding, callback);
    this.#bytes += bytes;
    this.#added(commands);
    return result;
  }

  /**
   * Writes what has gathered, if anything has.
   * Ordering: whoever watches is told before anything changes, and may send, flush or end the connection meanwhile; what
   * has gathered goes first then (invariant 2).
   */
  flush(reason: FlushReason): void {
    if (this.commands === 0) return;
    this.checkText();
    if (this.#told || !watchesBatches()) {
      this.#send(reason);
      return;
    }
    this.#told = true;
    try {
      traceBatch(this.#event(reason), () => this.#send(reason));
    } finally {
      this.#told = false;
    }
  }

  #event(reason: FlushReason): BatchEvent {
    const hotCommands = this.#hotCommands;
    return {
      size: this.commands,
      hotCommands,
      hostCommands: this.commands - hotCommands,
      bytes: this.#bytes,
      reason,
      waited: now() - this.#openedAt,
      address: this.observer.address(),
    };
  }

  #send(reason: FlushReason): void {
    const { commands } = this;
    if (commands === 0) return;
    const bytes = this.#bytes;
    this.stats.flushed(reason, commands, bytes, now() - this.#openedAt);
    this.#bounds.flushed(reason);
    if (debugFlush.enabled) {
      debugFlush('%s: %d commands, %d bytes, %s', this.observer.address(), commands, bytes, reason);
    }
    if (this.#exactBatches > 0) this.#exactBatches -= 1;
    this.#reset();
    this.#write();
    this.observer.flushed();
  }

  #write(): void {
    try {
      this.#handOver();
    } finally {
      if (this.#corked) {
        this.#corked = false;
        this.stream.uncork();
      }
    }
  }

  /** The connection is gone: what was not written has gone with it. The host re-sends or rejects its commands. */
  discard(): void {
    this.#reset();
    this.#text = '';
    this.#textCommands = 0;
    this.#parts = [];
    this.#corked = false;
  }

  #reset(): void {
    this.commands = 0;
    this.#hotCommands = 0;
    this.#bytes = 0;
    this.#clearDelay?.();
    this.#clearDelay = undefined;
    unflushed.delete(this);
  }

  #added(commands: number): void {
    if (this.commands === 0) {
      unflushed.add(this);
      this.#openedAt = now();
    }
    this.commands += commands;
    if (this.commands >= this.options.maxBatchSize) this.flush('size');
    else if (this.#bytes >= this.options.maxBatchBytes) this.flush('bytes');
    else if (!this.#scheduled) {
      this.#scheduled = true;
      this.schedule(this.#onSchedule);
    }
  }

  readonly #onSchedule = (): void => {
    this.#scheduled = false;
    const { maxFlushDelay } = this.options;
    // More replies outstanding than commands to send: waiting costs little, since the connection is busy anyway, and
    // the batch grows. A lone command, or one behind few, is never held back.
    if (maxFlushDelay > 0 && this.commands > 0 && this.observer.awaiting() > this.commands) {
      this.#clearDelay ??= delay(maxFlushDelay, () => this.flush('delay'));
      return;
    }
    this.flush('schedule');
  };

  /** Replies came in: a batch that was held back goes as soon as it no longer pays to wait. */
  reconsiderDelay(): void {
    if (this.#clearDelay !== undefined && this.observer.awaiting() <= this.commands) this.flush('schedule');
  }

  /**
   * Moves what was taken for ASCII to the exact parts. Text that is not ASCII states its lengths in characters where
   * bytes are meant, so its commands are encoded again, from their entries.
   */
  checkText(): void {
    if (this.#textCommands === 0) return;
    const text = this.#text;
    const commands = this.#textCommands;
    this.#text = '';
    this.#textCommands = 0;
    if (isAscii(text)) {
      appendParts(this.#parts, [text]);
      return;
    }
    this.#exactBatches = EXACT_BATCHES;
    const parts = this.observer.encodeLast(commands);
    this.#bytes += parts.reduce((bytes, part) => bytes + part.length, -text.length);
    appendParts(this.#parts, parts);
  }

  #cork(): void {
    if (this.#corked) return;
    this.#corked = true;
    this.stream.cork();
  }

  /** Ordering: hot commands' bytes reach the stream here, before whatever the host writes next. */
  #handOver(): void {
    this.checkText();
    if (this.#parts.length === 0) return;
    const parts = this.#parts;
    this.#parts = [];
    if (parts.length > 1) this.#cork();
    for (const part of parts) this.write.call(this.stream, part, typeof part === 'string' ? 'latin1' : undefined);
  }
}
