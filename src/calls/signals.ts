import type { CommandVariant } from '../commands/fast-commands.js';
import { CallEntry } from '../core/entry.js';
import type { Call } from '../core/features.js';
import type { EntryContext } from '../host/command-facade.js';
import type { CallOptions } from '../options.js';
import { SETTLED, timedOut } from '../util/deadlines.js';

/** What waits for a reply, and can be aborted by its caller: an `AbortableEntry`, or a promise that is guarded here. */
export interface Abortable {
  /** The place among those that its signal can abort. */
  place: number;
  abort(reason: unknown): void;
}

/** The list is compacted only when it has more empty places than this. */
const FEW = 64;

/** Signals with pending calls. Not a WeakMap: one signal per request would be work for the garbage collector. */
const lists = new Map<AbortSignal, AbortList>();

/**
 * What a signal can abort at the moment. It has one listener, however many commands there are, and none while there are
 * none: a signal may live as long as the process.
 */
export class AbortList {
  /**
   * The calls that wait, in order, with gaps. Not a Set: each of V8's hash tables refers to the next, larger or smaller
   * one, so with thousands of commands per second all of them would be kept until the next full garbage collection.
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
    } else if (this.#places.length > 2 * this.#waiting + FEW) {
      this.#closeGaps();
    }
    waiting.place = this.#places.length;
    this.#places.push(waiting);
    this.#waiting += 1;
  }

  /** Forgets what has settled. */
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
 * Settles as `promise` does, unless the caller's signal, or its time, comes first.
 *
 * @param ms - the time in milliseconds; undefined if the host keeps it.
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
    // Like the host's own timers, of the present global: an exception to `clock.ts`.
    const timer = ms === undefined ? undefined : setTimeout(() => end(() => reject(timedOut())), ms);
    promise.then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(error)),
    );
    list?.add(waiting);
  });
}

/** The entry of a single call that a signal can abort. */
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

  /** Rejects its caller. The entry stays queued and is sent: the next caller must not get its reply (invariant 3). */
  abort(reason: unknown): void {
    if (this.followers !== undefined) {
      // The followers still wait for its reply, under its deadline.
      this.settleError(reason);
      return;
    }
    this.failAlone(reason);
    this.deadline = SETTLED;
  }
}

/** Calls with these options, as the core makes them. */
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
