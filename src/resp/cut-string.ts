/** A bulk string that the ends of chunks have cut: its pieces, and what is missing. */
import { isAscii } from 'node:buffer';

const CR = 13;
const LF = 10;

/** A longer buffer is not kept for the next string: 2 MiB, and the line's end. */
const LONGEST_SPARE = 2 * 1024 * 1024 + 2;

/** One for all connections: a new one has to be paged in, which costs more than to copy into it. */
let spare: Buffer | undefined;

export class CutString {
  /** Bytes that are still to come, those of the line's end among them; 0 if no string is open. */
  missing = 0;
  readonly #pieces: Buffer[] = [];
  #length = 0;
  #utf8 = true;

  /** Of a string of `length` bytes, and the line's end behind them, the chunk has what is behind `position`. */
  begin(chunk: Buffer, position: number, length: number, utf8: boolean): void {
    this.#pieces.push(chunk.subarray(position));
    this.#length = length;
    this.#utf8 = utf8;
    this.missing = position + length + 2 - chunk.length;
  }

  /** Takes what belongs to the string; `missing` is 0 when that is all of it. */
  add(chunk: Buffer): void {
    const { missing } = this;
    this.#pieces.push(chunk.length > missing ? chunk.subarray(0, missing) : chunk);
    this.missing = Math.max(0, missing - chunk.length);
  }

  /** @returns the string, once nothing is missing: a Buffer is the caller's own. Undefined if it ends without CR LF. */
  take(): string | Buffer | undefined {
    const length = this.#length;
    const bytes = this.#utf8 ? takeMemory(length + 2) : Buffer.allocUnsafe(length + 2);
    let filled = 0;
    for (const piece of this.#pieces) filled += piece.copy(bytes, filled);
    this.discard();
    const complete = bytes[length] === CR && bytes[length + 1] === LF;
    const content = bytes.subarray(0, length);
    if (!this.#utf8) return complete ? content : undefined;
    // The same text for ASCII, but Node makes a long one outside of V8's heap, which is several times faster.
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
