import { Duplex } from 'node:stream';
import { environment } from '../environment.js';
import { CODES, coded, describe } from '../errors.js';
import { type CorkOptions, type ResolvedCorkOptions, resolveCorkOptions } from '../options.js';
import { BusyPoll, CLEARTEXT, type PollCounters } from '../util/busy-poll.js';
import { now } from '../util/clock.js';
import { hookStream } from '../util/hook-stream.js';
import { drainAtExit, exiting } from '../util/process-exit.js';
import { scheduleFunction } from '../util/schedule.js';

/** An installed cork. */
export interface Corked {
  /** Sends the held writes now. */
  flush(): void;
  /** Sends the held writes, then removes the cork and leaves the stream as it was before. */
  undo(): void;
}

/** Receives the events of corks. It is called during writes, so it must neither throw nor write. */
export interface CorkObserver {
  readonly polls: PollCounters;
  corked(stream: Duplex): void;
  /** Called once for each `corked`. */
  uncorked?(stream: Duplex, reason: 'undo' | 'close'): void;
  flushed(stream: Duplex, reason: CorkFlushReason, writes: number, bytes: number, waitedMs: number): void;
}
export type CorkFlushReason = 'schedule' | 'idle' | 'bytes' | 'age' | 'end' | 'exit' | 'manual';

type Write = (data?: string | Uint8Array, ...rest: unknown[]) => boolean;
const NO_OBSERVER: CorkObserver = { polls: { polledTurns: 0, polledTurnsAnswered: 0 }, corked() {}, flushed() {} };
/** A write flushes if the first held write is older than this, so that the server has work during a slow turn. */
const MAX_AGE_MS = 0.1;
/**
 * After a turn with fewer writes, the next turn's first write is sent at once, unless a reply is still pending (similar
 * to Nagle's algorithm, RFC 896).
 */
const FEW_WRITES = 32;
const UNCOUNTED_BYTES = 64;
const UNCORKED: Corked = { flush() {}, undo() {} };
/** The property of a stream that holds its cork; all copies of this package share it. */
const CORKED = Symbol.for('ioredis-coalesce.corked-stream');

/**
 * Combines a turn's writes, normally into one or two. If no reply is pending and the last turn had few writes, the
 * first write is sent at once. The next one corks the stream, and the end of the turn uncorks it. `end()`, `destroy()`,
 * a `cork()` by other code, the exit of the process, many bytes or an old write uncork it earlier. The stream keeps the
 * order, callbacks and errors of its writes. Node counts corks, so other code may cork the stream, too. A corked stream
 * keeps its cork. A stream that has ended, or whose `cork()` has no effect, is left alone; with `IOREDIS_COALESCE=off`,
 * all are.
 *
 * @throws {TypeError} `COALESCE_ERR_CLIENT` if `stream` is not a stream; `COALESCE_ERR_OPTION` for an unknown option or
 *   a wrong type.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export function corkStream(stream: Duplex, options: CorkOptions = {}, observer = NO_OBSERVER): Corked {
  if (typeof Object(stream).write !== 'function') {
    throw coded(TypeError, CODES.CLIENT, `corkStream() expects a stream, got ${describe(stream)}`);
  }
  const resolved = resolveCorkOptions(options);
  const present = (stream as Duplex & { [CORKED]?: Corked })[CORKED];
  if (present !== undefined) return present;
  if (environment === 'off' || stream.destroyed || !corksImmediately(stream)) return UNCORKED;
  return new StreamCork(stream, resolved, observer);
}

/** Whether `cork()` and `uncork()` act immediately: other code may have replaced them. */
function corksImmediately(stream: Duplex): boolean {
  if (typeof stream.cork !== 'function' || typeof stream.uncork !== 'function') return false;
  const before = stream.writableCorked;
  stream.cork();
  const within = stream.writableCorked;
  stream.uncork();
  if (stream.writableCorked === before) return within === before + 1;
  Duplex.prototype.uncork.call(stream);
  return false;
}

class StreamCork implements Corked {
  #held = { writes: 0, bytes: 0, sinceMs: 0 };
  /** If false, our hooks only pass calls on: they remain below hooks that other code has added. */
  #isInstalled = true;
  #sentInTurn = 0;
  #sentInLastTurn = 0;
  #isScheduled = false;
  /** Whether no data has arrived since the last write. Initially unknown, so assume that a reply is pending. */
  #awaitsReply = true;
  #wireWasIdle = false;
  /** Writes issued during `uncork()`, by code that an in-memory stream answers at once. Node would drop them. */
  #writtenDuringUncork: Parameters<Write>[] | undefined;
  readonly #maxBytes: number;
  readonly #usesBuiltInSchedule: boolean;
  readonly #poll: BusyPoll;
  /** The stream's own: a wrapper added later may cover only one of them, and calls would not be balanced. */
  readonly #cork: () => void;
  readonly #uncork: () => void;
  readonly #hook: Write;
  readonly #unhook: () => void;
  readonly #forgetExit: () => void;

