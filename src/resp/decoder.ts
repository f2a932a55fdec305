/**
 * Decodes replies directly from the chunks, to the same values as the host's own decoder and `Command#transformReply`.
 *
 * Leaves some replies to the host: errors, pushes, numbers on which decoders differ, malformed bytes. A split reply is
 * decoded up to the end of each chunk, and continued in the next one. Its bytes are kept, so that they can be handed to
 * the host at any time as if they had just arrived. Split replies of a single line, and to EXEC, are left to the host.
 *
 * RESP: types and forms, https://redis.io/docs/latest/develop/reference/protocol-spec.
 */
import { isAscii } from 'node:buffer';

/** An array, set or map of which some elements have not been decoded. */
class OpenAggregate {
  /** Number of elements that have been decoded. */
  filled = 0;
  readonly values: unknown[];

  /** @param room - the most elements that the chunk can contain: no memory is reserved for more. */
  constructor(
    readonly length: number,
    room: number,
    /** Whether it becomes an object: each even element is a key. */
    readonly keyed: boolean,
    /** Whether its elements are alternating field names and values, with names as text. */
    readonly paired: boolean,
  ) {
    this.values = new Array<unknown>(Math.min(length, room));
  }
}

/** The reply is left to the host. */
export const NOT_DECODED: unique symbol = Symbol('left to the host');
/** The chunk ends within the reply: `resume` continues in the next one. */
export const INCOMPLETE: unique symbol = Symbol('cut by the end of the chunk');

/** How the host's decoder converts replies to values on one connection. */
export interface ReplyMode {
  /** Whether the host's decoder supports the types of RESP3 (ioredis 6, under any protocol). */
  readonly resp3Types: boolean;
  readonly replyMapping: 'legacy' | 'resp3';
  readonly stringNumbers: boolean;
}

const CR = 13;
const LF = 10;
const MINUS = 45;
const ZERO = 48;
const NINE = 57;

const BULK = 36; // $
const SIMPLE = 43; // +
const INTEGER = 58; // :
const ARRAY = 42; // *
const NULL = 95; // _
const DOUBLE = 44; // ,
const BOOLEAN = 35; // #
const MAP = 37; // %
const SET = 126; // ~

const MAX_DEPTH = 16;
/** The shortest element is `_\r\n`, so memory is never reserved for more elements than the chunk can contain. */
const MIN_ELEMENT_BYTES = 3;
/** The most elements announced in one reply; larger ones are left to the host. */
const MAX_ELEMENTS = 2 ** 20;
/** The most bytes kept of a split line, because each chunk copies them again. */
const MAX_CUT_LINE = 512;
/** The most bytes kept of a split reply; longer ones are left to the host. */
export const LONGEST_ASSEMBLED = 64 * 1024 * 1024;
/** Up to this many bytes, memory for a split string is allocated at once. For a longer one it grows as bytes arrive. */
const MAX_PREALLOCATED = 2 * 1024 * 1024;

/**
 * Node keeps longer Latin-1 text outside V8's heap (`EXTERN_APEX`, src/string_bytes.cc). That is faster with a small
 * heap, but V8 runs a full collection for each 64 MB of such text: with two million live objects, reading values of 1
 * MiB took 7 ms of CPU each instead of 1.5.
 */
const EXTERNAL_TEXT = 0xf_be_e9;

/** The most digits on which all decoders agree: beyond 2^53 the host's sum of `n * 10 + d` rounds differently. */
const MAX_DIGITS = 15;
/** `$0\r\n\r\n`. */
const MIN_STRING_BYTES = 6;
/** More bytes than any chunk has, so a longer string must be split. */
const MAX_WHOLE_STRING = 10 ** 8;
/** Returned by `#number` for a split line; no number on the wire has this value. */
const INCOMPLETE_LINE = Number.POSITIVE_INFINITY;

/** V8 copies substrings of up to this many characters; longer ones keep the whole text in memory. */
const MAX_COPIED_TEXT = 12;
/** Bytes read at once for several short strings. */
const SHARED_TEXT = 128;

/** The number, and the most bytes, of field names kept to be compared with those of the next hash. */
const MAX_NAMES = 1024;
const MAX_NAME_BYTES = 64;

const EMPTY: Buffer = Buffer.alloc(0);

/**
 * Memory for a split string that is a whole reply. All connections share it, because paging in fresh memory costs more
 * than copying into it.
 */
