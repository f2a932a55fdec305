import type { Part } from '../resp/encoder.js';
import type { CommandVariant, Entry } from './entry.js';
import type { TransactionState } from './transaction-state.js';

type Leaders = Map<CommandVariant, Map<string, Entry>>;

/**
 * Identical reads in one batch (`shareReads`): the first is sent and leads, the others follow and settle with it.
 *
 * A read may join a leader while only reads came after the leader. Anything that could change an answer — a write, a
 * script, any write by the host — ends that, and so does the flush (invariant 6). From MULTI to EXEC nothing is shared:
 * there the server counts commands (invariant 11). The same applies where a transaction may be open that began before
 * `coalesce()`.
 */
export class SharedReads {
  /**
   * By the encoded command. Text assumed to be ASCII states lengths in characters; exact text states them in bytes,
   * with each byte as a character. The same text means a different key in each, so each has its own map.
   */
  readonly #assumed: Leaders = new Map();
  readonly #exact: Leaders = new Map();
  #open = false;
  #stopped = false;

  constructor(readonly transaction: TransactionState) {}

  /**
   * The server was told to omit replies: from now on the number of commands decides which command a reply belongs to.
   */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Makes `entry` follow an identical read of this batch, if there is one, or lead those that come after it.
   *
   * @returns whether it follows: it is not sent then, and settles with its leader.
   */
  join(variant: CommandVariant, encoded: string | readonly Part[], entry: Entry): boolean {
    if (!variant.command.shareable) {
      this.close();
      return false;
    }
    if (this.transaction.open || this.#stopped) return false;
    const assumed = typeof encoded === 'string';
    const text = assumed ? encoded : encoded.length === 1 ? encoded[0] : undefined;
    if (typeof text !== 'string') return false;
    const leaders = assumed ? this.#assumed : this.#exact;
    let entries = leaders.get(variant);
    if (entries === undefined) {
      entries = new Map();
      leaders.set(variant, entries);
    }
    const leader = entries.get(text);
    if (leader === undefined || leader.withdrawn) {
      entries.set(text, entry);
      this.#open = true;
      return false;
    }
    leader.followers ??= [];
    leader.followers.push(entry);
    return true;
  }

  /** No later read may follow an earlier one. */
  close(): void {
    if (!this.#open) return;
    this.#assumed.clear();
    this.#exact.clear();
    this.#open = false;
  }
}
