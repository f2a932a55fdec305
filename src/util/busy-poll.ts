import { now, setImmediate } from './clock.js';

/** Plain ioredis is busy with each command of a small turn for 8 to 12 µs. */
const WINDOW_MS_PER_COMMAND = 0.008;
const LONGEST_WINDOW_MS = 0.1;
/** The smallest turn that opens a window: with fewer commands it costs CPU for nothing at a fixed rate of arrivals. */
const FEWEST_COMMANDS = 3;
/** The first reply after nothing was pending: one that takes longer is from another machine, or from a busy server. */
const FAR_MS = 0.12;
/** A server executes what it has read, up to 16 KiB, before it writes the first reply. */
const EXECUTED_MS_PER_COMMAND = 0.0003;
const MOST_EXECUTED = 256;
/** A blocking command counts as this many milliseconds. */
const LONGEST_REPLY_MS = 10;
const SHORTEST_REPLY_MS = 0.001;
const MOST_SKIPPED_TURNS = 1024;
/** Turns per look at the counter of the kernel, which takes 3 µs. */
const TURNS_PER_LOOK = 64;

/** Turns after which it looked for the replies, and those of them for which one came in that time. */
export interface PollCounters {
  polledTurns: number;
  polledTurnsAnswered: number;
}

/**
 * Looks for replies again and again for a short time, instead of waiting for them: while the loop has immediates, it
 * asks the kernel for events and goes on ("busy polling").
 *
 * A thread that waits gives its processor up. In most virtual machines that processor halts, and to wake it takes 20 to
 * 40 µs, as long as a server on the same machine needs for tens of commands. Plain ioredis is busy with its writes for
 * so long that it seldom sleeps before the replies; a client that takes less CPU would sleep, and be slower.
 *
 * The rule: **after a turn of three commands or more, the loop looks for their replies for 8 µs per command, at most
 * 100 µs**, no longer than a plain client would have been busy with them. Not where the first reply to an idle wire
 * takes longer than 0.12 ms, not where this thread is often preempted, and after each window without a reply twice as
 * many turns pass without one.
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
  /** When this turn was sent and executed, if nothing awaited its reply before; cleared by the first reply. */
  #sentAtMs: number | undefined;
  /** How long the first reply to an idle wire takes: falls at once, rises by sixteenths. 0 until there was one. */
  #replyMs = 0;
  /** Whether the server is known to be near. */
  isNear = false;
  #isPreempted = false;

  constructor(
    /** The option `busyPoll`. */
    readonly setting: boolean,
    readonly counters: PollCounters,
    /** Commands on the wire that await their reply. */
    readonly awaiting: () => number,
    readonly isPreempted: () => boolean = thisThreadIsPreempted,
    readonly clock: () => number = now,
  ) {}

  /** Whether the rule holds for a server that is known to be near. */
  get polls(): boolean {
    return this.setting && this.isNear && !this.#isPreempted;
  }

  /**
   * A turn of the event loop was sent.
   *
   * @param commands - in all its batches.
   * @param alone - whether nothing awaited its reply when the first of them was added.
   */
  turnSent(commands: number, alone: boolean): void {
    if (commands === 0) return;
    const startedAtMs = this.clock();
    if (alone) this.#sentAtMs = startedAtMs + Math.min(commands, MOST_EXECUTED) * EXECUTED_MS_PER_COMMAND;
    if (!this.setting || commands < FEWEST_COMMANDS || this.#replyMs > FAR_MS) return;
    this.#isPreempted = this.isPreempted();
    if (this.#isPreempted) return;
    if (this.#toSkip > 0) {
      this.#toSkip -= 1;
      return;
    }
    this.counters.polledTurns += 1;
    this.#unanswered += 1;
    this.#untilMs = startedAtMs + Math.min(commands * WINDOW_MS_PER_COMMAND, LONGEST_WINDOW_MS);
    if (this.#polling) return;
    this.#polling = true;
    this.#answered = false;
    setImmediate(this.#look);
  }

  repliesCame(): void {
    if (this.#polling) {
      this.#answered = true;
      this.counters.polledTurnsAnswered += this.#unanswered;
      this.#unanswered = 0;
    }
    if (this.#sentAtMs === undefined) return;
    const tookMs = Math.min(Math.max(this.clock() - this.#sentAtMs, SHORTEST_REPLY_MS), LONGEST_REPLY_MS);
    this.#sentAtMs = undefined;
    const risesMs = (tookMs - this.#replyMs) / 16;
    this.#replyMs = this.#replyMs === 0 || risesMs < 0 ? tookMs : this.#replyMs + risesMs;
    this.isNear = this.#replyMs <= FAR_MS;
  }

  readonly #look = (): void => {
    this.#polling = this.awaiting() > 0 && this.clock() < this.#untilMs;
    if (this.#polling) return void setImmediate(this.#look);
    this.#unanswered = 0;
    this.#skipped = this.#answered ? 0 : Math.min(2 * this.#skipped + 1, MOST_SKIPPED_TURNS);
    this.#toSkip = this.#skipped;
  };
}

/**
 * Makes what tells, asked after each turn, whether this process, its other threads included, was often preempted
 * lately.
 *
 * @param switches - involuntary context switches so far; undefined where the system does not count them.
 */
export function preemptionBy(switches: () => number | undefined): () => boolean {
  let turns = 0;
  let before: number | undefined;
  let isFrequent = false;
  return () => {
    turns += 1;
    if (turns < TURNS_PER_LOOK) return isFrequent;
    turns = 0;
    const present = switches() ?? 0;
    isFrequent = before !== undefined && present - before > TURNS_PER_LOOK / 4;
    before = present;
    return isFrequent;
  };
}

/** Tells for all connections of a thread. Deno has no `resourceUsage`. */
const thisThreadIsPreempted = preemptionBy(() => process.resourceUsage?.().involuntaryContextSwitches);
