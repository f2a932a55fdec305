/**
 * Replies to the values a host's own decoder and `Command#transformReply` would make of them, straight from the chunk.
 *
 * It decodes what it is sure of and leaves the rest: a reply that is cut off by the end of the chunk, errors, pushes,
 * numbers on which decoders differ, anything malformed. What it leaves goes to the host, so that nothing is decoded in
 * two ways.
 *
 * RESP: types and forms, https://redis.io/docs/latest/develop/reference/protocol-spec.
 */

/** How the host's decoder turns replies into values on one connection. */
export interface ReplyMode {
  /** Whether the host's decoder knows the types of RESP3 (ioredis 6, whatever protocol was agreed on). */
  readonly resp3Types: boolean;
  readonly replyMapping: 'legacy' | 'resp3';
  readonly stringNumbers: boolean;
}

/** The reply was not decoded: it is incomplete, or of a kind that is left to the host. */
export const NOT_DECODED: unique symbol = Symbol('left to the host');

const CR = 13;
const LF = 10;
const MINUS = 45;
const ZERO = 48;

const SIMPLE = 43; // +
const BULK = 36; // $
const INTEGER = 58; // :
const ARRAY = 42; // *
const NULL = 95; // _
const DOUBLE = 44; // ,
const BOOLEAN = 35; // #
const MAP = 37; // %
const SET = 126; // ~

/** Digits in which every decoder agrees: beyond 2^53 the host's sum of `n * 10 + d` rounds in its own way. */
const MAX_DIGITS = 15;
const MAX_DEPTH = 16;
/** `_\r\n`: no element is shorter, so a longer count cannot be whole in what is left of the chunk. */
const MIN_ELEMENT_BYTES = 3;

export class ReplyDecoder {
  /** Where the reply that was decoded last ends in its chunk. */
  end = 0;

  readonly #mode: ReplyMode;
  #chunk: Buffer = Buffer.alloc(0);
  #utf8 = true;

  constructor(mode: ReplyMode) {
    this.#mode = mode;
  }

  /**
   * @param utf8 - strings as JavaScript strings, else as Buffers that share the chunk's memory, like the host's.
   * @returns the value, or `NOT_DECODED`; after a value, `end` is set.
   */
  decode(chunk: Buffer, position: number, utf8: boolean): unknown {
    if (chunk[position] === BULK) {
      // The one reply that most commands get, without the detour.
      let cursor = position + 1;
      let byte = chunk[cursor] as number;
      let length = byte - ZERO;
      if (length >= 0 && length <= 9) {
        byte = chunk[++cursor] as number;
        while (byte !== CR) {
          const digit = byte - ZERO;
          // `undefined - 48` at the chunk's end is NaN, which is no digit either.
          if (!(digit >= 0 && digit <= 9) || cursor - position > MAX_DIGITS) return NOT_DECODED;
          length = length * 10 + digit;
          byte = chunk[++cursor] as number;
        }
        const start = cursor + 2;
        const stop = start + length;
        if (chunk[stop + 1] !== LF || chunk[stop] !== CR || chunk[cursor + 1] !== LF) return NOT_DECODED;
        this.end = stop + 2;
        return utf8 ? chunk.utf8Slice(start, stop) : chunk.subarray(start, stop);
      }
    }
    this.#chunk = chunk;
    this.#utf8 = utf8;
    this.end = position;
    return this.#value(0);
  }

  /**
   * The reply to EXEC: an array whose elements are decoded in an encoding each, or null.
   *
   * @param encodings - whether the strings of an element become JavaScript strings.
   */
  decodeElements(
    chunk: Buffer,
    position: number,
    encodings: { utf8At(index: number, count: number): boolean },
  ): unknown {
    if (chunk[position] !== ARRAY) return this.decode(chunk, position, false);
    this.#chunk = chunk;
    const count = this.#number(position + 1);
    if (count === -1) return null;
    if (!this.#fits(count, 0)) return NOT_DECODED;
    const values = new Array<unknown>(count);
    for (let index = 0; index < count; index += 1) {
      const value = this.decode(chunk, this.end, encodings.utf8At(index, count));
      if (value === NOT_DECODED) return NOT_DECODED;
      values[index] = value;
    }
    return values;
  }

  #value(depth: number): unknown {
    const chunk = this.#chunk;
    const start = this.end + 1;
    const type = chunk[this.end];
    switch (type) {
      case BULK:
        return this.#bulk(start);
      case INTEGER:
        return this.#integer(start);
      case SIMPLE:
        return this.#line(start, this.#utf8);
      case ARRAY:
        return this.#array(start, 1, depth);
      default:
        return this.#mode.resp3Types ? this.#resp3Value(type, start, depth) : NOT_DECODED;
    }
  }

