/** A bulk string that is split over several chunks: its pieces, and the number of missing bytes. */
import { isAscii } from 'node:buffer';

const CR = 13;
const LF = 10;

/**
 * A string of up to 2 MiB and a line end is copied as it arrives, while the chunk is in the processor's cache. The
 * pieces of a longer one are kept until it is whole: no memory is allocated on the server's say-so.
 */
const LONGEST_COPIED = 2 * 1024 * 1024 + 2;

/**
 * Node keeps Latin-1 text of more bytes outside of V8's heap (`EXTERN_APEX`, src/string_bytes.cc). That is faster while the
 * heap is small, but V8 collects all of it each time 64 MB of such text have come: with two million live objects, reading
 * values of 1 MiB took 7 ms of CPU each instead of 1.5.
 */
const EXTERNAL_TEXT = 0xf_be_e9;

/** One buffer for all connections: fresh memory has to be paged in, which costs more than copying into it. */
let spare: Buffer | undefined;

export class CutString {
  /** Missing bytes, the line end included; 0 if no string is open. */
  missing = 0;
  readonly #pieces: Buffer[] = [];
  #length = 0;
  #utf8 = true;
  /** Memory for the whole string, how many bytes of it are filled, and how many were before the last chunk. */
  #bytes: Buffer | undefined;
  #filled = 0;
  #filledBefore = 0;

  /** @param keep - returns bytes of a chunk in memory that is not used again. */
  constructor(readonly keep: (bytes: Buffer) => Buffer) {}

  /** Opens a string of `length` bytes and a line end, of which the chunk has the bytes from `position` on. */
  begin(chunk: Buffer, position: number, length: number, utf8: boolean): void {
    this.#length = length;
    this.#utf8 = utf8;
    this.#filled = 0;
    if (length + 2 <= LONGEST_COPIED) this.#bytes = this.#takeMemory();
    this.#keep(chunk, position, chunk.length);
    this.missing = position + length + 2 - chunk.length;
  }

  /** Takes the part of the chunk that belongs to the string; `missing` is 0 when the string is whole. */
  add(chunk: Buffer): void {
    const { missing } = this;
    this.#keep(chunk, 0, Math.min(missing, chunk.length));
    this.missing = Math.max(0, missing - chunk.length);
  }

  /** The copy of what the last chunk had of it, valid until `take`; undefined if the chunk itself is kept. */
  get lastCopied(): Buffer | undefined {
    return this.#bytes?.subarray(this.#filledBefore, this.#filled);
  }

  #keep(chunk: Buffer, start: number, end: number): void {
    if (this.#bytes === undefined) this.#pieces.push(this.keep(chunk.subarray(start, end)));
    else {
      this.#filledBefore = this.#filled;
      this.#filled += chunk.copy(this.#bytes, this.#filled, start, end);
    }
  }

  #takeMemory(): Buffer {
    const length = this.#length + 2;
    return this.#utf8 ? takeMemory(length) : Buffer.allocUnsafe(length);
  }

  /** @returns the whole string, a Buffer with its own memory; undefined if it does not end in CR LF. */
  take(): string | Buffer | undefined {
    const length = this.#length;
    const bytes = this.#bytes ?? this.#takeMemory();
    for (const piece of this.#pieces) this.#filled += piece.copy(bytes, this.#filled);
    this.#bytes = undefined;
    this.discard();
    const complete = bytes[length] === CR && bytes[length + 1] === LF;
    const content = bytes.subarray(0, length);
    // The host may get the copies, and keep them.
    if (!complete) return undefined;
    if (!this.#utf8) return content;
    // Both give the same text for ASCII.
    const text =
      length < EXTERNAL_TEXT && isAscii(content) ? content.latin1Slice(0, length) : content.utf8Slice(0, length);
    giveMemoryBack(bytes);
    return text;
  }

  discard(): void {
    this.#bytes = undefined;
    this.#pieces.length = 0;
    this.missing = 0;
  }
}

function takeMemory(length: number): Buffer {
  const kept = spare;
  if (kept === undefined || kept.length < length) return Buffer.allocUnsafeSlow(length);
  spare = undefined;
  return kept;
}

function giveMemoryBack(buffer: Buffer): void {
  if (buffer.length <= LONGEST_COPIED && buffer.length > (spare?.length ?? 0)) spare = buffer;
}
