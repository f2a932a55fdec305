import type { CommandVariant } from '../commands/fast-commands.js';
import { CallEntry } from '../core/entry.js';
import type { Call } from '../core/features.js';
import type { EntryContext } from '../host/command-facade.js';
import type { CallOptions } from '../options.js';
import { SETTLED, timedOut } from '../util/deadlines.js';

/** A pending call that its caller can abort: an `AbortableEntry`, or a promise guarded here. */
export interface Abortable {
  /** The index in its signal's `AbortList`. */
  place: number;
  abort(reason: unknown): void;
}

/** A list with fewer gaps is not compacted. */
const FEW_GAPS = 64;

/** Signals with pending calls. Not a WeakMap, which would burden the garbage collector with one signal per request. */
const lists = new Map<AbortSignal, AbortList>();

/**
 * The pending calls of one signal. It has one listener for any number of calls, and none without calls, because a
 * signal may live as long as the process.
 */
export class AbortList {
  /**
   * The pending calls in order, with gaps. Not a Set, because V8's hash tables refer to the next larger or smaller one:
   * with thousands of commands per second, all tables would stay alive until the next full garbage collection.
   */
  #places: (Abortable | undefined)[] = [];
  #waiting = 0;

  static of(signal: AbortSignal): AbortList {
    return lists.get(signal) ?? new AbortList(signal);
  }

  private constructor(readonly signal: AbortSignal) {}

  add(waiting: Abortable): void {
    if (this.signal.aborted) {
      waiting.abort(this.signal.reason);
      return;
    }
    if (this.#waiting === 0) {
      lists.set(this.signal, this);
      this.signal.addEventListener('abort', this.#onAbort);
    } else if (this.#places.length > 2 * this.#waiting + FEW_GAPS) {
      this.#closeGaps();
    }
    waiting.place = this.#places.length;
    this.#places.push(waiting);
    this.#waiting += 1;
  }

  /** Removes a settled call. */
  delete(waiting: Abortable): void {
    if (this.#places[waiting.place] !== waiting) return;
    this.#places[waiting.place] = undefined;
    this.#waiting -= 1;
    if (this.#waiting > 0) return;
    this.#places.length = 0;
    lists.delete(this.signal);
    this.signal.removeEventListener('abort', this.#onAbort);
  }

  #closeGaps(): void {
    this.#places = this.#places.filter((waiting) => waiting !== undefined);
    for (const [place, waiting] of this.#places.entries()) (waiting as Abortable).place = place;
  }

  readonly #onAbort = (): void => {
    for (const waiting of this.#places.slice()) {
      if (waiting === undefined) continue;
      this.delete(waiting);
      waiting.abort(this.signal.reason);
    }
  };
}

/**
 * Settles like `promise`, unless the caller's signal or timeout comes first.
 *
 * @param ms - the timeout in milliseconds; undefined if the host applies it.
 */
export function guarded(
  promise: Promise<unknown>,
  { signal }: CallOptions,
  ms: number | undefined,
  aborted: () => void = () => {},
): Promise<unknown> {
  if (signal === undefined && ms === undefined) return promise;
  const list = signal && AbortList.of(signal);
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      list?.delete(waiting);
      settle();
    };
    const waiting: Abortable = {
      place: -1,
      abort(reason) {
        end(() => reject(reason));
        aborted();
      },
    };
    // The current global, like the host's own timers: an exception to `clock.ts`.
    const timer = ms === undefined ? undefined : setTimeout(() => end(() => reject(timedOut())), ms);
    promise.then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(error)),
    );
    list?.add(waiting);
  });
}

/** The entry of a call that a signal can abort. */
class AbortableEntry extends CallEntry implements Abortable {
  place = -1;

  constructor(
    variant: CommandVariant,
    context: EntryContext,
    sent: readonly unknown[],
    select: number,
    readonly abortList: AbortList,
  ) {
    super(variant, context, sent, select);
  }

  override fulfil(value: unknown): void {
    this.abortList.delete(this);
    super.fulfil(value);
  }

  override failAlone(error: unknown): void {
    this.abortList.delete(this);
    super.failAlone(error);
  }

  /** Rejects the caller. The entry stays queued and is sent, so that no other caller gets its reply (invariant 3). */
  abort(reason: unknown): void {
    if (this.followers !== undefined) {
      // The followers still await the reply, under the entry's deadline.
      this.settleError(reason);
      return;
    }
    this.failAlone(reason);
    this.deadline = SETTLED;
  }
}

/** The core's `Call` for these options. */
export function callOf(options: CallOptions): Call {
  const { signal } = options;
  if (signal === undefined) return options;
  return {
    ...options,
    newEntry: (variant, context, sent, select) =>
      new AbortableEntry(variant, context, sent, select, AbortList.of(signal)),
    sent: (entry) => (entry as AbortableEntry).abortList.add(entry as AbortableEntry),
  };
}
