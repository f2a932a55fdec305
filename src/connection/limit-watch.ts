import { CODES, warnOnce } from '../errors.js';
import type { FlushReason } from '../stats.js';

/** Batches per observation window. */
const WINDOW = 10_000;
/** If a limit flushed at least this share of the batches, the limit decides their size, not the traffic. */
const SHARE = 0.95;

/** Warns if `maxBatchSize` or `maxBatchBytes` is so low that nearly every batch hits it. */
export class LimitWatch {
  #batches = 0;
  #bySize = 0;
  #byBytes = 0;

  constructor(readonly limits: { readonly maxBatchSize: number; readonly maxBatchBytes: number }) {}

  flushed(reason: FlushReason): void {
    this.#batches += 1;
    if (reason === 'size') this.#bySize += 1;
    else if (reason === 'bytes') this.#byBytes += 1;
    if (this.#batches < WINDOW) return;
    if (this.#bySize + this.#byBytes > WINDOW * SHARE) {
      const limit = this.#bySize >= this.#byBytes ? 'maxBatchSize' : 'maxBatchBytes';
      warnOnce(
        CODES.BATCH_LIMIT,
        `ioredis-coalesce: nearly all of the last ${WINDOW} batches of a connection were flushed by the limit ` +
          `${limit} (${this.limits[limit]}); a higher limit saves system calls`,
      );
    }
    this.#batches = 0;
    this.#bySize = 0;
    this.#byBytes = 0;
  }
}
