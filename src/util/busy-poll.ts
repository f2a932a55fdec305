import { now, setImmediate } from './clock.js';

/** How long to poll, and for which servers. */
interface PollLimits {
  /** About what plain ioredis spends on each command of a small turn. */
  readonly windowMsPerCommand: number;
  /** If the first reply on an idle connection takes longer, the server is on another machine, or busy. */
  readonly farMs: number;
}
export const CLEARTEXT: PollLimits = { windowMsPerCommand: 0.008, farMs: 0.12 };
/** Both sides encrypt: bursts of 5 took plain ioredis 23 to 35 µs per command, and a near server 0.15 ms to reply. */
export const ENCRYPTED: PollLimits = { windowMsPerCommand: 0.02, farMs: 0.2 };
const MAX_WINDOW_MS = 0.1;
/** The smallest turn that is polled: with fewer commands, polling wastes CPU at a fixed rate of arrivals. */
const MIN_COMMANDS = 3;
/** A server executes all that it has read, up to 16 KiB, before it writes the first reply. */
const EXECUTED_MS_PER_COMMAND = 0.0003;
const MAX_EXECUTED = 256;
/** A blocking command counts as this many milliseconds. */
const MAX_REPLY_MS = 10;
const MIN_REPLY_MS = 0.001;
const MAX_SKIPPED_TURNS = 1024;
/** Turns between two reads of the kernel's counter, which take 3 µs. */
const TURNS_PER_CHECK = 64;

/** Turns that were polled, and those of them for which a reply arrived meanwhile. */
export interface PollCounters {
  polledTurns: number;
  polledTurnsAnswered: number;
}

/**
 * Busy polling: for a short time, polls for replies instead of sleeping until they arrive. While the event loop has
 * immediates, it asks the kernel for events without waiting.
 *
 * A thread that sleeps gives up its processor. In most virtual machines that processor halts, and waking it takes 20 to
 * 40 µs, in which a server on the same machine executes tens of commands. Plain ioredis is busy with its writes for so
 * long that it rarely sleeps before the replies. A client that uses less CPU would sleep, and be slower.
 *
 * The rule: **after a turn of three commands or more, poll for their replies for 8 µs per command, at most 100 µs**, no
 * longer than a plain client would have been busy with them. Do not poll if the first reply on an idle connection takes
 * longer than 0.12 ms, or if this thread is often preempted. Over TLS it is 20 µs and 0.2 ms. After each window without
 * a reply, skip twice as many turns as before.
 */
export class BusyPoll {
  #polling = false;
  #untilMs = 0;
  /** Turns in the open window that have had no reply yet. */
  #unanswered = 0;
  #answered = false;
  /** Turns to skip before the next window, and turns skipped before the last one. */
  #toSkip = 0;
  #skipped = 0;
  /** When this turn was sent and executed, if it was sent on an idle connection; cleared by the first reply. */
  #sentAtMs: number | undefined;
  /** The time to the first reply on an idle connection: falls at once, rises by sixteenths. 0 before the first one. */
  #replyMs = 0;
  /** Whether the server has been found to be near. */
  isNear = false;
  #isPreempted = false;

  constructor(
    /** The option `busyPoll`. */
    readonly setting: boolean,
    readonly counters: PollCounters,
    /** The number of commands on the wire that await their reply. */
    readonly awaiting: () => number,
    readonly limits: PollLimits,
    readonly isPreempted: () => boolean = thisThreadIsPreempted,
    readonly clock: () => number = now,
  ) {}

  /** Whether turns are polled, and the server is near. */
  get polls(): boolean {
    return this.setting && this.isNear && !this.#isPreempted;
  }

  /**
   * A turn of the event loop was sent.
   *
   * @param commands - the number of commands in all its batches.
   * @param alone - whether no command awaited its reply when the first of them was added.
   */
  turnSent(commands: number, alone: boolean): void {
    if (commands === 0) return;
    const startedAtMs = this.clock();
    if (alone) this.#sentAtMs = startedAtMs + Math.min(commands, MAX_EXECUTED) * EXECUTED_MS_PER_COMMAND;
    if (!this.setting || commands < MIN_COMMANDS || this.#replyMs > this.limits.farMs) return;
    this.#isPreempted = this.isPreempted();
    if (this.#isPreempted) return;
    if (this.#toSkip > 0) {
      this.#toSkip -= 1;
      return;
    }
    this.counters.polledTurns += 1;
    this.#unanswered += 1;
    this.#untilMs = startedAtMs + Math.min(commands * this.limits.windowMsPerCommand, MAX_WINDOW_MS);
    if (this.#polling) return;
    this.#polling = true;
    this.#answered = false;
    setImmediate(this.#poll);
  }

  repliesCame(): void {
    if (this.#polling) {
      this.#answered = true;
      this.counters.polledTurnsAnswered += this.#unanswered;
      this.#unanswered = 0;
    }
    if (this.#sentAtMs === undefined) return;
    const tookMs = Math.min(Math.max(this.clock() - this.#sentAtMs, MIN_REPLY_MS), MAX_REPLY_MS);
    this.#sentAtMs = undefined;
    const riseMs = (tookMs - this.#replyMs) / 16;
    this.#replyMs = this.#replyMs === 0 || riseMs < 0 ? tookMs : this.#replyMs + riseMs;
    this.isNear = this.#replyMs <= this.limits.farMs;
  }

  readonly #poll = (): void => {
    this.#polling = this.awaiting() > 0 && this.clock() < this.#untilMs;
    if (this.#polling) return void setImmediate(this.#poll);
    this.#unanswered = 0;
    this.#skipped = this.#answered ? 0 : Math.min(2 * this.#skipped + 1, MAX_SKIPPED_TURNS);
    this.#toSkip = this.#skipped;
  };
}

/**
 * Returns a function that reports whether this process, including its other threads, was often preempted lately. Call
 * it after each turn.
 *
 * @param switches - involuntary context switches so far; undefined if the system does not count them.
 */
export function preemptionBy(switches: () => number | undefined): () => boolean {
  let turns = 0;
  let before: number | undefined;
  let isFrequent = false;
  return () => {
    turns += 1;
    if (turns < TURNS_PER_CHECK) return isFrequent;
    turns = 0;
    const present = switches() ?? 0;
    isFrequent = before !== undefined && present - before > TURNS_PER_CHECK / 4;
    before = present;
    return isFrequent;
  };
}

/** Shared by all connections of a thread. Deno has no `resourceUsage`. */
const thisThreadIsPreempted = preemptionBy(() => process.resourceUsage?.().involuntaryContextSwitches);
