/**
 * Lines and strings, read from one chunk. Never reads beyond its end: V8 would make every later read slower.
 *
 * RESP: https://redis.io/docs/latest/develop/reference/protocol-spec.
 */

const CR = 13;
const LF = 10;
const MINUS = 45;
const ZERO = 48;
const NINE = 57;
export const BULK = 36; // $

/** With up to this many digits all decoders agree: beyond 2^53 the host's sum of `n * 10 + d` rounds in its own way. */
const MAX_DIGITS = 15;
/** `$0\r\n\r\n`. */
const SHORTEST_STRING = 6;
/** Bytes of a string; more than any chunk has, so a longer string is not whole in its chunk. */
const MAX_WHOLE_STRING = 10 ** 8;
/** Returned by `number` for a line that is not whole; no number on the wire has this value. */
export const INCOMPLETE_LINE = Number.POSITIVE_INFINITY;

/** V8 copies a substring of up to this many characters; a longer one refers to the whole, which stays in memory. */
const MAX_COPIED_TEXT = 12;
/** Bytes read at once for short strings. */
const SHARED_TEXT = 128;

/** The reply is left to the host. */
export const NOT_DECODED: unique symbol = Symbol('left to the host');
/** The chunk ends within the reply: `resume` continues in the next one. */
export const INCOMPLETE: unique symbol = Symbol('cut by the end of the chunk');

export class ChunkReader {
  /** The end of the last read element in its chunk. */
  end = 0;
  protected chunk: Buffer;
  /** A part of the chunk as text, from which short strings are taken; see `text`. */
  #sharedText = '';
  #textStart = 0;
  #textEnd = 0;

  constructor(chunk: Buffer) {
    this.chunk = chunk;
  }

  /** Starts to read `chunk` at `position`. */
  protected open(chunk: Buffer, position: number): void {
    this.chunk = chunk;
    this.end = position;
    this.#textEnd = 0;
  }

  /**
   * The start of the content of the bulk string at `end`; `end` is moved past the string. -1 if no whole string is
   * there.
   */
  protected wholeString(): number {
    const chunk = this.chunk;
    const limit = chunk.length;
    let cursor = this.end;
    if (cursor + SHORTEST_STRING > limit || chunk[cursor] !== BULK) return -1;
    let length = 0;
    let byte = chunk[++cursor] as number;
    do {
      if (byte < ZERO || byte > NINE || length > MAX_WHOLE_STRING) return -1;
      length = length * 10 + (byte - ZERO);
      byte = chunk[++cursor] as number;
    } while (byte !== CR && cursor < limit - 1);
    const start = cursor + 2;
    const stop = start + length;
    if (stop + 2 > limit || chunk[cursor + 1] !== LF || chunk[stop] !== CR || chunk[stop + 1] !== LF) return -1;
    this.end = stop + 2;
    return start;
  }

  /** A safe integer; NaN for anything else (`-0`, too many digits, a plus sign); `INCOMPLETE_LINE` if its line is split. */
  protected number(start: number): number {
    const chunk = this.chunk;
    const limit = chunk.length;
    const negative = start < limit && chunk[start] === MINUS;
    const first = negative ? start + 1 : start;
    let cursor = first;
    let number = 0;
    for (; cursor < limit && chunk[cursor] !== CR; cursor += 1) {
      const digit = (chunk[cursor] as number) - ZERO;
      if (digit < 0 || digit > 9) return Number.NaN;
      number = number * 10 + digit;
    }
    if (cursor + 1 >= limit) return INCOMPLETE_LINE;
    const digits = cursor - first;
    if (chunk[cursor + 1] !== LF || digits === 0 || digits > MAX_DIGITS || (negative && number === 0)) {
      return Number.NaN;
    }
    this.end = cursor + 2;
    return negative ? -number : number;
  }

  protected line(start: number, utf8: boolean): string | Buffer | typeof INCOMPLETE | typeof NOT_DECODED {
    const chunk = this.chunk;
    const lineEnd = chunk.indexOf(CR, start);
    if (lineEnd < 0 || lineEnd + 1 === chunk.length) return INCOMPLETE;
    if (chunk[lineEnd + 1] !== LF) return NOT_DECODED;
    this.end = lineEnd + 2;
    return utf8 ? chunk.utf8Slice(start, lineEnd) : chunk.subarray(start, lineEnd);
  }

  /**
   * The text of one of many strings. Most of the cost of reading a short one is the call into Node, so several are read
   * at once and cut apart. V8 copies substrings of up to 12 characters; a longer one would keep the whole text in memory.
   */
  protected text(start: number, stop: number): string {
    const chunk = this.chunk;
    if (stop - start > MAX_COPIED_TEXT) return chunk.utf8Slice(start, stop);
    if (stop > this.#textEnd) {
      this.#textStart = start;
      this.#textEnd = Math.min(start + SHARED_TEXT, chunk.length);
      this.#sharedText = chunk.utf8Slice(start, this.#textEnd);
    }
    const text = this.#sharedText;
    const offset = start - this.#textStart;
    // As many characters as bytes: each character is one byte, here and in any part.
    return text.length === this.#textEnd - this.#textStart
      ? text.substring(offset, offset + stop - start)
      : chunk.utf8Slice(start, stop);
  }
}