  #resp3Value(type: number | undefined, start: number, depth: number): unknown {
    const { replyMapping, stringNumbers } = this.#mode;
    const legacy = replyMapping === 'legacy';
    switch (type) {
      case NULL:
        return this.#line(start, true) === '' ? null : NOT_DECODED;
      case BOOLEAN: {
        const letter = this.#line(start, true);
        if (letter !== 't' && letter !== 'f') return NOT_DECODED;
        return legacy ? Number(letter === 't') : letter === 't';
      }
      case DOUBLE:
        // Under the resp3 mapping a double becomes a number, by an algorithm that differs among host versions.
        if (stringNumbers) return this.#line(start, true);
        return legacy ? this.#line(start, this.#utf8) : NOT_DECODED;
      case SET:
        return this.#array(start, 1, depth);
      case MAP:
        return legacy ? this.#array(start, 2, depth) : this.#map(start, depth);
      default:
        return NOT_DECODED;
    }
  }

  /** Where the line from `start` ends, `end` set behind it; -1 if it is not whole. */
  #lineEnd(start: number): number {
    const lineEnd = this.#chunk.indexOf(CR, start);
    if (lineEnd < 0 || this.#chunk[lineEnd + 1] !== LF) return -1;
    this.end = lineEnd + 2;
    return lineEnd;
  }

  #line(start: number, utf8: boolean): unknown {
    const lineEnd = this.#lineEnd(start);
    if (lineEnd < 0) return NOT_DECODED;
    return utf8 ? this.#chunk.utf8Slice(start, lineEnd) : this.#chunk.subarray(start, lineEnd);
  }

  /** A safe integer, or NaN for anything else: `-0`, too many digits, another sign, no whole line. */
  #number(start: number): number {
    const chunk = this.#chunk;
    const negative = chunk[start] === MINUS;
    const first = negative ? start + 1 : start;
    let cursor = first;
    let number = 0;
    let byte = chunk[cursor] as number;
    while (byte !== CR) {
      const digit = byte - ZERO;
      if (!(digit >= 0 && digit <= 9)) return Number.NaN;
      number = number * 10 + digit;
      byte = chunk[++cursor] as number;
    }
    const digits = cursor - first;
    if (digits === 0 || digits > MAX_DIGITS || chunk[cursor + 1] !== LF || (negative && number === 0)) {
      return Number.NaN;
    }
    this.end = cursor + 2;
    return negative ? -number : number;
  }

  #integer(start: number): unknown {
    if (this.#mode.stringNumbers) return this.#integerText(start);
    const number = this.#number(start);
    return Number.isNaN(number) ? NOT_DECODED : number;
  }

  #integerText(start: number): unknown {
    const number = this.#number(start);
    return Number.isNaN(number) ? NOT_DECODED : this.#chunk.latin1Slice(start, this.end - 2);
  }

  #bulk(start: number): unknown {
    const length = this.#number(start);
    if (length === -1) return null;
    const { end } = this;
    const chunk = this.#chunk;
    const stop = end + length;
    if (!(length >= 0) || chunk[stop + 1] !== LF || chunk[stop] !== CR) return NOT_DECODED;
    this.end = stop + 2;
    return this.#utf8 ? chunk.utf8Slice(end, stop) : chunk.subarray(end, stop);
  }

  /** An array of `perElement` values an element: a map is decoded flat, as RESP2 has it. */
  #array(start: number, perElement: 1 | 2, depth: number): unknown {
    const count = this.#number(start);
    if (count === -1 && perElement === 1) return null;
    const length = count * perElement;
    if (!this.#fits(length, depth)) return NOT_DECODED;
    const values = new Array<unknown>(length);
    for (let index = 0; index < length; index += 1) {
      const value = this.#value(depth + 1);
      if (value === NOT_DECODED) return NOT_DECODED;
      values[index] = value;
    }
    return values;
  }

  /** A map under the resp3 mapping: a plain object, its keys strings in either encoding. */
  #map(start: number, depth: number): unknown {
    const count = this.#number(start);
    if (!this.#fits(count * 2, depth)) return NOT_DECODED;
    const object: Record<string, unknown> = {};
    const utf8 = this.#utf8;
    for (let index = 0; index < count; index += 1) {
      const keyType = this.#chunk[this.end];
      if (keyType !== BULK && keyType !== SIMPLE) return NOT_DECODED;
      this.#utf8 = true;
      const key = this.#value(depth + 1);
      this.#utf8 = utf8;
      if (typeof key !== 'string') return NOT_DECODED;
      const value = this.#value(depth + 1);
      if (value === NOT_DECODED) return NOT_DECODED;
      // Host: `decodeMapAsObject` keeps these two from reaching the prototype.
      if (key === '__proto__' || key === 'constructor') {
        Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
      } else {
        object[key] = value;
      }
    }
    return object;
  }

  /** Whether so many elements can be whole in the rest of the chunk: the count is the server's word. */
  #fits(length: number, depth: number): boolean {
    return length >= 0 && depth < MAX_DEPTH && length * MIN_ELEMENT_BYTES <= this.#chunk.length - this.end;
  }
}
