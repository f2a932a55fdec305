import type { Duplex } from 'node:stream';
import { BusyPoll, type PollCounters } from '../util/busy-poll.js';
import { now } from '../util/clock.js';
import { hookStream } from '../util/hook-stream.js';
import { drainAtExit, exiting } from '../util/process-exit.js';
import { type Schedule, scheduleFunction } from '../util/schedule.js';

export interface CorkOptions {
  /** When a turn's writes leave. @default 'immediate' */
  readonly schedule?: Schedule | undefined;
  /**
   * Whether the loop looks for replies for a short time before it waits for them, where the server is near. @default
   * true
   */
  readonly busyPoll?: boolean | undefined;
  /** Bytes beyond 64 per write at which all that is held leaves at once; text counts its characters. @default 8000 */
  readonly maxBatchBytes?: number | undefined;
}

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
/** As `environment.ts` reads it, which this file does not load. */
const isOff = /^\s*(off|0|false|no)\s*$/i.test(process.env.IOREDIS_COALESCE ?? '');
/** A stream has its cork under this name, whichever copy of this package made it. */
const CORKED = Symbol.for('ioredis-coalesce.corked-stream');

/**
 * Makes a turn's writes one, or two: the first goes at once if something has come since the last, the next corks the
 * stream, and the end of the turn uncorks it. It is uncorked before `end()`, `destroy()`, the `cork()` of others, and
 * when the process exits. Order, callbacks and errors of writes are the stream's own, and since Node counts corks,
 * nothing changes for others who cork it. A stream that is corked here already keeps its cork; one that has ended, or
 * has no `cork()`, stays as it is, and all do with `IOREDIS_COALESCE=off`.
 */
export function corkStream(stream: Duplex, options: CorkOptions = {}, observer = NOBODY): Corked {
  const present = (stream as Duplex & { [CORKED]?: Corked })[CORKED];
  if (present !== undefined) return present;
  if (isOff || stream.destroyed || typeof stream.cork !== 'function') return NOTHING;
  return new StreamCork(stream, options, observer);
}

class StreamCork implements Corked {
  #held = { writes: 0, bytes: 0, sinceMs: 0 };
  /** Others may have put hooks in front of ours, which stay when it is taken off, and then only pass on. */
  #isOn = true;
  #sentInTurn = 0;
  #sentInLastTurn = 0;
  #isScheduled = false;
  /** Whether nothing has come since the last write. At first nobody knows. */
  #awaitsReply = true;
  #wireWasIdle = false;
  /** Writes amid `uncork()`, which would lose them: a stream in memory is answered within its write. */
  #amid: Parameters<Write>[] | undefined;
  readonly #mostBytes: number;
  /** A function says itself when writes leave. */
  readonly #decides: boolean;
  readonly #poll: BusyPoll;
  readonly #cork: () => void;
  readonly #hook: Write;
  readonly #unhook: () => void;
  readonly #forgetExit: () => void;

  constructor(
    readonly stream: Duplex,
    { schedule = 'immediate', busyPoll = true, maxBatchBytes = 8000 }: CorkOptions,
    readonly observer: CorkObserver,
  ) {
    this.#mostBytes = maxBatchBytes;
    this.#decides = typeof schedule !== 'function';
    // To listen for data makes it flow: only where somebody does already.
    const listens = stream.listenerCount('data') > 0;
    this.#poll = new BusyPoll(busyPoll && listens, observer.polls, () => Number(this.#awaitsReply));
    if (listens) stream.on('data', this.#received);
    const write = stream.write as Write;
    const later = scheduleFunction(schedule);
    this.#hook = (...args) => this.#write(write, later, args);
    this.#forgetExit = drainAtExit(() => this.#flush('exit'));
    stream.once('close', this.#forgetExit);
    Object.defineProperty(stream, CORKED, { value: this, configurable: true });
    this.#cork = stream.cork;
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
    else if (this.#decides && now() - held.sinceMs > MOST_AGE_MS) this.#flush('age');
    return result;
  }

  /** Whether a write goes at once: the server may have nothing to do, and little is likely to follow in this turn. */
  get #isIdle(): boolean {
    return this.#decides && !this.#awaitsReply && !this.#isScheduled && this.#sentInLastTurn < FEW_WRITES;
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
      this.stream.uncork();
    } catch (error) {
      // Its writers have gone on.
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
    // There may be another one by now.
    if (!this.#isOn) return;
    this.#flush('end');
    this.#isOn = false;
    this.#unhook();
    this.#forgetExit();
    this.stream.removeListener('data', this.#received).removeListener('close', this.#forgetExit);
    Reflect.deleteProperty(this.stream, CORKED);
  }
}
