import { Duplex } from 'node:stream';
import { environment } from '../environment.js';
import { CODES, coded, describe } from '../errors.js';
import { type CorkOptions, type ResolvedCorkOptions, resolveCorkOptions } from '../options.js';
import { BusyPoll, type PollCounters } from '../util/busy-poll.js';
import { now } from '../util/clock.js';
import { hookStream } from '../util/hook-stream.js';
import { drainAtExit, exiting } from '../util/process-exit.js';
import { scheduleFunction } from '../util/schedule.js';

/** A cork that is on. */
export interface Corked {
  /** Sends what is held now. */
  flush(): void;
  /** Takes the cork off: what is held is sent, and all is left as it was found. */
  undo(): void;
}

/** Is told what corks do. It is called amid writes: it must not throw, and not write. */
export interface CorkObserver {
  readonly polls: PollCounters;
  corked(stream: Duplex): void;
  /** Called once for each `corked`. */
  uncorked?(stream: Duplex, reason: 'undo' | 'close'): void;
  flushed(stream: Duplex, reason: CorkFlushReason, writes: number, bytes: number, waitedMs: number): void;
}
export type CorkFlushReason = 'schedule' | 'idle' | 'bytes' | 'age' | 'end' | 'exit' | 'manual';

type Write = (data?: string | Uint8Array, ...rest: unknown[]) => boolean;
const NOBODY: CorkObserver = { polls: { polledTurns: 0, polledTurnsAnswered: 0 }, corked() {}, flushed() {} };
/** A write that finds the cork older sends what is held, so that the server has work while a slow turn goes on. */
const MOST_AGE_MS = 0.1;
/**
 * If the last turn had fewer writes, the first write of the next one goes at once, unless nothing has come since the
 * last write (much as Nagle's rule, RFC 896).
 */
const FEW_WRITES = 32;
const UNCOUNTED_BYTES = 64;
const NOTHING: Corked = { flush() {}, undo() {} };
/** A stream has its cork under this name, whichever copy of this package made it. */
const CORKED = Symbol.for('ioredis-coalesce.corked-stream');

/**
 * Makes a turn's writes one, or two: the first goes at once if something has come since the last, the next corks the
 * stream, and the end of the turn uncorks it. It is uncorked before `end()`, `destroy()`, the `cork()` of others, and
 * when the process exits. Order, callbacks and errors of writes are the stream's own, and since Node counts corks,
 * nothing changes for others who cork it. A stream that is corked here already keeps its cork; one that has ended, or
 * whose `cork()` does not cork it, stays as it is, and all do with `IOREDIS_COALESCE=off`.
 *
 * @throws {TypeError} `COALESCE_ERR_CLIENT` for a value that is no stream; `COALESCE_ERR_OPTION` for an unknown option
 *   or a wrong type.
 * @throws {RangeError} `COALESCE_ERR_OPTION` for a number out of range.
 */
export function corkStream(stream: Duplex, options: CorkOptions = {}, observer = NOBODY): Corked {
  if (typeof Object(stream).write !== 'function') {
    throw coded(TypeError, CODES.CLIENT, `corkStream() expects a stream, got ${describe(stream)}`);
  }
  const resolved = resolveCorkOptions(options);
  const present = (stream as Duplex & { [CORKED]?: Corked })[CORKED];
  if (present !== undefined) return present;
  if (environment === 'off' || stream.destroyed || !corksAtOnce(stream)) return NOTHING;
  return new StreamCork(stream, resolved, observer);
}

/** Others may have replaced `cork()` or `uncork()` by what does nothing, or does it later. */
function corksAtOnce(stream: Duplex): boolean {
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
  /** Others may have put hooks in front of ours, which stay when it is taken off, and then only pass on. */
  #isOn = true;
  #sentInTurn = 0;
  #sentInLastTurn = 0;
  #isScheduled = false;
  /** Whether nothing has come since the last write. Initially unknown, so assume that a reply is pending. */
  #awaitsReply = true;
  #wireWasIdle = false;
  /** Writes issued during `uncork()`, which Node would drop: a stream in memory is answered within its write. */
  #amid: Parameters<Write>[] | undefined;
  readonly #mostBytes: number;
  readonly #usesBuiltInSchedule: boolean;
  readonly #poll: BusyPoll;
  /** As they were when the cork was put on: those who wrap only one of them, or both, later, see neither. */
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
    this.#mostBytes = maxBatchBytes;
    this.#usesBuiltInSchedule = typeof schedule !== 'function';
    // To listen for data makes it flow: only where somebody does already.
    const listens = stream.listenerCount('data') > 0;
    this.#poll = new BusyPoll(busyPoll && listens, observer.polls, () => Number(this.#awaitsReply));
    if (listens) stream.on('data', this.#received);
    const write = stream.write as Write;
    const later = scheduleFunction(schedule);
    this.#hook = (...args) => this.#write(write, later, args);
    this.#forgetExit = drainAtExit(() => this.#flush('exit'));
    stream.once('close', this.#closed);
    Object.defineProperty(stream, CORKED, { value: this, configurable: true });
    this.#cork = stream.cork;
    this.#uncork = stream.uncork;
    // What is held was written before others cork the stream.
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
    if (!this.#isOn || stream.destroyed || stream.writableEnded) return write.apply(stream, args);
    if (this.#amid !== undefined) return this.#amid.push(args) > 0;
    // Node joins what it writes at once in memory, and fails with ENOBUFS beyond 700 MB: a large write goes alone.
    if (length > this.#mostBytes) this.#flush('bytes');
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
    if (held.bytes - UNCOUNTED_BYTES * held.writes >= this.#mostBytes) this.#flush('bytes');
    else if (exiting) this.#flush('exit');
    else if (this.#usesBuiltInSchedule && now() - held.sinceMs > MOST_AGE_MS) this.#flush('age');
    return result;
  }

  /** Whether a write goes at once: the server may have nothing to do, and little is likely to follow in this turn. */
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
    const amid: Parameters<Write>[] = [];
    this.#amid = amid;
    try {
      this.#uncork.call(this.stream);
    } catch (error) {
      // The callers have returned, so the stream fails.
      this.stream.destroy(error as Error);
    }
    this.#amid = undefined;
    this.observer.flushed(this.stream, reason, writes, bytes, now() - sinceMs);
    if (amid.length === 0) return;
    for (const args of amid) this.#hook(...args);
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
    // What is held may be answered at once, by code that undoes the cork.
    if (this.#isOn) this.#flush('end');
    // Already undone; a newer cork may be installed.
    if (!this.#isOn) return;
    this.#isOn = false;
    this.#unhook();
    this.#forgetExit();
    this.stream.removeListener('data', this.#received).removeListener('close', this.#closed);
    Reflect.deleteProperty(this.stream, CORKED);
    this.observer.uncorked?.(this.stream, reason);
  }
}
