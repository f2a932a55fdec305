import type { ReplyCount } from './reply-count.js';

/** After this many fruitless reads in a row, most reads are passed over. */
export const FRUITLESS = 256;
/** Then this many in a row are dealt with, and more passed over, in turn. */
const SAMPLE = 32;
/** As long as none is fruitful, twice as many are passed over each time. */
export const FEWEST_PASSED = 31 * SAMPLE;
const MOST_PASSED = 1_000 * SAMPLE;
/** Milliseconds after which others are dealt with, however few were passed over. */
const LONGEST_PASS = 100;
/** After this many fruitless reads, up to 31,000 with those that were passed over, nothing is expected to be found. */
const HOPELESS = FRUITLESS + 5 * SAMPLE;

/**
 * Passes over most reads while a full cache finds nothing: its work for a read that it neither finds nor keeps costs a
 * quarter of that read. One read that is found, or whose key is read again soon, ends it.
 */
export class ReadSampling {
  /** Reads in a row that were not found, and whose keys had not been read recently. */
  #fruitless = 0;
  /** How many are passed over next. */
  #passes = FEWEST_PASSED;
  /** Reads still to be sent without looking for their answers. */
  #lookups = 0;
  /** The number of the reply after which replies are passed over. */
  #passedFrom = 0;
  /** The number of the last one to pass over; 0 for none. Some reads are in flight between it and `#lookups`. */
  #passedUntil = 0;
  /** Milliseconds of `now()` when the first bytes came that are passed over now. */
  #passedSince: number | undefined;
  /** Replies passed over, of which the doorkeeper has not been told. */
  #skipped = 0;

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

  /** Whether nothing has been found for so long that the answers that are kept are not worth their cost to Redis. */
  get hopeless(): boolean {
    return this.#fruitless >= HOPELESS;
  }

  /** A read was found, or its key was read recently. */
  fruitful(): void {
    this.#fruitless = 0;
    this.#passes = FEWEST_PASSED;
    this.#stopPassing();
  }

  /** A key was neither kept nor read recently. */
  fruitless(): void {
    this.#fruitless += 1;
    if (this.#fruitless < FRUITLESS || this.#fruitless % SAMPLE !== 0) return;
    this.#stopPassing();
    this.#lookups = this.#passes;
    this.#passedFrom = this.replies.light;
    this.#passedUntil = this.#passedFrom + this.#passes;
    this.#passes = Math.min(2 * this.#passes, MOST_PASSED);
  }

  /** Bytes have come at `time`, in milliseconds of `now()`. A client that reads little is not passed over for long. */
  heard(time: number): void {
    if (this.#passedUntil === 0) return;
    this.#passedSince ??= time;
    if (time - this.#passedSince > LONGEST_PASS) this.#stopPassing();
  }

  /** How many replies have been passed over since this was called last. */
  takeSkipped(): number {
    this.#countPassed();
    const skipped = this.#skipped;
    this.#skipped = 0;
    return skipped;
  }

  #stopPassing(): void {
    this.#countPassed();
    this.#lookups = 0;
    this.#passedUntil = 0;
    this.#passedSince = undefined;
    this.replies.quietUntil = 0;
  }

  #countPassed(): void {
    const passed = Math.min(this.replies.light, this.#passedUntil);
    if (passed <= this.#passedFrom) return;
    this.#skipped += passed - this.#passedFrom;
    this.#passedFrom = passed;
  }
}
