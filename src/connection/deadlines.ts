import Denque from 'denque';
import type { HostQueue } from '../host/types.js';
import { now, setImmediate } from '../util/clock.js';
import type { Entry, SettleObserver } from './entry.js';

/**
 * `commandTimeout` for hot commands: one timer for those of a batch that have the same timeout, instead of one each.
 *
 * Hot commands are numbered per connection in the order they were sent, which is the order they settle in. A deadline
 * keeps its entries and the number of the first, so how many of them are settled is a subtraction.
 */
export class Deadlines {
  /** The timeout that the open deadline covers, in milliseconds; undefined while none is open. */
  ms: number | undefined;
  readonly #pending = new Denque<Deadline>();
  #current: Deadline | undefined;
  /** All its commands have settled. Its timer runs until the end of this turn: the next batch is likely to take it. */
  #spare: Deadline | undefined;
  /** How many entries have moved to another connection while the first unsettled number was `#goneFrom`. */
  #gone = 0;
  #goneFrom = -1;

  constructor(
    readonly queue: () => HostQueue,
    /** The number of the first hot command that has not settled. */
    readonly firstUnsettled: () => number,
  ) {}

  /**
   * A hot command is about to be sent.
   *
   * @param number - its number.
   * @param ms - its timeout in milliseconds; undefined for none.
   */
  add(number: number, entry: Entry, ms: number | undefined): void {
    if (ms !== this.ms) this.#begin(number, ms);
    this.#current?.entries.push(entry);
  }

  #begin(number: number, ms: number | undefined): void {
    this.close();
    if (ms === undefined) return;
    this.ms = ms;
    this.#current = this.#takeSpare(number, ms) ?? new Deadline(number, ms, (deadline) => this.#expire(deadline));
    this.#pending.push(this.#current);
  }

  #takeSpare(number: number, ms: number): Deadline | undefined {
    const spare = this.#spare;
    if (spare?.ms !== ms || !spare.restart(number)) return undefined;
    this.#spare = undefined;
    return spare;
  }

  /** Later hot commands get a new timer. */
  close(): void {
    this.ms = undefined;
    if (this.#current === undefined) return;
    this.#current.closed = true;
    this.#current = undefined;
  }

  /** The same, but only if the clock has moved on since: for batches that stay open longer than a turn of the loop. */
  closeIfOld(): void {
    if (this.#current !== undefined && now() - this.#current.startedAt >= 1) this.close();
  }

  /** Clears the timers whose commands have all settled. */
  sweep(): void {
    const settled = this.firstUnsettled();
    for (let first = this.#pending.peekFront(); first?.isDone(settled); first = this.#pending.peekFront()) {
      this.#pending.shift();
      first.entries = [];
      if (this.#spare === undefined) {
        // clearTimeout and setTimeout dominate here; `refresh()` is nearly free.
        this.#spare = first;
        setImmediate(this.#clearSpare);
      } else {
        first.clear();
      }
    }
  }

  readonly #clearSpare = (): void => {
    this.#spare?.clear();
    this.#spare = undefined;
  };

  /**
   * The connection is gone, or our reader is. The host may send queued entries again, and we do not see them settle.
   * Their timeouts continue to run, as those of plain commands do.
   */
  release(): void {
    if (this.#pending.length > 0) {
      // The host may have rejected some by now: they are no longer queued.
      const queue = this.queue();
      const queued = new Set<unknown>(Array.from({ length: queue.length }, (_, index) => queue.peekAt(index)));
      for (let first = this.#pending.shift(); first !== undefined; first = this.#pending.shift()) {
        first.handOver(first.entries.filter((entry) => queued.has(entry)));
      }
    }
    this.#current = undefined;
    this.ms = undefined;
  }

  /**
   * An entry leaves this connection for another one; the rest of its timeout goes with it.
   * Ordering: entries leave in the order of their numbers, between two settled ones or when the queue is flushed.
   */
  follow(entry: Entry): void {
    const first = this.firstUnsettled();
    this.#gone = first === this.#goneFrom ? this.#gone + 1 : 0;
    this.#goneFrom = first;
    const number = first + this.#gone;
    const deadline = this.#pending.peekAt(this.#indexOf(number));
    if (deadline === undefined || number < deadline.start || number >= deadline.end) return;
    const left = Math.max(0, deadline.startedAt + deadline.ms - now());
    new Deadline(number, left, () => {}).handOver([entry]);
  }

  #expire(deadline: Deadline): void {
    if (deadline === this.#spare) return;
    if (this.#current === deadline) this.close();
    const index = this.#indexOf(deadline.start);
    if (this.#pending.peekAt(index) === deadline) this.#pending.removeOne(index);
    for (const entry of deadline.unsettled(this.firstUnsettled())) timeOut(entry);
  }

  /** The index of the last pending deadline that starts at `number` or before; they are in order. */
  #indexOf(number: number): number {
    let low = 0;
    let high = this.#pending.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#pending.peekAt(middle) as Deadline).start <= number) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

class Deadline implements SettleObserver {
  entries: Entry[] = [];
  closed = false;
  startedAt = now();
  readonly #timer: NodeJS.Timeout;
  readonly #clock = setTimeout;
  #handedOver: readonly Entry[] | undefined;
  #unsettled = 0;

  constructor(
    /** The number of its first command. */
    public start: number,
    readonly ms: number,
    onExpire: (deadline: Deadline) => void,
  ) {
    // An exception to `clock.ts`: the present global, as in ioredis's `Command#setTimeout`. So a test that
    // advances a fake clock to see a command time out sees it here too.
    this.#timer = setTimeout(() => {
      if (this.#handedOver === undefined) onExpire(this);
      else for (const entry of this.#handedOver) timeOut(entry);
    }, ms);
  }

  /** The number of its last command, plus one. */
  get end(): number {
    return this.start + this.entries.length;
  }

  isDone(settled: number): boolean {
    return this.closed && this.end <= settled;
  }

  /** Its entries that have not settled; `settled` is the number of the connection's first unsettled entry. */
  unsettled(settled: number): Entry[] {
    return settled <= this.start ? this.entries : this.entries.slice(settled - this.start);
  }

  /** Starts again for other commands; false if the global clock has been replaced since. */
  restart(start: number): boolean {
    if (this.#clock !== setTimeout) return false;
    this.start = start;
    this.closed = false;
    this.startedAt = now();
    this.#timer.refresh();
    return true;
  }

  handOver(entries: readonly Entry[]): void {
    if (entries.length === 0) {
      this.clear();
      return;
    }
    this.#handedOver = entries;
    this.#unsettled = entries.length;
    for (const entry of entries) entry.observer = this;
  }

  settled(): void {
    this.#unsettled -= 1;
    if (this.#unsettled === 0) this.clear();
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}

/**
 * Host: the error of `Command#setTimeout`. The entry stays in the queue: its late reply is matched with it and dropped,
 * so that the next caller does not get it (invariant 3).
 */
function timeOut(entry: Entry): void {
  entry.fail(new Error('Command timed out'));
}
