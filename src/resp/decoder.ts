/**
 * Replies to the values a host's own decoder and `Command#transformReply` would make of them, straight from the chunks.
 *
 * It decodes what it is sure of and leaves the rest: errors, pushes, numbers on which decoders differ, anything
 * malformed. What it leaves goes to the host, so that nothing is decoded in two ways. A reply that the end of a chunk has
 * cut is decoded up to there, and gone on with in the next chunk.
 *
 * RESP: types and forms, https://redis.io/docs/latest/develop/reference/protocol-spec.
 */
import { CutString } from './cut-string.js';

/** How the host's decoder turns replies into values on one connection. */
export interface ReplyMode {
  /** Whether the host's decoder knows the types of RESP3 (ioredis 6, whatever protocol was agreed on). */
  readonly resp3Types: boolean;
  readonly replyMapping: 'legacy' | 'resp3';
  readonly stringNumbers: boolean;
}

/** The reply is left to the host. */
export const NOT_DECODED: unique symbol = Symbol('left to the host');
/** The chunk ends within the reply: `resume` goes on in the next one. */
export const CUT: unique symbol = Symbol('cut by the end of the chunk');

const CR = 13;
const LF = 10;
const MINUS = 45;
const ZERO = 48;
const NINE = 57;

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
/** `$0\r\n\r\n`. */
const SHORTEST_STRING = 6;
/** Bytes of a string that is whole in its chunk, and more than any chunk has. */
const MAX_WHOLE_STRING = 10 ** 8;
/** `_\r\n`: no element is shorter, so no more room is set aside than what is there of the chunk can fill. */
const MIN_ELEMENT_BYTES = 3;
/** Elements announced in one reply; more are left to the host. */
const MAX_ELEMENTS = 2 ** 20;
/** Bytes of a line that chunks have cut: they are joined anew with each chunk. */
const MAX_CUT_LINE = 512;

/** What `#number` says of a line that is not whole; no number on the wire comes to it. */
const CUT_LINE = Number.POSITIVE_INFINITY;

const EMPTY = Buffer.alloc(0);

/** An aggregate that is not whole. */
interface OpenAggregate {
  readonly values: unknown[];
  /** Elements that have come. */
  filled: number;
  readonly length: number;
  /** Whether each even element is a key, and an object comes of it. */
  readonly keyed: boolean;
}

export class ReplyDecoder {
  /** Where the reply that was decoded last ends in its chunk. */
  end = 0;

  readonly #mode: ReplyMode;
  #chunk: Buffer = EMPTY;
  #utf8 = true;
  /** Elements announced in this reply. */
  #announced = 0;

  // ---- A reply that chunks have cut ----

  /** The innermost first. */
  #open: OpenAggregate[] = [];
  /** The element that was cut: a bulk string of known length, or the beginning of a line. */
  readonly #cutString = new CutString();
  #cutLine: Buffer = EMPTY;

  constructor(mode: ReplyMode) {
    this.#mode = mode;
  }

  /**
   * @param utf8 - strings as JavaScript strings, else as Buffers that share the chunk's memory, like the host's.
   * @returns the value, after which `end` is set; `NOT_DECODED`; or `CUT`, after which comes `resume` or `abandon`.
   */
  decode(chunk: Buffer, position: number, utf8: boolean): unknown {
    this.#chunk = chunk;
    this.end = position;
    // The one reply that most commands get, without the detour.
    const start = this.#wholeString();
    if (start >= 0) return utf8 ? chunk.utf8Slice(start, this.end - 2) : chunk.subarray(start, this.end - 2);
    this.#utf8 = utf8;
    this.#announced = 0;
    return this.#keepLine(this.#value(0));
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
    if (chunk[position] !== ARRAY) {
      const value = this.decode(chunk, position, false);
      if (value === CUT) this.abandon();
      return value === CUT ? NOT_DECODED : value;
    }
    this.#chunk = chunk;
    const count = this.#number(position + 1);
    if (count === -1) return null;
    if (!(count >= 0) || count * MIN_ELEMENT_BYTES > chunk.length - this.end) return NOT_DECODED;
    const values = new Array<unknown>(count);
    for (let index = 0; index < count; index += 1) {
      const value = this.decode(chunk, this.end, encodings.utf8At(index, count));
      if (value === CUT) this.abandon();
      if (value === NOT_DECODED || value === CUT) return NOT_DECODED;
      values[index] = value;
    }
    return values;
  }

