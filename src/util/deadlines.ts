import { setTimeout as nodeTimeout, now, setImmediate } from './clock.js';

/** A deadline takes commands for this long, in milliseconds: Node's timers count whole ones. */
const OPEN_MS = 1;
/** A timer that fires so much later than it should was held up, in milliseconds. */
const LATE_MS = 2;
/** The deadline of an entry that has settled, maybe before its reply has come. */
export const SETTLED: Timed['deadline'] = { settled: () => {} };

/** An entry, which can time out. It tells its deadline when it has settled, which then is `SETTLED`. */
export interface Timed {
  deadline: Pick<Deadline, 'settled'> | undefined;
  timedOut(error: unknown): void;
}

/** Host: the error of `Command#setTimeout`. */
export function timedOut(): Error {
  return new Error('Command timed out');
}

/** `commandTimeout` for fast commands: one timer for those of a millisecond that have the same timeout. */
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

/** Timers, of all connections, that were held up and wait until replies have been read. */
let late = 0;

/** Milliseconds of a fake clock, which a test may advance at any time; 0 if `setTimeout` is Node's. */
const fakeNow = (): number => (setTimeout === nodeTimeout ? 0 : Date.now());

/**
 * A timer, and the entries that it times out, wherever they are sent, or sent again. Host: each command's time begins
 * when it is issued, and user code may run for long between two commands of a turn. So a deadline takes entries for a
 * millisecond.
 */
export class Deadline {
  #entries: Timed[] = [];
  #unsettled = 0;
  readonly #startedAt = now();
  readonly #fakeStartedAt = fakeNow();
  /** The timer; undefined once it has fired, or was cleared. */
  #timer: NodeJS.Timeout | undefined;
  readonly #clock = setTimeout;
  /** Whether it is about to be cleared, unless a command is added until then. */
  #clearing = false;

  constructor(readonly ms: number) {
    // An exception to `clock.ts`: the present global, as in ioredis's `Command#setTimeout`. So a test that
    // advances a fake clock to see a command time out sees it here too.
    this.#timer = setTimeout(() => this.#fire(), ms);
  }

  add(entry: Timed): void {
    entry.deadline = this;
    this.#entries.push(entry);
    this.#unsettled += 1;
  }

  /** Whether a command that is issued now, with a timeout of `ms`, may be added. */
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
    // Later: the next command is likely to join it. To make and to clear timers costs the most here.
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
    // The loop was blocked: replies may have come that it has not read yet. Our writes are up to a turn later than
    // those of a plain client, so more of their replies would find it blocked. A fake clock is just turned.
    // Ordering: a timer that is less late does not overtake those that wait.
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
   * The entries stay in their queues: late replies are matched with them and dropped, so that the next caller does not
   * get them (invariant 3).
   */
  #expire(): void {
    for (const entry of this.#entries) if (entry.deadline === this) entry.timedOut(timedOut());
  }
}
