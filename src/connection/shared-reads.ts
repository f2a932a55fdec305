import type { Part } from '../resp/encoder.js';
import type { CommandVariant, Entry } from './entry.js';

/** Whether a transaction is open behind some commands. */
type Transaction = 'open' | 'closed';

type Leaders = Map<CommandVariant, Map<string, Entry>>;

/**
 * Identical reads in one batch (`shareReads`): the first is sent and leads, the others follow and settle with it.
 *
 * A read may join a leader while nothing but reads came after it. Whatever could change an answer — a write, a script,
 * anything of the host's — ends that, and so does the flush (invariant 6). From MULTI to EXEC nothing is shared: there
 * the server counts commands (invariant 11). The same where a transaction may be open that was begun before us.
 */
export class SharedReads {
  /**
   * By the encoded command. Text that is taken for ASCII states lengths in characters, exact text in bytes with each
   * byte as a character: the same text means another key in each, so each has a map of its own.
   */
  readonly #assumed: Leaders = new Map();
  readonly #exact: Leaders = new Map();
  #open = false;
  /** Whether one is open on the server behind what was sent so far. */
  #transaction: Transaction | 'unknown' | 'uncounted';

  /** @param transaction - behind what was sent before; undefined if only replies can tell. */
  constructor(transaction: Transaction | undefined) {
    this.#transaction = transaction ?? 'unknown';
  }

  /** Commands that open or close a transaction are about to be sent. */
  sends(transaction: Transaction): void {
    if (this.#transaction !== 'uncounted') this.#transaction = transaction;
  }

  /** The server was told to leave replies out: whose they are depends on how many commands were sent, from now on. */
  stop(): void {
    this.#transaction = 'uncounted';
  }

  /**
   * The first reply on a connection that was in use. It is to a command in front of all that were noticed here.
   *
   * RESP: what is queued is answered with `+QUEUED`. An error says nothing: commands are refused in transactions too.
   *
   * @param line - how its last line begins.
   */
  firstReply(line: string): void {
    if (this.#transaction === 'unknown' && !/^(?:\+QUEUED|-)/.test(line)) this.#transaction = 'closed';
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
    if (this.#transaction !== 'closed') return false;
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
