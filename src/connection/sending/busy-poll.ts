import { now, setImmediate } from '../../util/clock.js';

/** Milliseconds of window per command: plain ioredis is busy with each command of a small turn for 8 to 12 µs. */
const WINDOW_MS_PER_COMMAND = 0.008;
const LONGEST_WINDOW_MS = 0.1;
/** After turns of fewer commands, windows cost CPU and gain nothing at a fixed rate of arrivals. */
const FEWEST_COMMANDS = 3;
/** A reply to an idle wire that takes longer comes from another machine, or from a server that was busy. */
const FAR_MS = 0.12;
/** A blocking command counts as this many milliseconds. */
const LONGEST_REPLY_MS = 10;
/** The most turns that pass without a window after windows without a reply. */
const MOST_SKIPPED_TURNS = 1024;

/** What tells whether this thread has to share its processor. */
export interface Preemption {
  /** A turn ends after which a window may open. Returns whether the thread was often preempted lately. */
  isFrequent(): boolean;
}

/** What a poll counts; see `CoalescerStats`. */
interface PollCounters {
  polledTurns: number;
  polledTurnsAnswered: number;
}

/**
 * Looks for replies again and again for a short time, instead of waiting for them: while the loop has immediates, it
 * asks the kernel for events and goes on ("busy polling").
 *
 * A thread that waits gives its processor up. In most virtual machines that processor halts, and to wake it takes 20 to
 * 40 µs, as long as a server on the same machine needs for tens of commands. Plain ioredis is busy with its writes for so
 * long that it seldom sleeps before the replies; a client that takes less CPU would sleep, and be slower.
 *
 * The rule: **after a turn of three commands or more, the loop looks for their replies for 8 µs per command, at most
 * 100 µs**, no longer than a plain client would have been busy with them. Not where the first reply to an idle wire takes
 * longer than 0.12 ms, not where this thread is often preempted, and after each window without a reply twice as many turns
 * pass without one. A number of microseconds in place of the rule is looked for after every turn.
 */
export class BusyPoll {
  #polling = false;
  #untilMs = 0;
  /** Turns whose window is open and had no reply yet. */
  #unanswered = 0;
  #answered = false;
  /** Turns to pass before the next window, and as many as passed before the last one. */
  #toSkip = 0;
  #skipped = 0;
  /** When this turn was sent, if nothing awaited its reply before; cleared by the first reply. */
  #sentAtMs: number | undefined;
  /** How long the first reply to an idle wire takes: falls at once, rises by sixteenths. */
  #replyMs = 0;

  constructor(
    /** The option `busyPoll`. */
    readonly setting: boolean | number,
    readonly counters: PollCounters,
    /** Commands on the wire that await their reply. */
    readonly awaiting: () => number,
    readonly preemption: Preemption = ofThisThread,
    readonly clock: () => number = now,
  ) {}

  /**
   * A turn of the event loop was sent.
   *
   * @param commands - in all its batches.
   * @param alone - whether nothing awaited its reply when the first of them was added.
   */
  turnSent(commands: number, alone: boolean): void {
    if (this.setting === false || commands === 0) return;
    const startedAtMs = this.clock();
    if (alone) this.#sentAtMs = startedAtMs;
    const windowMs = typeof this.setting === 'number' ? this.setting / 1000 : this.#windowMs(commands);
    if (windowMs === 0) return;
    this.counters.polledTurns += 1;
    this.#unanswered += 1;
    this.#untilMs = startedAtMs + windowMs;
    if (this.#polling) return;
    this.#polling = true;
    this.#answered = false;
    setImmediate(this.#look);
  }

  #windowMs(commands: number): number {
    if (commands < FEWEST_COMMANDS || this.#replyMs > FAR_MS || this.preemption.isFrequent()) return 0;
    if (this.#toSkip > 0) {
      this.#toSkip -= 1;
      return 0;
    }
    return Math.min(commands * WINDOW_MS_PER_COMMAND, LONGEST_WINDOW_MS);
  }

  /** Replies have come. */
  answered(): void {
    if (this.#polling) {
      this.#answered = true;
      this.counters.polledTurnsAnswered += this.#unanswered;
      this.#unanswered = 0;
    }
    if (this.#sentAtMs === undefined) return;
    const tookMs = Math.min(this.clock() - this.#sentAtMs, LONGEST_REPLY_MS);
    this.#sentAtMs = undefined;
    this.#replyMs =
      this.#replyMs === 0 || tookMs < this.#replyMs ? tookMs : this.#replyMs + (tookMs - this.#replyMs) / 16;
  }

  readonly #look = (): void => {
    if (this.awaiting() > 0 && this.clock() < this.#untilMs) {
      setImmediate(this.#look);
      return;
    }
    this.#polling = false;
    this.#unanswered = 0;
    this.#skipped = this.#answered ? 0 : Math.min(2 * this.#skipped + 1, MOST_SKIPPED_TURNS);
    this.#toSkip = this.#skipped;
  };
}

/** Turns per look at the counter of the kernel, which takes 3 µs. */
const TURNS_PER_LOOK = 64;

/** Counts how often the kernel took the processor away from this process, which includes its other threads. */
export class ThreadPreemption implements Preemption {
  #turns = 0;
  #switches: number | undefined;
  #frequent = false;

  constructor(
    /** Involuntary context switches so far; undefined where the system does not count them. */
    readonly switches: () => number | undefined,
  ) {}

  isFrequent(): boolean {
    this.#turns += 1;
    if (this.#turns < TURNS_PER_LOOK) return this.#frequent;
    this.#turns = 0;
    const switches = this.switches() ?? 0;
    this.#frequent = this.#switches !== undefined && switches - this.#switches > TURNS_PER_LOOK / 4;
    this.#switches = switches;
    return this.#frequent;
  }
}

/** One for all connections of a thread. Deno has no `resourceUsage`. */
const ofThisThread = new ThreadPreemption(() => process.resourceUsage?.().involuntaryContextSwitches);
