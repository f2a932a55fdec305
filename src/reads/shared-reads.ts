import type { Entry } from '../core/entry.js';
import type { Encoded } from '../core/outgoing.js';
import type { TransactionState } from '../core/transaction-state.js';
import type { Deadline } from '../util/deadlines.js';

/**
 * Identical reads in one batch (`shareReads`): the first is sent and leads; the others follow it and settle with it.
 *
 * A read may follow a leader as long as only shareable reads came in between. A command that could change an answer (a
 * write, a script, any write by the host) ends that, and so does the flush (invariant 6). Nothing is shared from MULTI
 * to EXEC, whose reply has one element per command (invariant 11), nor while a transaction from before `coalesce()` may
 * be open.
 */
export class SharedReads {
  /** The leaders of the open batch, by `nameOf`. */
  #leaders = new Map<string, Entry>();
  #stopped = false;

  constructor(readonly transaction: TransactionState) {}

  /** Stops sharing: the server may omit replies, and then counts the commands sent. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Makes `entry` follow an identical read of this batch, if there is one with the same deadline. A Cluster redirects
   * its own reads alone, so they do not share errors with those of its node.
   *
   * @returns whether it follows. If so, it is not sent, and settles with its leader.
   */
  follow(name: string, entry: Entry, deadline: Deadline | undefined): boolean {
    const leader = this.#leaders.get(name);
    if (leader === undefined || leader.context !== entry.context || leader.deadline !== deadline) return false;
    leader.followers ??= [];
    leader.followers.push(entry);
    return true;
  }

  /** `entry` is about to be sent. Identical reads may follow it. */
  lead(name: string, entry: Entry): void {
    this.#leaders.set(name, entry);
  }

  /** Prevents later reads from following earlier ones. */
  close(): void {
    // V8: the table that `clear()` discards would refer to later contents and, in the old generation, keep them alive.
    if (this.#leaders.size > 0) this.#leaders = new Map();
  }

  /**
   * A name that identical reads have in common; undefined for a read with a large argument, which is not shared.
   *
   * Text assumed to be ASCII states lengths in characters, whereas exact text states them in bytes, each as one
   * character. So the same text names different keys in the two encodings.
   *
   * @param given - the read as RESP, or the group that will encode it.
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
