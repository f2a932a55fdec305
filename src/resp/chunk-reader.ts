import { isAscii } from 'node:buffer';

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

/** A bulk string that is split over several chunks: its pieces, and the number of missing bytes. */
export class PartialString {
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
