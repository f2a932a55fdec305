import { now } from '../../util/clock.js';

/** Milliseconds without a byte from the server after which one read is sent, to see whether the server answers. */
const SILENCE_PROBED_AFTER = 1_000;
/** Milliseconds without a byte after which nothing is served: the connection may be dead, and invalidations lost. */
const LONGEST_SILENCE = 2_000;

/**
 * Whether the server has sent bytes recently. If every read is answered from memory, nothing is written, and a dead
 * connection would not be noticed. So a read is sent from time to time. No timer is needed for that.
 */
export class Liveness {
  /** Milliseconds of `now()` when the last chunk of bytes came. */
  lastByteAt = now();
  #probing = false;

  bytesReceived(): void {
    this.lastByteAt = now();
    this.#probing = false;
  }

  /** Whether a read may be answered from memory at `time`. */
  allows(time: number): boolean {
    const silence = time - this.lastByteAt;
    if (silence < SILENCE_PROBED_AFTER) return true;
    if (silence >= LONGEST_SILENCE || !this.#probing) {
      this.#probing = true;
      return false;
    }
    return true;
  }
}