  constructor(
    readonly stream: Duplex,
    { schedule, busyPoll, maxBatchBytes }: ResolvedCorkOptions,
    readonly observer: CorkObserver,
  ) {
    this.#maxBytes = maxBatchBytes;
    this.#usesBuiltInSchedule = typeof schedule !== 'function';
    // A `data` listener makes the stream flow, so add one only if there is one already.
    const listens = stream.listenerCount('data') > 0;
    this.#poll = new BusyPoll(busyPoll && listens, observer.polls, () => Number(this.#awaitsReply), CLEARTEXT);
    if (listens) stream.on('data', this.#received);
    const write = stream.write as Write;
    const later = scheduleFunction(schedule);
    this.#hook = (...args) => this.#write(write, later, args);
    this.#forgetExit = drainAtExit(() => this.#flush('exit'));
    stream.once('close', this.#closed);
    Object.defineProperty(stream, CORKED, { value: this, configurable: true });
    this.#cork = stream.cork;
    this.#uncork = stream.uncork;
    // The held writes precede each of these calls.
    const methods = ['end', 'destroy', 'cork'] as const;
    this.#unhook = hookStream(
      stream,
      this.#hook,
      (method) => this.#flush(method === 'cork' ? 'manual' : 'end'),
      methods,
    );
    observer.corked(stream);
  }

  #write(write: Write, later: (flush: () => void) => void, args: Parameters<Write>): boolean {
    const { stream } = this;
    const held = this.#held;
    const length = args[0]?.length ?? 0;
    if (!this.#isInstalled || stream.destroyed || stream.writableEnded) return write.apply(stream, args);
    if (this.#writtenDuringUncork !== undefined) return this.#writtenDuringUncork.push(args) > 0;
    // Node joins corked writes in memory and fails with ENOBUFS beyond 700 MB, so a large write goes alone.
    if (length > this.#maxBytes) this.#flush('bytes');
    if (this.#isIdle) {
      this.#awaitsReply = true;
      this.#poll.turnSent(1, true);
      this.observer.flushed(stream, 'idle', 1, length, 0);
      return write.apply(stream, args);
    }
    if (held.writes === 0) {
      held.sinceMs = now();
      if (this.#sentInTurn === 0) this.#wireWasIdle = !this.#awaitsReply;
      this.#cork.call(stream);
    }
    held.writes += 1;
    held.bytes += length;
    if (!this.#isScheduled) later(this.#turnEnded);
    this.#isScheduled = true;
    const result = write.apply(stream, args);
    if (held.bytes - UNCOUNTED_BYTES * held.writes >= this.#maxBytes) this.#flush('bytes');
    else if (exiting) this.#flush('exit');
    else if (this.#usesBuiltInSchedule && now() - held.sinceMs > MAX_AGE_MS) this.#flush('age');
    return result;
  }

  /** Whether to send a write at once: the server may be idle, and few writes are likely to follow in this turn. */
  get #isIdle(): boolean {
    const isQuiet = !this.#awaitsReply && !this.#isScheduled;
    return this.#usesBuiltInSchedule && isQuiet && this.#sentInLastTurn < FEW_WRITES;
  }

  readonly #turnEnded = (): void => {
    this.#isScheduled = false;
    this.#flush('schedule');
    this.#poll.turnSent(this.#sentInTurn, this.#wireWasIdle);
    this.#sentInLastTurn = this.#sentInTurn;
    this.#sentInTurn = 0;
  };

  #flush(reason: CorkFlushReason): void {
    const { writes, bytes, sinceMs } = this.#held;
    if (writes === 0) return;
    Object.assign(this.#held, { writes: 0, bytes: 0 });
    this.#sentInTurn += writes;
    this.#awaitsReply = true;
    const written: Parameters<Write>[] = [];
    this.#writtenDuringUncork = written;
    try {
      this.#uncork.call(this.stream);
    } catch (error) {
      // The callers have returned, so fail the stream.
      this.stream.destroy(error as Error);
    }
    this.#writtenDuringUncork = undefined;
    this.observer.flushed(this.stream, reason, writes, bytes, now() - sinceMs);
    if (written.length === 0) return;
    for (const args of written) this.#hook(...args);
    this.#flush(reason);
  }

  readonly #received = (): void => {
    this.#awaitsReply = false;
    this.#poll.repliesCame();
  };

  flush(): void {
    this.#flush('manual');
  }

  undo(): void {
    this.#end('undo');
  }

  readonly #closed = (): void => this.#end('close');

  #end(reason: 'undo' | 'close'): void {
    // A reply that arrives during this flush may run code that undoes the cork.
    if (this.#isInstalled) this.#flush('end');
    // Already undone; a newer cork may be installed.
    if (!this.#isInstalled) return;
    this.#isInstalled = false;
    this.#unhook();
    this.#forgetExit();
    this.stream.removeListener('data', this.#received).removeListener('close', this.#closed);
    Reflect.deleteProperty(this.stream, CORKED);
    this.observer.uncorked?.(this.stream, reason);
  }
}