  /** Goes on with the reply that was `CUT`. Returns as `decode` does. */
  resume(chunk: Buffer): unknown {
    const value = this.#cutString.missing > 0 ? this.#resumeString(chunk) : this.#resumeLine(chunk);
    if (value === NOT_DECODED) this.abandon();
    return value;
  }

  /** Bytes that are known to be missing of a reply that was `CUT`. */
  get missing(): number {
    return this.#cutString.missing;
  }

  /**
   * Whether the host might answer before the last byte of a reply that was `CUT`. Host: ioredis 6 answers at a carriage
   * return, to some types even before it, whenever the rest of the line's end comes.
   */
  get almostWhole(): boolean {
    const { missing } = this.#cutString;
    if (missing > 1 || (missing === 0 && this.#cutLine.length === 0)) return false;
    return this.#open.every(({ filled, length }) => filled === length - 1);
  }

  /** Forgets a reply that was `CUT`. */
  abandon(): void {
    this.#open = [];
    this.#cutLine = EMPTY;
    this.#cutString.discard();
    this.#chunk = EMPTY;
  }

  #resumeString(chunk: Buffer): unknown {
    const string = this.#cutString;
    const end = string.missing;
    string.add(chunk);
    if (string.missing > 0) return CUT;
    const value = string.take();
    if (value === undefined) return NOT_DECODED;
    this.#chunk = chunk;
    this.end = end;
    return this.#fillOpen(value);
  }

  #resumeLine(chunk: Buffer): unknown {
    const line = this.#cutLine;
    this.#chunk = line.length === 0 ? chunk : Buffer.concat([line, chunk]);
    this.end = 0;
    const value = this.#fillOpen(undefined);
    this.end -= line.length;
    return value;
  }

