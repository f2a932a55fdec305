import type { HostQueue } from '../host/types.js';
import { now, setImmediate } from '../util/clock.js';
import { Entry, type SettleObserver } from './entry.js';

/**
 * `commandTimeout` for hot commands: one timer for those of a batch that have the same time-out, instead of one each.
 *
 * Hot commands are numbered per connection in the order they were sent, which is the order they settle in, so a
 * deadline is a range of numbers, and no entry has to know of it.
 */
export class Deadlines {
  /** The time-out in milliseconds that the next hot command gets without further ado; undefined for none. */
  ms: number | undefined;
  readonly #pending: Deadline[] = [];
  #current: Deadline | undefined;
  /** All its commands have settled, but its timer runs until the end of this turn: the next batch is likely to take it. */
  #spare: Deadline | undefined;
  /** How many entries have left since the number of the first unsettled one was `#goneFrom`. */
  #gone = 0;
  #goneFrom = -1;

  constructor(
    readonly queue: () => HostQueue,
    /** The number of the first hot command that has not settled. */
    readonly firstUnsettled: () => number,
  ) {}

  /** Hot commands from this number on must be answered within `ms` milliseconds from now, or whenever. */
  begin(number: number, ms: number | undefined): void {
    this.close(number);
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

  /** Hot commands from this number on were issued later and get a timer of their own. */
  close(number: number): void {
    this.ms = undefined;
    if (this.#current === undefined) return;
    this.#current.end = number;
    this.#current = undefined;
  }

  /** The same, but only if the clock has moved on since: for batches that stay open longer than a turn of the loop. */
  closeIfOld(number: number): void {
    if (this.#current !== undefined && now() - this.#current.startedAt >= 1) this.close(number);
  }

  /** Clears the timers of which every command has settled. */
  sweep(): void {
    const settled = this.firstUnsettled();
    while (this.#pending.length > 0 && (this.#pending[0] as Deadline).end <= settled) {
      const deadline = this.#pending.shift() as Deadline;
      if (this.#spare === undefined) {
        // To stop a timer and start another costs more than all else here, to set it back costs next to nothing.
        this.#spare = deadline;
        setImmediate(this.#clearSpare);
      } else {
        deadline.clear();
      }
    }
  }

  readonly #clearSpare = (): void => {
    this.#spare?.clear();
    this.#spare = undefined;
  };

  /**
   * The connection is gone, or our reader is: what is still in the queue may be sent again by the host, and settles
   * out of our sight. Its time-out goes on, as a plain command's does.
   */
  release(): void {
    for (const deadline of this.#pending.splice(0)) deadline.handOver(this.#entriesOf(deadline));
    this.#current = undefined;
    this.ms = undefined;
  }

  /**
   * An entry leaves this connection for another one: what is left of its time-out goes with it.
   * Ordering: entries leave in the order of their numbers, between two settled ones or when the queue is flushed.
   */
  follow(entry: Entry): void {
    const first = this.firstUnsettled();
    this.#gone = first === this.#goneFrom ? this.#gone + 1 : 0;
    this.#goneFrom = first;
    const number = first + this.#gone;
    const deadline = this.#pending.find(({ start, end }) => start <= number && number < end);
    if (deadline === undefined) return;
    const left = Math.max(0, deadline.startedAt + deadline.ms - now());
    new Deadline(number, left, () => {}).handOver([entry]);
  }

  #expire(deadline: Deadline): void {
    if (deadline === this.#spare) return;
    if (this.#current === deadline) {
      this.#current = undefined;
      this.ms = undefined;
    }
    const index = this.#pending.indexOf(deadline);
    if (index >= 0) this.#pending.splice(index, 1);
    for (const entry of this.#entriesOf(deadline)) timeOut(entry);
  }

  #entriesOf(deadline: Deadline): Entry[] {
    const queue = this.queue();
    const entries: Entry[] = [];
    let number = this.firstUnsettled();
    for (let index = 0; index < queue.length && number < deadline.end; index += 1) {
      const item = queue.peekAt(index);
      if (!(item instanceof Entry)) continue;
      if (number >= deadline.start) entries.push(item);
      number += 1;
    }
    return entries;
  }
}

class Deadline implements SettleObserver {
  /** The number behind its last command; not known while it is open. */
  end = Number.POSITIVE_INFINITY;
  startedAt = now();
  readonly #timer: NodeJS.Timeout;
  readonly #clock = setTimeout;
  #handedOver: readonly Entry[] | undefined;
  #unsettled = 0;

  constructor(
    public start: number,
    readonly ms: number,
    onExpire: (deadline: Deadline) => void,
  ) {
    // The global of this moment, as ioredis does in `Command#setTimeout`: tests that turn a fake clock to see a
    // command time out see it here too.
    this.#timer = setTimeout(() => {
      if (this.#handedOver === undefined) onExpire(this);
      else for (const entry of this.#handedOver) timeOut(entry);
    }, ms);
  }

  /** For other commands, from now; false if the global clock is another one by now. */
  restart(start: number): boolean {
    if (this.#clock !== setTimeout) return false;
    this.start = start;
    this.end = Number.POSITIVE_INFINITY;
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

/** Host: the error of `Command#setTimeout`. The entry stays in the queue, where its late reply finds it and is dropped. */
function timeOut(entry: Entry): void {
  entry.fail(new Error('Command timed out'));
}
