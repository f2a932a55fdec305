/** A bulk string that is split over several chunks: its pieces, and the number of missing bytes. */
import { isAscii } from 'node:buffer';

const CR = 13;
const LF = 10;

/** A buffer longer than 2 MiB and a line end is not kept for the next string. */
const LONGEST_SPARE = 2 * 1024 * 1024 + 2;

/** One buffer for all connections: fresh memory has to be paged in, which costs more than copying into it. */
let spare: Buffer | undefined;

export class CutString {
  /** Missing bytes, the line end included; 0 if no string is open. */
  missing = 0;
  readonly #pieces: Buffer[] = [];
  #length = 0;
  #utf8 = true;

  /** Opens a string of `length` bytes and a line end, of which the chunk has the bytes from `position` on. */
  begin(chunk: Buffer, position: number, length: number, utf8: boolean): void {
    this.#pieces.push(chunk.subarray(position));
    this.#length = length;
    this.#utf8 = utf8;
    this.missing = position + length + 2 - chunk.length;
  }

  /** Takes the part of the chunk that belongs to the string; `missing` is 0 when the string is whole. */
  add(chunk: Buffer): void {
    const { missing } = this;
    this.#pieces.push(chunk.length > missing ? chunk.subarray(0, missing) : chunk);
    this.missing = Math.max(0, missing - chunk.length);
  }

  /** @returns the whole string, a Buffer with memory of its own; undefined if it does not end in CR LF. */
  take(): string | Buffer | undefined {
    const length = this.#length;
    const bytes = this.#utf8 ? takeMemory(length + 2) : Buffer.allocUnsafe(length + 2);
    let filled = 0;
    for (const piece of this.#pieces) filled += piece.copy(bytes, filled);
    this.discard();
    const complete = bytes[length] === CR && bytes[length + 1] === LF;
    const content = bytes.subarray(0, length);
    if (!this.#utf8) return complete ? content : undefined;
    // Both give the same text for ASCII. Node keeps long Latin-1 text outside of V8's heap: several times faster.
    const text = isAscii(content) ? content.latin1Slice() : content.utf8Slice();
    giveMemoryBack(bytes);
    return complete ? text : undefined;
  }

  discard(): void {
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
  if (buffer.length <= LONGEST_SPARE && buffer.length > (spare?.length ?? 0)) spare = buffer;
}