let spare: Buffer | undefined;

/** Never reads beyond the end of a chunk, after which V8 would make all reads slower. */
export class ReplyDecoder {
  /** The end of the last read element in its chunk. */
  end = 0;
  #chunk = EMPTY;
  /** A part of the chunk as text, from which short strings are cut; see `#text`. */
  #sharedText = '';
  #textStart = 0;
  #textEnd = 0;
  /** The field names of the last hash; see `#name`. */
  readonly #names: string[] = [];
  readonly #mode: ReplyMode;
  #utf8 = true;
  /** Whether names and values alternate in the reply's array. */
  #paired = false;
  /** The number of elements announced in this reply. */
  #announced = 0;

  // ---- A split reply ----

  /** The bytes of the reply before the split element, and their number. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** The open aggregates of the reply, the innermost first. */
  #open: OpenAggregate[] = [];
  /** The bytes of the split element: the beginning of a line, or of a string with memory for its rest. */
  #element = EMPTY;
  #elementBytes = 0;
  /** The number of missing bytes of the string, including its line end; 0 for a line. */
  #missing = 0;

  constructor(
    mode: ReplyMode,
    /** Returns bytes of a chunk in memory that will not be reused. */
    readonly keep: (bytes: Buffer) => Buffer = (bytes) => bytes,
  ) {
    this.#mode = mode;
  }

