import type { Entry } from '../core/entry.js';
import type { Encoded } from '../core/outgoing.js';
import type { TransactionState } from '../core/transaction-state.js';
import type { Deadline } from '../util/deadlines.js';

/**
 * Identical reads in one batch (`shareReads`): the first is sent and leads, the others follow and settle with it.
 *
 * A read may join a leader while only shareable reads came after the leader. Anything that could change an answer — a
 * write, a script, any write by the host — ends that, and so does the flush (invariant 6). From MULTI to EXEC nothing
 * is shared: there the server counts commands (invariant 11). The same applies where a transaction may be open that
 * began before `coalesce()`.
 */
export class SharedReads {
  /** The leaders of the open batch, by `nameOf`. */
  #leaders = new Map<string, Entry>();
  #stopped = false;

  constructor(readonly transaction: TransactionState) {}

  /** The server was told to omit replies: from now on the number of commands decides which one a reply belongs to. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Makes `entry` follow an identical read of this batch, if there is one with the same deadline.
   *
   * @returns whether it follows: it is not sent then, and settles with its leader.
   */
  follow(name: string, entry: Entry, deadline: Deadline | undefined): boolean {
    const leader = this.#leaders.get(name);
    if (leader === undefined || leader.deadline !== deadline) return false;
    leader.followers ??= [];
    leader.followers.push(entry);
    return true;
  }

  /** `entry` is about to be sent. Identical reads may follow it. */
  lead(name: string, entry: Entry): void {
    this.#leaders.set(name, entry);
  }

  /** No later read may follow an earlier one. */
  close(): void {
    // V8: what `clear()` leaves behind refers to the later contents, and keeps them alive once it is old.
    if (this.#leaders.size > 0) this.#leaders = new Map();
  }

  /**
   * A name that reads with the same answer have in common; undefined for one that is not shared: it has a
   * large argument.
   *
   * Text assumed to be ASCII states lengths in characters; exact text states them in bytes, with each byte as a
   * character. So the same text means a different key in each.
   *
   * @param given - it as RESP, or a group that encodes it with its neighbours.
   */
  nameOf(entry: Entry, given: Encoded): string | undefined {
    if (this.transaction.open || this.#stopped) return undefined;
    const encoded = typeof given === 'string' || Array.isArray(given) ? given : entry.encodeAssumingAscii();
    const { encoding } = entry.variant;
    const isExact = typeof encoded !== 'string';
    const text = isExact && encoded.length === 1 ? encoded[0] : encoded;
    if (typeof text !== 'string') return undefined;
    return isExact || encoding === null ? `${isExact} ${encoding} ${text}` : text;
  }
}
