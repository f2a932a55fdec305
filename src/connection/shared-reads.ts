import type { CommandVariant, Entry } from './entry.js';

/**
 * Identical reads in one batch (`shareReads`): the first is sent and leads, the others follow and settle with it.
 *
 * A read may join a leader while nothing but reads came after it. Whatever could change an answer — a write, a script,
 * anything of the host's — ends that, and so does the flush. From MULTI to EXEC nothing is shared: there the server
 * counts commands.
 */
export class SharedReads {
  readonly #leaders = new Map<CommandVariant, Map<string, Entry>>();
  #open = false;
  inTransaction = false;

  /** The entry that an identical read leads, if this one may follow it. */
  leaderOf(variant: CommandVariant, encoded: string): Entry | undefined {
    return this.inTransaction ? undefined : this.#leaders.get(variant)?.get(encoded);
  }

  lead(variant: CommandVariant, encoded: string, entry: Entry): void {
    if (this.inTransaction) return;
    let entries = this.#leaders.get(variant);
    if (entries === undefined) {
      entries = new Map();
      this.#leaders.set(variant, entries);
    }
    entries.set(encoded, entry);
    this.#open = true;
  }

  /** No read from here on may follow one from before. */
  close(): void {
    if (!this.#open) return;
    this.#leaders.clear();
    this.#open = false;
  }
}
