import type { Part } from '../resp/encoder.js';
import type { CommandVariant, Entry } from './entry.js';

type Leaders = Map<CommandVariant, Map<string, Entry>>;

/**
 * Identical reads in one batch (`shareReads`): the first is sent and leads, the others follow and settle with it.
 *
 * A read may join a leader while nothing but reads came after it. Whatever could change an answer — a write, a script,
 * anything of the host's — ends that, and so does the flush (invariant 6). From MULTI to EXEC nothing is shared: there
 * the server counts commands (invariant 11).
 */
export class SharedReads {
  /**
   * By the encoded command. Text that is taken for ASCII states lengths in characters, exact text in bytes with each
   * byte as a character: the same text means another key in each, so each has a map of its own.
   */
  readonly #assumed: Leaders = new Map();
  readonly #exact: Leaders = new Map();
  #open = false;
  inTransaction = false;

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
    if (this.inTransaction) return false;
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
    if (leader === undefined) {
      entries.set(text, entry);
      this.#open = true;
      return false;
    }
    leader.followers ??= [];
    leader.followers.push(entry);
    return true;
  }

  /** No read from here on may follow one from before. */
  close(): void {
    if (!this.#open) return;
    this.#assumed.clear();
    this.#exact.clear();
    this.#open = false;
  }
}
