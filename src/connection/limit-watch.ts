import { CODES, warnOnce } from '../errors.js';
import type { FlushReason } from '../stats.js';

/** So many batches are looked at together. */
const WINDOW = 10_000;
/** If more of them than this are flushed by a bound, it is the bound that makes the batches. */
const CONSTANT = 0.95;

/** Warns of `maxBatchSize` or `maxBatchBytes` being so low that nearly every batch hits it. */
export class LimitWatch {
  #batches = 0;
  #bySize = 0;
  #byBytes = 0;

  constructor(readonly bounds: { readonly maxBatchSize: number; readonly maxBatchBytes: number }) {}

  flushed(reason: FlushReason): void {
    this.#batches += 1;
    if (reason === 'size') this.#bySize += 1;
    else if (reason === 'bytes') this.#byBytes += 1;
    if (this.#batches < WINDOW) return;
    if (this.#bySize + this.#byBytes > WINDOW * CONSTANT) {
      const bound = this.#bySize >= this.#byBytes ? 'maxBatchSize' : 'maxBatchBytes';
      warnOnce(
        CODES.BATCH_BOUND,
        `ioredis-coalesce: nearly all of the last ${WINDOW} batches of a connection were flushed by the bound ` +
          `${bound} (${this.bounds[bound]}); a higher one saves system calls`,
      );
    }
    this.#batches = 0;
    this.#bySize = 0;
    this.#byBytes = 0;
  }
}