  /** Goes on in the aggregates that are open, from the innermost to the reply itself. */
  #fillOpen(firstValue: unknown): unknown {
    const open = this.#open;
    this.#open = [];
    let value = firstValue;
    for (let index = 0; index < open.length; index += 1) {
      const { values, filled, length, keyed } = open[index] as OpenAggregate;
      if (value !== undefined) values[filled] = value;
      value = this.#fill(values, value === undefined ? filled : filled + 1, length, keyed, open.length - 1 - index);
      if (typeof value !== 'symbol') continue;
      this.#open.push(...open.slice(index + 1));
      break;
    }
    return this.#keepLine(value);
  }

  /**
   * Of an aggregate that was cut within a line, or between two elements, keeps the beginning of the next one. A line by
   * itself, which is short, is not worth it.
   */
  #keepLine(value: unknown): unknown {
    const inLine = value === CUT && this.#cutString.missing === 0;
    this.#cutLine = inLine ? this.#chunk.subarray(this.end) : EMPTY;
    if (!inLine) return value;
    if (this.#open.length > 0 && this.#cutLine.length <= MAX_CUT_LINE) return CUT;
    this.abandon();
    return NOT_DECODED;
  }

  /**
   * Where the content of a bulk string begins, `end` set behind its line's end; -1 if there is anything else at `end`.
   * Nothing is read beyond the chunk, which would make every read of it slower.
   */
  #wholeString(): number {
    const chunk = this.#chunk;
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

  /** On `CUT`, `end` is where the element that was cut begins. */
  #value(depth: number): unknown {
    const chunk = this.#chunk;
    if (this.end >= chunk.length) return CUT;
    const start = this.end + 1;
    const type = chunk[this.end] as number;
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

  #resp3Value(type: number, start: number, depth: number): unknown {
    const { replyMapping, stringNumbers } = this.#mode;
    const legacy = replyMapping === 'legacy';
    switch (type) {
      case NULL: {
        const nothing = this.#line(start, true);
        return nothing === '' ? null : nothing === CUT ? CUT : NOT_DECODED;
      }
      case BOOLEAN: {
        const letter = this.#line(start, true);
        if (letter !== 't' && letter !== 'f') return letter === CUT ? CUT : NOT_DECODED;
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

  #line(start: number, utf8: boolean): string | Buffer | typeof CUT | typeof NOT_DECODED {
    const chunk = this.#chunk;
    const lineEnd = chunk.indexOf(CR, start);
    if (lineEnd < 0 || lineEnd + 1 === chunk.length) return CUT;
    if (chunk[lineEnd + 1] !== LF) return NOT_DECODED;
    this.end = lineEnd + 2;
    return utf8 ? chunk.utf8Slice(start, lineEnd) : chunk.subarray(start, lineEnd);
  }

  /** A safe integer; NaN for anything else: `-0`, too many digits, another sign; `CUT_LINE` if the line is not whole. */
  #number(start: number): number {
    const chunk = this.#chunk;
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
    if (cursor + 1 >= limit) return CUT_LINE;
    const digits = cursor - first;
    if (chunk[cursor + 1] !== LF || digits === 0 || digits > MAX_DIGITS || (negative && number === 0)) {
      return Number.NaN;
    }
    this.end = cursor + 2;
    return negative ? -number : number;
  }

  #integer(start: number): unknown {
    const number = this.#number(start);
    if (!Number.isFinite(number)) return notWhole(number);
    return this.#mode.stringNumbers ? this.#chunk.latin1Slice(start, this.end - 2) : number;
  }

  #bulk(start: number): unknown {
    const length = this.#number(start);
    if (length === -1) return null;
    if (!(length >= 0 && length !== CUT_LINE)) return notWhole(length);
    const { end } = this;
    const chunk = this.#chunk;
    const stop = end + length;
    if (stop + 2 > chunk.length) {
      this.#cutString.begin(chunk, end, length, this.#utf8);
      return CUT;
    }
    if (chunk[stop] !== CR || chunk[stop + 1] !== LF) return NOT_DECODED;
    this.end = stop + 2;
    return this.#utf8 ? chunk.utf8Slice(end, stop) : chunk.subarray(end, stop);
  }

  /** An array of `perElement` values an element: a map is decoded flat, as RESP2 has it. */
  #array(start: number, perElement: 1 | 2, depth: number): unknown {
    const count = this.#number(start);
    if (count === -1 && perElement === 1) return null;
    return this.#aggregate(count, count * perElement, false, depth);
  }

  /** A map under the resp3 mapping. */
  #map(start: number, depth: number): unknown {
    const count = this.#number(start);
    return this.#aggregate(count, count * 2, true, depth);
  }

  #aggregate(count: number, length: number, keyed: boolean, depth: number): unknown {
    if (!(length >= 0 && length <= MAX_ELEMENTS) || depth >= MAX_DEPTH) return notWhole(count);
    this.#announced += length;
    if (this.#announced > MAX_ELEMENTS) return NOT_DECODED;
    const room = Math.floor((this.#chunk.length - this.end) / MIN_ELEMENT_BYTES);
    return this.#fill(new Array<unknown>(Math.min(length, room)), 0, length, keyed, depth);
  }

  #fill(values: unknown[], filled: number, length: number, keyed: boolean, depth: number): unknown {
    const chunk = this.#chunk;
    for (let index = filled; index < length; index += 1) {
      const isKey = keyed && index % 2 === 0;
      const start = this.#wholeString();
      if (start >= 0) {
        const stop = this.end - 2;
        values[index] = isKey || this.#utf8 ? this.#text(start, stop) : chunk.subarray(start, stop);
        continue;
      }
      const value = isKey ? this.#key(depth + 1) : this.#value(depth + 1);
      if (typeof value === 'symbol') {
        if (value === CUT) this.#open.push({ values, filled: index, length, keyed });
        return value;
      }
      values[index] = value;
    }
    return keyed ? objectOf(values) : values;
  }

  /** The text of a string among others. */
  #text(start: number, stop: number): string {
    return this.#chunk.utf8Slice(start, stop);
  }

  /** A key of a map under the resp3 mapping: a string in either encoding. */
  #key(depth: number): string | typeof CUT | typeof NOT_DECODED {
    if (this.end >= this.#chunk.length) return CUT;
    const type = this.#chunk[this.end];
    if (type !== BULK && type !== SIMPLE) return NOT_DECODED;
    const utf8 = this.#utf8;
    this.#utf8 = true;
    const key = this.#value(depth);
    this.#utf8 = utf8;
    return typeof key === 'string' || key === CUT ? key : NOT_DECODED;
  }
}

function notWhole(number: number): typeof CUT | typeof NOT_DECODED {
  return number === CUT_LINE ? CUT : NOT_DECODED;
}

/** Keys and values by turns as a plain object. */
function objectOf(values: readonly unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let index = 0; index < values.length; index += 2) {
    const key = values[index] as string;
    const value = values[index + 1];
    // Host: `decodeMapAsObject` keeps these two from reaching the prototype.
    if (key === '__proto__' || key === 'constructor') {
      Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
    } else {
      object[key] = value;
    }
  }
  return object;
}
