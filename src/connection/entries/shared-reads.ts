import type { CommandVariant } from '../../commands/hot-commands.js';
import type { Part } from '../../resp/encoder.js';
import type { TransactionState } from '../transaction-state.js';
import type { Deadline } from './deadlines.js';
import type { Entry } from './entry.js';

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
  #assumed: Leaders = new Map();
  #exact: Leaders = new Map();
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
   * Makes `entry` follow an identical read of this batch, if there is one with the same deadline.
   *
   * @returns whether it follows: it is not sent then, and settles with its leader.
   */
  follow(encoded: string | readonly Part[], entry: Entry, deadline: Deadline | undefined): boolean {
    const text = textOf(encoded);
    if (text === undefined || this.transaction.open || this.#stopped) return false;
    const leader = this.#leaders(encoded).get(entry.variant)?.get(text);
    if (leader === undefined || leader.withdrawn || leader.observer !== deadline) return false;
    leader.followers ??= [];
    leader.followers.push(entry);
    return true;
  }

  /** `entry` is about to be sent. Identical reads may follow it. */
  lead(encoded: string | readonly Part[], entry: Entry): void {
    const text = textOf(encoded);
    if (text === undefined || this.transaction.open || this.#stopped) return;
    const leaders = this.#leaders(encoded);
    const entries = leaders.get(entry.variant);
    if (entries === undefined) leaders.set(entry.variant, new Map([[text, entry]]));
    else entries.set(text, entry);
    this.#open = true;
  }

  #leaders(encoded: string | readonly Part[]): Leaders {
    return typeof encoded === 'string' ? this.#assumed : this.#exact;
  }

  /** No later read may follow an earlier one. */
  close(): void {
    if (!this.#open) return;
    // V8: what `clear()` leaves behind refers to the later contents, and keeps them alive once it is old.
    this.#assumed = new Map();
    this.#exact = new Map();
    this.#open = false;
  }
}

/** The command as one text; undefined if it has several parts, or is bytes. */
function textOf(encoded: string | readonly Part[]): string | undefined {
  const text = typeof encoded === 'string' || encoded.length > 1 ? encoded : encoded[0];
  return typeof text === 'string' ? text : undefined;
}
