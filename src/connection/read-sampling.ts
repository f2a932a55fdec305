import type { ReplyCount } from './reply-count.js';

/** After this many fruitless reads in a row, most reads are passed over. */
export const FRUITLESS = 256;
/** Then this many in a row are dealt with, and more passed over, in turn. */
const SAMPLE = 32;
/** As long as none is fruitful, twice as many are passed over each time. */
export const FEWEST_PASSED = 31 * SAMPLE;
export const MOST_PASSED = 124 * SAMPLE;

/**
 * Passes over most reads while a full cache finds nothing: its work for a read that it neither finds nor keeps costs a
 * quarter of that read. One read that is found, or whose key is read again soon, ends it.
 */
export class ReadSampling {
  /** Reads in a row that were not found, and whose keys had not been read recently. */
  #fruitless = 0;
  /** Reads still to be sent without looking for their answers. */
  #lookups = 0;
  /** The number of the last reply to pass over. Apart from the reads, since some are in flight between the two. */
  #passedUntil = 0;

  /** How many are passed over next. */
  #passed = FEWEST_PASSED;

  constructor(readonly replies: ReplyCount) {}

  /** Whether a read that is issued now is sent without looking for its answer. */
  passesLookup(): boolean {
    if (this.#lookups === 0) return false;
    this.#lookups -= 1;
    return true;
  }

  /** The number of the last reply to pass over: it is not kept, nor its key remembered. */
  get passedUntil(): number {
    return this.#passedUntil;
  }

  /** A read was found, or its key was read recently. */
  fruitful(): void {
    this.#fruitless = 0;
    this.#lookups = 0;
    this.#passedUntil = 0;
    this.#passed = FEWEST_PASSED;
    this.replies.quietUntil = 0;
  }

  /** A key was neither kept nor read recently. Returns how many replies will be passed over from here on. */
  fruitless(): number {
    this.#fruitless += 1;
    if (this.#fruitless < FRUITLESS || this.#fruitless % SAMPLE !== 0) return 0;
    const passed = this.#passed;
    this.#lookups = passed;
    this.#passedUntil = this.replies.light + passed;
    this.#passed = Math.min(2 * passed, MOST_PASSED);
    return passed;
  }
}