  /**
   * @param utf8 - strings become JavaScript strings; if false, Buffers that share the chunk's memory, like the host's.
   * @param paired - field names and values alternate in an array, as in a map.
   * @returns the value, which ends at `end`; `NOT_DECODED`; or `INCOMPLETE`, after which the whole chunk was consumed,
   *   and `resume`, `release` or `discard` must be called.
   */
  decode(chunk: Buffer, position: number, utf8: boolean, paired = false): unknown {
    this.#startAt(chunk, position);
    // A shortcut for the most frequent reply.
    const start = this.#wholeString();
    if (start >= 0) return utf8 ? chunk.utf8Slice(start, this.end - 2) : chunk.subarray(start, this.end - 2);
    this.#utf8 = utf8;
    this.#paired = paired;
    this.#announced = 0;
    const value = this.#value(0);
    if (value !== INCOMPLETE || this.#keepFrom(position)) return value;
    this.discard();
    return NOT_DECODED;
  }

  /**
   * Decodes the reply to EXEC, an array whose elements each have their own encoding. Does not decode other or split
   * replies.
   *
   * @param encodings - whether the strings of an element become JavaScript strings.
   */
  decodeElements(
    chunk: Buffer,
    position: number,
    encodings: { utf8At(index: number, count: number): boolean },
  ): unknown {
    if (chunk[position] !== ARRAY) return NOT_DECODED;
    this.#startAt(chunk, position);
    const count = this.#number(position + 1);
    if (count === -1) return null;
    if (!(count >= 0) || count * MIN_ELEMENT_BYTES > chunk.length - this.end) return NOT_DECODED;
    const values = new Array<unknown>(count);
    for (let index = 0; index < count; index += 1) {
      const value = this.decode(chunk, this.end, encodings.utf8At(index, count));
      if (value === INCOMPLETE) this.discard();
      if (value === NOT_DECODED || value === INCOMPLETE) return NOT_DECODED;
      values[index] = value;
    }
    return values;
  }

  /**
   * Continues an `INCOMPLETE` reply; returns the same as `decode`.
   *
   * After `NOT_DECODED`, the host must get the bytes of `release`, then the chunk from `end` on.
   */
  resume(chunk: Buffer): unknown {
    const joined = this.#missing === 0 ? this.#elementBytes : 0;
    const taken = Math.min(this.#missing, chunk.length);
    let value: unknown;
    if (this.#missing > 0) value = this.#addToString(chunk.subarray(0, taken));
    if (typeof value !== 'symbol') {
      if (joined > 0) this.#startAt(Buffer.concat([this.#element, chunk]), 0);
      else this.#startAt(this.#utf8 ? chunk : this.keep(chunk), taken);
      value = this.#fillOpen(value);
      if (value === INCOMPLETE && !this.#keepFrom(taken)) value = NOT_DECODED;
    }
    if (typeof value === 'symbol') {
      this.end = taken;
    } else {
      this.end -= joined;
      this.discard();
    }
    return value;
  }

  /** Returns the bytes of an `INCOMPLETE` reply, which is left to the host from now on. */
  release(): Buffer[] {
    const pieces = [...this.#pieces, this.#element.subarray(0, this.#elementBytes)];
    this.discard();
    return pieces.filter(({ length }) => length > 0);
  }

  /** Drops an `INCOMPLETE` reply. */
  discard(): void {
    this.#open = [];
    this.#pieces = [];
    this.#bytes = 0;
    this.#element = EMPTY;
    this.#elementBytes = 0;
    this.#missing = 0;
    this.#chunk = EMPTY;
  }

  /**
   * Keeps the bytes of a split reply from `position` on.
   *
   * @returns false if the reply is left to the host, because it is too long, or a single line.
   */
  #keepFrom(position: number): boolean {
    const { end } = this;
    const chunk = this.#chunk;
    const missing = this.#missing;
    const bytes = chunk.length - end;
    if (missing === 0 && (this.#open.length === 0 || bytes > MAX_CUT_LINE)) return false;
    if (this.#bytes + chunk.length - position + missing > LONGEST_ASSEMBLED) return false;
    if (bytes > 0 && this.#lacksTerminatorOnly) return false;
    this.#pieces.push(this.keep(position === 0 && bytes === 0 ? chunk : chunk.subarray(position, end)));
    this.#bytes += end - position;
    this.#element = bytes === 0 ? EMPTY : this.#memoryFor(bytes, bytes + missing);
    this.#elementBytes = chunk.copy(this.#element, 0, end);
    return true;
  }

  /**
   * Whether the host might answer before the last byte of the reply. Host: ioredis 6 answers at a carriage return, or
   * for some types before it, without waiting for the rest of the line end.
   */
  get #lacksTerminatorOnly(): boolean {
    return this.#missing <= 1 && this.#open.every(({ filled, length }) => filled === length - 1);
  }

  /**
   * Memory for the split element, of which `bytes` of `length` have arrived. Does not trust the length of a long one.
   */
  #memoryFor(bytes: number, length: number): Buffer {
    if (length > MAX_PREALLOCATED) return Buffer.allocUnsafeSlow(Math.min(2 * bytes, length));
    if (!this.#utf8 || this.#open.length > 0) return Buffer.allocUnsafe(length);
    const memory = spare;
    if (memory === undefined || memory.length < length) return Buffer.allocUnsafeSlow(length);
    spare = undefined;
    return memory;
  }

  /** Adds to the split string; returns its value when it is complete. */
  #addToString(bytes: Buffer): unknown {
    const before = this.#elementBytes;
    const after = before + bytes.length;
    this.#missing -= bytes.length;
    if (after > this.#element.length) {
      const shorter = this.#element;
      this.#element = this.#memoryFor(after, after + this.#missing);
      shorter.copy(this.#element, 0, 0, before);
    }
    const memory = this.#element;
    bytes.copy(memory, before);
    this.#elementBytes = after;
    if (this.#missing > 0) return this.#lacksTerminatorOnly ? NOT_DECODED : INCOMPLETE;
    this.#startAt(memory.subarray(0, after), 0);
    const [innermost] = this.#open;
    const value = innermost?.keyed && innermost.filled % 2 === 0 ? this.#key(0) : this.#value(0);
    if (value === NOT_DECODED) return value;
    if (this.#open.length > 0) {
      this.#pieces.push(this.#chunk);
      this.#bytes += after;
    } else if (this.#utf8 && memory.length <= MAX_PREALLOCATED && memory.length > (spare?.length ?? 0)) {
      spare = memory;
    }
    this.#element = EMPTY;
    this.#elementBytes = 0;
    return value;
  }

  /** Continues the open aggregates, from the innermost to the reply itself. */
  #fillOpen(firstValue: unknown): unknown {
    const open = this.#open;
    this.#open = [];
    let value = firstValue;
    for (let index = 0; index < open.length; index += 1) {
      const aggregate = open[index] as OpenAggregate;
      if (value !== undefined) {
        aggregate.values[aggregate.filled] = value;
        aggregate.filled += 1;
      }
      value = this.#fill(aggregate, open.length - 1 - index);
      if (typeof value !== 'symbol') continue;
      this.#open.push(...open.slice(index + 1));
      break;
    }
    return value;
  }

  /** The element at `end`. On `INCOMPLETE`, `end` stays at the start of the split element. */
  #value(depth: number): unknown {
    const chunk = this.#chunk;
    if (this.end >= chunk.length) return INCOMPLETE;
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
        return this.#aggregate(type, start, depth);
    }
    const { resp3Types, replyMapping, stringNumbers } = this.#mode;
    if (!resp3Types) return NOT_DECODED;
    const legacy = replyMapping === 'legacy';
    switch (type) {
      case NULL: {
        const nothing = this.#line(start, true);
        return nothing === '' ? null : nothing === INCOMPLETE ? INCOMPLETE : NOT_DECODED;
      }
      case BOOLEAN: {
        const letter = this.#line(start, true);
        if (letter !== 't' && letter !== 'f') return letter === INCOMPLETE ? INCOMPLETE : NOT_DECODED;
        return legacy ? Number(letter === 't') : letter === 't';
      }
      case DOUBLE:
        // Under the resp3 mapping a double becomes a number, but host versions convert it differently.
        if (stringNumbers) return this.#line(start, true);
        return legacy ? this.#line(start, this.#utf8) : NOT_DECODED;
      case SET:
      case MAP:
        return this.#aggregate(type, start, depth);
      default:
        return NOT_DECODED;
    }
  }

  #integer(start: number): unknown {
    const number = this.#number(start);
    if (!Number.isFinite(number)) return splitOrInvalid(number);
    return this.#mode.stringNumbers ? this.#chunk.latin1Slice(start, this.end - 2) : number;
  }

  #bulk(start: number): unknown {
    const length = this.#number(start);
    if (length === -1) return null;
    if (!(length >= 0 && length !== INCOMPLETE_LINE)) return splitOrInvalid(length);
    const { end } = this;
    const chunk = this.#chunk;
    const stop = end + length;
    if (stop + 2 > chunk.length) {
      this.end = start - 1;
      this.#missing = stop + 2 - chunk.length;
      return INCOMPLETE;
    }
    if (chunk[stop] !== CR || chunk[stop + 1] !== LF) return NOT_DECODED;
    this.end = stop + 2;
    const content = chunk.subarray(end, stop);
    if (!this.#utf8) return content;
    // Both give the same text for ASCII.
    return length < EXTERNAL_TEXT && isAscii(content) ? content.latin1Slice(0, length) : content.utf8Slice(0, length);
  }

  /** An array, set or map. A map becomes an object under the resp3 mapping, an array as in RESP2 under the other. */
  #aggregate(type: number, start: number, depth: number): unknown {
    const isMap = type === MAP;
    const count = this.#number(start);
    if (count === -1 && !isMap) return null;
    const length = isMap ? 2 * count : count;
    if (!(length >= 0 && length <= MAX_ELEMENTS) || depth >= MAX_DEPTH) return splitOrInvalid(count);
    this.#announced += length;
    if (this.#announced > MAX_ELEMENTS) return NOT_DECODED;
    const room = Math.floor((this.#chunk.length - this.end) / MIN_ELEMENT_BYTES);
    const keyed = isMap && this.#mode.replyMapping === 'resp3';
    const paired = isMap || (this.#paired && depth === 0);
    return this.#fill(new OpenAggregate(length, room, keyed, paired && (keyed || this.#utf8)), depth);
  }

  /** Decodes the missing elements. */
  #fill(open: OpenAggregate, depth: number): unknown {
    const chunk = this.#chunk;
    const { values, length, keyed, paired } = open;
    for (let index = open.filled; index < length; index += 1) {
      const isKey = keyed && index % 2 === 0;
      const start = this.#wholeString();
      if (start >= 0) {
        const stop = this.end - 2;
        if (paired && index % 2 === 0) values[index] = this.#name(index >> 1, start, stop);
        else values[index] = isKey || this.#utf8 ? this.#text(start, stop) : chunk.subarray(start, stop);
        continue;
      }
      const value = isKey ? this.#key(depth + 1) : this.#value(depth + 1);
      if (typeof value === 'symbol') {
        open.filled = index;
        if (value === INCOMPLETE) this.#open.push(open);
        return value;
      }
      values[index] = value;
    }
    return keyed ? objectOf(values) : values;
  }

  /**
   * The name of a hash's field. Most hashes have the same fields as the last one, in the same order. Comparing a name
   * with the bytes costs a quarter of reading it, and V8 has it in its table of property names already.
   */
  #name(index: number, start: number, stop: number): string {
    const known = this.#names[index];
    if (known !== undefined && isText(known, this.#chunk, start, stop)) return known;
    const name = this.#text(start, stop);
    // Only ASCII has as many characters as bytes; or invalid UTF-8, whose U+FFFD equals no byte.
    if (index < MAX_NAMES && name.length <= MAX_NAME_BYTES && name.length === stop - start) this.#names[index] = name;
    return name;
  }

  /** A key of a map under the resp3 mapping: a string in either encoding. */
  #key(depth: number): string | typeof INCOMPLETE | typeof NOT_DECODED {
    const utf8 = this.#utf8;
    this.#utf8 = true;
    const type = this.#chunk[this.end];
    const key = type === undefined || type === BULK || type === SIMPLE ? this.#value(depth) : NOT_DECODED;
    this.#utf8 = utf8;
    return typeof key === 'string' || key === INCOMPLETE ? key : NOT_DECODED;
  }

  // ---- Lines and strings ----

  /** Starts reading `chunk` at `position`. */
  #startAt(chunk: Buffer, position: number): void {
    this.#chunk = chunk;
    this.end = position;
    this.#textEnd = 0;
  }

  /** The start of the content of the bulk string at `end`, which moves past it. -1 if there is no complete string. */
  #wholeString(): number {
    const chunk = this.#chunk;
    const limit = chunk.length;
    let cursor = this.end;
    if (cursor + MIN_STRING_BYTES > limit || chunk[cursor] !== BULK) return -1;
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

  /** A safe integer; NaN for anything else (`-0`, too many digits, a plus sign); `INCOMPLETE_LINE` for a split line. */
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
    if (cursor + 1 >= limit) return INCOMPLETE_LINE;
    const digits = cursor - first;
    if (chunk[cursor + 1] !== LF || digits === 0 || digits > MAX_DIGITS || (negative && number === 0)) {
      return Number.NaN;
    }
    this.end = cursor + 2;
    return negative ? -number : number;
  }

  #line(start: number, utf8: boolean): string | Buffer | typeof INCOMPLETE | typeof NOT_DECODED {
    const chunk = this.#chunk;
    const lineEnd = chunk.indexOf(CR, start);
    if (lineEnd < 0 || lineEnd + 1 === chunk.length) return INCOMPLETE;
    if (chunk[lineEnd + 1] !== LF) return NOT_DECODED;
    this.end = lineEnd + 2;
    return utf8 ? chunk.utf8Slice(start, lineEnd) : chunk.subarray(start, lineEnd);
  }

  /**
   * The text of one of many strings. Most of the cost of a short one is the call into Node, so several are read at once
   * and cut apart, up to the length that V8 copies.
   */
  #text(start: number, stop: number): string {
    const chunk = this.#chunk;
    if (stop - start > MAX_COPIED_TEXT) return chunk.utf8Slice(start, stop);
    if (stop > this.#textEnd) {
      this.#textStart = start;
      this.#textEnd = Math.min(start + SHARED_TEXT, chunk.length);
      this.#sharedText = chunk.utf8Slice(start, this.#textEnd);
    }
    const text = this.#sharedText;
    const offset = start - this.#textStart;
    // If there are as many characters as bytes, each character is one byte, so offsets agree.
    return text.length === this.#textEnd - this.#textStart
      ? text.substring(offset, offset + stop - start)
      : chunk.utf8Slice(start, stop);
  }
}

function isText(text: string, chunk: Buffer, start: number, stop: number): boolean {
  if (text.length !== stop - start) return false;
  for (let index = 0, position = start; position < stop; index += 1, position += 1) {
    if (chunk[position] !== text.charCodeAt(index)) return false;
  }
  return true;
}

function splitOrInvalid(number: number): typeof INCOMPLETE | typeof NOT_DECODED {
  return number === INCOMPLETE_LINE ? INCOMPLETE : NOT_DECODED;
}

/** Converts alternating keys and values to a plain object, like the host under the resp3 mapping. */
function objectOf(values: readonly unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let index = 0; index < values.length; index += 2) {
    const key = values[index] as string;
    const value = values[index + 1];
    // Host: `decodeMapAsObject` defines these two, so that they do not reach the prototype.
    if (key === '__proto__' || key === 'constructor') {
      Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
    } else {
      object[key] = value;
    }
  }
  return object;
}
