import { nextTick, setTimeout as nodeTimeout, now, setImmediate } from './clock.js';

/** A deadline accepts commands for this long, in milliseconds: Node's timers count whole ones. */
const OPEN_MS = 1;
/** A timer that is later than this, in milliseconds, was delayed by a blocked event loop. */
const LATE_MS = 2;
/** The deadline of a settled entry, whose reply may still be to come. */
export const SETTLED: Timed['deadline'] = { settled: () => {} };
/** Marks an entry without a timeout that follows another one, and does not share its deadline. */
export const NO_DEADLINE: Timed['deadline'] = { settled: () => {} };

/** An entry that can time out. When it settles, it notifies its deadline, which it replaces by `SETTLED`. */
export interface Timed {
  deadline: Pick<Deadline, 'settled'> | undefined;
  timedOut(error: unknown): void;
}

/** The entry has settled. */
export function leaveDeadline(entry: Timed): void {
  const { deadline } = entry;
  entry.deadline = SETTLED;
  deadline?.settled();
}

/** Host: the error of `Command#setTimeout`. */
export function timedOut(): Error {
  return new Error('Command timed out');
}

/** `commandTimeout` for fast commands: one timer for the commands of a millisecond that have the same timeout. */
export class Deadlines {
  #last: Deadline | undefined;

  /**
   * The deadline of a command that is issued now.
   *
   * @param ms - its timeout in milliseconds; undefined for none.
   */
  for(ms: number | undefined): Deadline | undefined {
    if (ms === undefined) return undefined;
    if (!this.#last?.isOpenFor(ms)) this.#last = new Deadline(ms);
    return this.#last;
  }
}

/** The number of delayed timers, on all connections, that wait until replies have been read. */
let late = 0;

/** Milliseconds of a fake clock, which a test may advance at any time; 0 if `setTimeout` is Node's. */
const fakeNow = (): number => (setTimeout === nodeTimeout ? 0 : Date.now());

/**
 * A timer, and the entries that it times out, even if they are sent again on another connection. Host: a command's time
 * begins when it is issued, and user code may run for long between two commands of a turn. So a deadline accepts
 * entries only for a millisecond.
 */
export class Deadline {
  #entries: Timed[] = [];
  #unsettled = 0;
  readonly #startedAt = now();
  readonly #fakeStartedAt = fakeNow();
  /** The timer; undefined once it has fired, or was cleared. */
  #timer: NodeJS.Timeout | undefined;
  readonly #clock = setTimeout;
  /** Whether it will be cleared at the end of the turn, unless a command is added before. */
  #clearing = false;

  constructor(readonly ms: number) {
    // The current global, as in ioredis's `Command#setTimeout`: an exception to `clock.ts`. So a test that advances a
    // fake clock sees commands time out.
    this.#timer = setTimeout(() => this.#fire(), ms);
  }

  add(entry: Timed): void {
    entry.deadline = this;
    this.#entries.push(entry);
    this.#unsettled += 1;
  }

  /** Whether a command issued now, with a timeout of `ms`, may be added. */
  isOpenFor(ms: number): boolean {
    if (this.ms !== ms || this.#timer === undefined || this.#clock !== setTimeout) return false;
    return now() - this.#startedAt < OPEN_MS && fakeNow() === this.#fakeStartedAt;
  }

  /** One of its entries has settled. */
  settled(): void {
    this.#unsettled -= 1;
    if (this.#unsettled > 0) return;
    this.#entries = [];
    if (this.#clearing) return;
    // Deferred: the next command will probably join it, and timers are expensive to create and clear.
    this.#clearing = true;
    setImmediate(() => {
      this.#clearing = false;
      if (this.#unsettled > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    });
  }

  #fire(): void {
    const isLate = now() - this.#startedAt > this.ms + LATE_MS;
    this.#timer = undefined;
    // The event loop was blocked, so replies may have arrived that it has not read. This affects us more than a plain
    // client, because our writes are up to a turn later. A fake clock cannot be late. Ordering: a less delayed timer
    // must not overtake those that wait.
    if (this.#clock !== nodeTimeout || (late === 0 && !isLate)) {
      this.#expire();
      return;
    }
    late += 1;
    setImmediate(() => {
      late -= 1;
      this.#expire();
    });
  }

  /**
   * The entries stay in their queues, where late replies are matched with them and dropped, so that no other caller
   * gets those (invariant 3).
   */
  #expire(): void {
    for (const entry of this.#entries) {
      if (entry.deadline !== this) continue;
      try {
        entry.timedOut(timedOut());
      } catch (error) {
        // A layer's `reject` has thrown. Host: each command has a timer of its own, so the others time out, too.
        nextTick(() => {
          throw error;
        });
      }
    }
  }
}
