/** After this many fruitless reads in a row, most reads are passed over. */
export const FRUITLESS = 256;
/** Then this many in a row are dealt with, and this many passed over, in turn. */
const SAMPLE = 32;
export const PASSED = 31 * SAMPLE;

/**
 * Passes over most reads while a full cache finds nothing: its work for a read that it neither finds nor keeps costs a
 * quarter of that read. One read that is found, or whose key is read again soon, ends it.
 */
export class ReadSampling {
  /** Reads in a row that were not found, and whose keys had not been read recently. */
  #fruitless = 0;
  /** Reads still to be sent without looking for their answers. */
  #lookups = 0;
  /** Replies still to be passed over. Counted separately, since reads are in flight between the two. */
  #replies = 0;

  /** Whether a read that is issued now is sent without looking for its answer. */
  passesLookup(): boolean {
    if (this.#lookups === 0) return false;
    this.#lookups -= 1;
    return true;
  }

  /** Whether the reply that has come now is not kept, nor its key remembered. */
  passesReply(): boolean {
    if (this.#replies === 0) return false;
    this.#replies -= 1;
    return true;
  }

  /** A read was found, or its key was read recently. */
  fruitful(): void {
    this.#fruitless = 0;
    this.#lookups = 0;
    this.#replies = 0;
  }

  /** A key was neither kept nor read recently. Returns how many replies will be passed over from here on. */
  fruitless(): number {
    this.#fruitless += 1;
    if (this.#fruitless < FRUITLESS || this.#fruitless % SAMPLE !== 0) return 0;
    this.#lookups = PASSED;
    this.#replies = PASSED;
    return PASSED;
  }
}
