import { ReplyDecoder, type ReplyMode } from '../resp/decoder.js';
import { ReplyScanner } from '../resp/reply-scanner.js';

const PUSH = 62; // >
/** RESP: `invalidate` with the array of its keys, or null for all of them. */
const HEADER = Buffer.from('>2\r\n$10\r\ninvalidate\r\n');
/** Most bytes of an invalidation assembled from several chunks; a longer one invalidates all keys. */
const MAX_HELD = 1024 * 1024;

/**
 * Takes invalidations out of the server's bytes, wherever they are split into chunks. Gives back any other push from
 * its first byte on (invariant 4).
 */
export class InvalidationReader {
  /** The end of the last invalidation in its chunk. */
  end = 0;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #scanner = new ReplyScanner();

  constructor(
    /** @param keys - undefined for all keys. */
    readonly invalidate: (keys: readonly string[] | undefined) => void,
  ) {}

  /** Whether it holds the beginning of a push. */
  get open(): boolean {
    return this.#heldBytes > 0;
  }

  /**
   * Reads the push at `position`, or the rest of a push from an earlier chunk.
   *
   * @returns false if it is not an invalidation. Then the host reads it, with the bytes of `release`.
   */
  read(chunk: Buffer, position: number): boolean {
    if (!this.#isInvalidation(chunk, position)) return false;
    const scanned = this.#scanner.scan(chunk, position);
    if (scanned === 'whole') {
      this.end = this.#scanner.end;
      const piece = chunk.subarray(position, this.end);
      this.invalidate(keysOf(this.open ? Buffer.concat([this.release(), piece]) : piece));
      return true;
    }
    if (scanned !== 'more' || this.#heldBytes + chunk.length - position > MAX_HELD) {
      this.invalidate(undefined);
      // The host reads the rest of this push, so start afresh with the next one.
      this.#scanner = new ReplyScanner();
      return false;
    }
    // Copied, because the memory of a chunk may be reused.
    this.#held.push(Buffer.from(chunk.subarray(position)));
    this.#heldBytes += chunk.length - position;
    this.end = chunk.length;
    return true;
  }

  /** Returns and clears the held bytes. */
  release(): Buffer {
    const held = Buffer.concat(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    this.#scanner = new ReplyScanner();
    return held;
  }

  #isInvalidation(chunk: Buffer, position: number): boolean {
    if (this.#heldBytes >= HEADER.length) return true;
    if (!this.open && chunk[position] !== PUSH) return false;
    const length = Math.min(HEADER.length - this.#heldBytes, chunk.length - position);
    return chunk.compare(HEADER, this.#heldBytes, this.#heldBytes + length, position, position + length) === 0;
  }
}

const RESP3: ReplyMode = { resp3Types: true, replyMapping: 'legacy', stringNumbers: false };

/** The keys of a complete invalidation; undefined if it is for all keys, or if they cannot be read. */
function keysOf(push: Buffer): string[] | undefined {
  const keys = new ReplyDecoder(RESP3).decode(push, HEADER.length, true);
  if (!Array.isArray(keys) || keys.length === 0) return undefined;
  return keys.every((key) => typeof key === 'string') ? keys : undefined;
}
