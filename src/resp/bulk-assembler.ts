/**
 * Puts together a long bulk string that the ends of chunks have cut.
 *
 * It keeps the reply's bytes as they came, first to last, so that at any time they can be handed to the host as if they
 * had just arrived. RESP: `$<length>\r\n<bytes>\r\n`.
 */
import { isAscii } from 'node:buffer';

const CR = 13;
const LF = 10;
const ZERO = 48;
const BULK = 36; // $

/** Shorter ones are left to the host: there is nothing to gain, and what is not kept needs no care. */
export const SHORTEST_ASSEMBLED = 8 * 1024;
/** Longer ones are left to the host: nothing of the size of a server's word is set aside here. */
export const LONGEST_ASSEMBLED = 16 * 1024 * 1024;
const MOST_DIGITS = String(LONGEST_ASSEMBLED).length;
/** A longer buffer is not kept for the next reply: 2 MiB, and what stands around a string. */
const LONGEST_SPARE = 2 * 1024 * 1024 + 16;

/** One for all connections: a new one has to be paged in, which costs more than to copy into it. */
let spare: Buffer | undefined;

export class BulkAssembler {
  #buffer: Buffer | undefined;
  #filled = 0;
  /** Where the string begins and ends in the buffer. */
  #start = 0;
  #stop = 0;

  /** Whether a reply is being put together. */
  get open(): boolean {
    return this.#buffer !== undefined;
  }

  /**
   * Takes the chunk from `position` to its end if that is the beginning of a bulk string of a length that pays, and more
   * than a line feed is missing.
   *
   * @returns whether it did.
   */
  begin(chunk: Buffer, position: number): boolean {
    if (chunk[position] !== BULK) return false;
    let cursor = position + 1;
    let length = 0;
    for (let byte = chunk[cursor]; byte !== CR; byte = chunk[++cursor]) {
      const digit = (byte as number) - ZERO;
      if (!(digit >= 0 && digit <= 9) || cursor - position > MOST_DIGITS) return false;
      length = length * 10 + digit;
    }
    if (chunk[cursor + 1] !== LF || length < SHORTEST_ASSEMBLED || length > LONGEST_ASSEMBLED) return false;
    this.#start = cursor + 2 - position;
    this.#stop = this.#start + length;
    if (this.#stop + 1 <= chunk.length - position) return false;
    this.#buffer = takeBuffer(this.#stop + 2);
    this.#filled = chunk.copy(this.#buffer, 0, position);
    return true;
  }

  /** Takes what belongs to the reply; returns where that ends in the chunk. */
  add(chunk: Buffer, position: number): number {
    const end = Math.min(chunk.length, position + this.#stop + 2 - this.#filled);
    this.#filled += chunk.copy(this.#buffer as Buffer, this.#filled, position, end);
    return end;
  }

  get whole(): boolean {
    return this.#filled === this.#stop + 2;
  }

  get onlyLacksLineFeed(): boolean {
    return this.#filled === this.#stop + 1;
  }

  /** @returns the string, as `toString('utf8')` has it, of a reply that is whole; undefined if it does not end in CR LF. */
  take(): string | undefined {
    const buffer = this.#buffer as Buffer;
    if (buffer[this.#stop] !== CR || buffer[this.#stop + 1] !== LF) return undefined;
    const bytes = buffer.subarray(this.#start, this.#stop);
    // The same text for ASCII, but Node makes a long one outside of V8's heap, which is several times faster.
    const text = isAscii(bytes) ? bytes.latin1Slice() : bytes.utf8Slice();
    this.#close(buffer);
    return text;
  }

  /** @returns the bytes so far, which are the caller's now. */
  release(): Buffer {
    const bytes = Buffer.from((this.#buffer as Buffer).subarray(0, this.#filled));
    this.#close(this.#buffer as Buffer);
    return bytes;
  }

  /** Forgets what has come. */
  discard(): void {
    if (this.#buffer !== undefined) this.#close(this.#buffer);
  }

  #close(buffer: Buffer): void {
    this.#buffer = undefined;
    if (buffer.length <= LONGEST_SPARE && buffer.length > (spare?.length ?? 0)) spare = buffer;
  }
}

function takeBuffer(length: number): Buffer {
  const kept = spare;
  if (kept === undefined || kept.length < length) return Buffer.allocUnsafeSlow(length);
  spare = undefined;
  return kept;
}
