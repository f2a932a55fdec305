import Denque from 'denque';
import type { HostQueue } from '../../host/types.js';
import { setTimeout as nodeTimeout, now, setImmediate } from '../../util/clock.js';
import { timedOut } from './call-settings.js';
import { type Entry, SETTLED, type SettleObserver, type Timeouts } from './entry.js';

/** A deadline is open for this long, in milliseconds: Node's timers count whole ones. */
const OPEN_MS = 1;
/** A timer that fires so much later than it should was held up, in milliseconds. */
const LATE_MS = 2;
/**
 * A timer is started again this many times, not more: it keeps the `AsyncLocalStorage` context in which it was made, a
 * request's for example, for as long as it is used.
 */
const MOST_RESTARTS = 64;

/**
 * `commandTimeout` for hot commands: one timer for those of a millisecond that have the same timeout, instead of one each.
 *
 * Hot commands are numbered per connection in the order they were sent, which is the order they settle in. A deadline
 * keeps its entries and the number of the first, so how many of them are settled is a subtraction.
 *
 * Host: each command's time begins when it is issued, and user code may run for long between two commands of a turn. So a
 * deadline takes commands for a millisecond.
 */
export class Deadlines implements Timeouts {
  /** The one that takes commands. */
  open: Deadline | undefined;
  readonly #pending = new Denque<Deadline>();
  /** All its commands have settled. Its timer runs until the end of this turn: the next batch is likely to take it. */
  #spare: Deadline | undefined;
  /** The number after that of the last entry that has left this connection for another one. */
  #followed = 0;

  constructor(
    readonly client: { readonly commandQueue: HostQueue },
    /** As many hot commands as it says have settled, which is the number of the first that has not. */
    readonly replies: { readonly light: number },
  ) {}

  /**
   * A hot command is about to be sent.
   *
   * @param number - its number.
   * @param ms - its timeout in milliseconds; undefined for none.
   */
  add(number: number, entry: Entry, ms: number | undefined): void {
    if (ms !== this.open?.ms) {
      this.open = undefined;
      if (ms === undefined) return;
      this.open = this.#takeSpare(number, ms) ?? new Deadline(number, ms, (deadline) => this.#expire(deadline));
      this.#pending.push(this.open);
    }
    this.open?.entries.push(entry);
  }

  #takeSpare(number: number, ms: number): Deadline | undefined {
    const spare = this.#spare;
    if (spare?.ms !== ms || !spare.restart(number)) return undefined;
    this.#spare = undefined;
    return spare;
  }

  /** Later commands get a new timer if that of the open deadline is old. One with a timeout is about to be issued. */
  closeIfOld(): void {
    if (this.open !== undefined && now() - this.open.startedAt >= OPEN_MS) this.open = undefined;
  }

  /** Clears the timers whose commands have all settled. */
  sweep(): void {
    const settled = this.replies.light;
    for (let first = this.#pending.peekFront(); first?.isDone(settled); first = this.#pending.peekFront()) {
      this.#pending.shift();
      if (this.open === first) this.open = undefined;
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
      const queue = this.client.commandQueue;
      const queued = new Set<unknown>(Array.from({ length: queue.length }, (_, index) => queue.peekAt(index)));
      for (let first = this.#pending.shift(); first !== undefined; first = this.#pending.shift()) {
        first.takeOver(first.entries.filter((entry) => queued.has(entry)));
      }
    }
    this.open = undefined;
  }

  /**
   * An entry leaves this connection for another one; the rest of its timeout goes with it.
   * Ordering: entries leave in the order of their numbers, between two settled ones or when the queue is flushed.
   *
   * @returns whether it has a timeout.
   */
  follow(entry: Entry): boolean {
    if (entry.observer !== undefined) return true;
    const from = Math.max(this.replies.light, this.#followed);
    for (let index = this.#indexOf(from); index < this.#pending.length; index += 1) {
      const deadline = this.#pending.peekAt(index) as Deadline;
      const place = deadline.entries.indexOf(entry, Math.max(0, from - deadline.start));
      if (place === -1) continue;
      this.#followed = deadline.start + place + 1;
      startTimeout(entry, Math.max(0, deadline.startedAt + deadline.ms - now()));
      return true;
    }
    return false;
  }

  resent(entry: Entry, ms: number): void {
    if (!this.follow(entry)) startTimeout(entry, ms);
  }

  #expire(deadline: Deadline): void {
    if (deadline === this.#spare) return;
    if (this.open === deadline) this.open = undefined;
    const index = this.#indexOf(deadline.start);
    if (this.#pending.peekAt(index) === deadline) this.#pending.removeOne(index);
    for (const entry of deadline.unsettled(this.replies.light)) {
      timeOut(entry);
      entry.observer ??= SETTLED;
    }
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

/** Timers, of all connections, that were held up and wait until replies have been read. */
let late = 0;

class Deadline implements SettleObserver {
  entries: Entry[] = [];
  startedAt = now();
  /** What the global gives may be a number, or have no `refresh`: in jsdom, or of a stub. */
  readonly #timer: Partial<NodeJS.Timeout> | undefined;
  readonly #clock = setTimeout;
  #restarts = 0;
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
    const expire = () => {
      if (this.#handedOver === undefined) onExpire(this);
      else for (const entry of this.#handedOver) timeOut(entry);
    };
    this.#timer = setTimeout(() => {
      this.#restarts = MOST_RESTARTS;
      // The loop was blocked: replies may have come that it has not read yet. Our writes are up to a turn later than
      // those of a plain client, so more of their replies would find it blocked. A fake clock is just turned.
      // Ordering: a timer that is less late does not overtake those that wait.
      if (this.#clock === nodeTimeout && (late > 0 || now() - this.startedAt > ms + LATE_MS)) {
        late += 1;
        setImmediate(() => {
          late -= 1;
          expire();
        });
      } else {
        expire();
      }
    }, ms);
  }

  /** The number of its last command, plus one. */
  get end(): number {
    return this.start + this.entries.length;
  }

  isDone(settled: number): boolean {
    return this.end <= settled;
  }

  /** Its entries that have not settled; `settled` is the number of the connection's first unsettled entry. */
  unsettled(settled: number): Entry[] {
    return settled <= this.start ? this.entries : this.entries.slice(settled - this.start);
  }

  /** Starts again for other commands; false if its timer cannot, or if the global clock has been replaced since. */
  restart(start: number): boolean {
    if (this.#clock !== setTimeout || this.#restarts === MOST_RESTARTS) return false;
    if (typeof this.#timer?.refresh !== 'function') return false;
    this.#restarts += 1;
    this.start = start;
    this.startedAt = now();
    this.#timer.refresh();
    return true;
  }

  takeOver(entries: readonly Entry[]): void {
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
    clearTimeout(this.#timer as NodeJS.Timeout | undefined);
  }
}

/** Gives an entry a timer of its own. */
export function startTimeout(entry: Entry, ms: number): void {
  new Deadline(0, ms, () => {}).takeOver([entry]);
}

/**
 * The entry stays in the queue: its late reply is matched with it and dropped,
 * so that the next caller does not get it (invariant 3).
 */
function timeOut(entry: Entry): void {
  entry.fail(timedOut());
}
