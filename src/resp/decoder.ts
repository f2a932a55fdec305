/**
 * Decodes replies to the same values as the host's own decoder and `Command#transformReply`, straight from the chunks.
 *
 * Some replies are left to the host, so that nothing is decoded in two ways: errors, pushes, numbers on which decoders
 * differ, malformed bytes. A reply that is split over several chunks is decoded up to the end of each chunk, and
 * continued in the next one.
 *
 * RESP: types and forms, https://redis.io/docs/latest/develop/reference/protocol-spec.
 */
import { BULK, ChunkReader, INCOMPLETE, INCOMPLETE_LINE, NOT_DECODED, PartialString } from './chunk-reader.js';
import { FieldNames } from './field-names.js';

/** Alternating keys and values as a plain object, as the host makes it of a map under the resp3 mapping. */
export function objectOf(values: readonly unknown[]): Record<string, unknown> {
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

/** An array, a set or a map of which some elements have not been decoded. */
export class OpenAggregate {
  /** Number of elements that have been decoded. */
  filled = 0;
  readonly values: unknown[];

  /** @param room - the most elements that the chunk can hold: no memory is reserved for more. */
  constructor(
    readonly length: number,
    room: number,
    /** Whether it becomes an object: each even element is a key. */
    readonly keyed: boolean,
    /** Of the fields of a hash, whose elements are names and values in turn; undefined for others. */
    readonly names: FieldNames | undefined,
  ) {
    this.values = new Array<unknown>(Math.min(length, room));
  }

  add(value: unknown): void {
    this.values[this.filled] = value;
    this.filled += 1;
  }

  get lacksLastElement(): boolean {
    return this.filled === this.length - 1;
  }

  /** What it becomes when all elements are there. */
  get whole(): unknown {
    return this.keyed ? objectOf(this.values) : this.values;
  }
}

export { INCOMPLETE, NOT_DECODED };

/** How the host's decoder turns replies into values on one connection. */
export interface ReplyMode {
  /** Whether the host's decoder knows the types of RESP3 (ioredis 6, whatever protocol was agreed on). */
  readonly resp3Types: boolean;
  readonly replyMapping: 'legacy' | 'resp3';
  readonly stringNumbers: boolean;
}

const CR = 13;
const LF = 10;

const SIMPLE = 43; // +
const INTEGER = 58; // :
const ARRAY = 42; // *
const NULL = 95; // _
const DOUBLE = 44; // ,
const BOOLEAN = 35; // #
const MAP = 37; // %
const SET = 126; // ~

const MAX_DEPTH = 16;
/** `_\r\n`: no element is shorter. So an array is never allocated for more elements than the chunk can hold. */
const MIN_ELEMENT_BYTES = 3;
/** Elements announced in one reply; more are left to the host. */
const MAX_ELEMENTS = 2 ** 20;
/** Bytes of a split line that are kept: they are joined again with each chunk. */
const MAX_CUT_LINE = 512;

const EMPTY = Buffer.alloc(0);

export class ReplyDecoder extends ChunkReader {
  readonly #mode: ReplyMode;
  #utf8 = true;
  /** Whether the reply's array has names and values in turn. */
  #paired = false;
  /** Number of elements announced in this reply. */
  #announced = 0;

  // ---- A reply that is split over several chunks ----

  /** The innermost first. */
  #open: OpenAggregate[] = [];
  /** The element that was split: a bulk string of known length, or the beginning of a line. */
  readonly #cutString: PartialString;
  #cutLine: Buffer = EMPTY;

  /** @param keep - returns bytes of a chunk in memory that is not used again. */
  constructor(mode: ReplyMode, keep: (bytes: Buffer) => Buffer = (bytes) => bytes) {
    super(EMPTY);
    this.#mode = mode;
    this.#cutString = new PartialString(keep);
  }

  /**
   * @param utf8 - strings as JavaScript strings, else as Buffers that share the chunk's memory, like the host's.
   * @param paired - an array has names of fields and their values in turn, as a map has.
   * @returns the value, after which `end` is set; `NOT_DECODED`; or `INCOMPLETE`, after which comes `resume` or `abandon`.
   */
  decode(chunk: Buffer, position: number, utf8: boolean, paired = false): unknown {
    this.open(chunk, position);
    // The most frequent reply takes the short way.
    const start = this.wholeString();
    if (start >= 0) return utf8 ? chunk.utf8Slice(start, this.end - 2) : chunk.subarray(start, this.end - 2);
    this.#utf8 = utf8;
    this.#paired = paired;
    this.#announced = 0;
    const value = this.#value(0);
    return value === INCOMPLETE ? this.#cut() : value;
  }

  /**
   * Decodes the reply to EXEC: null, or an array whose elements each have their own encoding. A split reply is not
   * decoded.
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
      if (value === INCOMPLETE) this.abandon();
      return value === INCOMPLETE ? NOT_DECODED : value;
    }
    this.open(chunk, position);
    const count = this.number(position + 1);
    if (count === -1) return null;
    if (!(count >= 0) || count * MIN_ELEMENT_BYTES > chunk.length - this.end) return NOT_DECODED;
    const values = new Array<unknown>(count);
    for (let index = 0; index < count; index += 1) {
      const value = this.decode(chunk, this.end, encodings.utf8At(index, count));
      if (value === INCOMPLETE) this.abandon();
      if (value === NOT_DECODED || value === INCOMPLETE) return NOT_DECODED;
      values[index] = value;
    }
    return values;
  }

  /** Continues with the reply that was `INCOMPLETE`; returns as `decode` does. */
  resume(chunk: Buffer): unknown {
    const value = this.#cutString.missing > 0 ? this.#resumeString(chunk) : this.#resumeLine(chunk);
    if (value === NOT_DECODED) this.abandon();
    return value;
  }

  /** The number of bytes that are known to be missing from a reply that was `INCOMPLETE`. */
  get missing(): number {
    return this.#cutString.missing;
  }

  /**
   * Whether the host might answer before the last byte of a reply that was `INCOMPLETE`. Host: ioredis 6 answers at a carriage
   * return, for some types even before it, without waiting for the rest of the line end.
   */
  get lacksTerminatorOnly(): boolean {
    const { missing } = this.#cutString;
    if (missing > 1 || (missing === 0 && this.#cutLine.length === 0)) return false;
    return this.#open.every(({ lacksLastElement }) => lacksLastElement);
  }

  /** If a reply that was `INCOMPLETE` is a single string: the copy of what the last chunk had of it, valid until it is whole. */
  get lastCopied(): Buffer | undefined {
    return this.#open.length === 0 ? this.#cutString.lastCopied : undefined;
  }

  /** Forgets a reply that was `INCOMPLETE`. */
  abandon(): void {
    this.#open = [];
    this.#cutLine = EMPTY;
    this.#cutString.discard();
    this.chunk = EMPTY;
  }

  #resumeString(chunk: Buffer): unknown {
    const string = this.#cutString;
    const end = string.missing;
    string.add(chunk);
    if (string.missing > 0) return INCOMPLETE;
    const value = string.take();
    if (value === undefined) return NOT_DECODED;
    this.open(chunk, end);
    return this.#fillOpen(value);
  }

  #resumeLine(chunk: Buffer): unknown {
    const line = this.#cutLine;
    this.#cutLine = EMPTY;
    this.open(line.length === 0 ? chunk : Buffer.concat([line, chunk]), 0);
    const value = this.#fillOpen(undefined);
    this.end -= line.length;
    return value;
  }

  /** Continues with the open aggregates, from the innermost to the reply itself. */
  #fillOpen(firstValue: unknown): unknown {
    const open = this.#open;
    this.#open = [];
    let value = firstValue;
    for (let index = 0; index < open.length; index += 1) {
      const aggregate = open[index] as OpenAggregate;
      if (value !== undefined) aggregate.add(value);
      value = this.#fill(aggregate, open.length - 1 - index);
      if (typeof value !== 'symbol') continue;
      this.#open.push(...open.slice(index + 1));
      break;
    }
    return value === INCOMPLETE ? this.#cut() : value;
  }

  /**
   * The chunk ends within the reply. If that is within a line of an aggregate, or between two elements, keeps the
   * beginning of the next element. A reply of a single line is not worth it: it is short.
   */
  #cut(): typeof INCOMPLETE | typeof NOT_DECODED {
    if (this.#cutString.missing > 0) return INCOMPLETE;
    this.#cutLine = Buffer.from(this.chunk.subarray(this.end));
    if (this.#open.length > 0 && this.#cutLine.length <= MAX_CUT_LINE) return INCOMPLETE;
    this.abandon();
    return NOT_DECODED;
  }

  /** The element at `end`. On `INCOMPLETE`, `end` stays at the start of the split element. */
  #value(depth: number): unknown {
    const chunk = this.chunk;
    if (this.end >= chunk.length) return INCOMPLETE;
    const start = this.end + 1;
    const type = chunk[this.end] as number;
    switch (type) {
      case BULK:
        return this.#bulk(start);
      case INTEGER:
        return this.#integer(start);
      case SIMPLE:
        return this.line(start, this.#utf8);
      case ARRAY:
        return this.#array(start, depth);
      default:
        return this.#mode.resp3Types ? this.#resp3Value(type, start, depth) : NOT_DECODED;
    }
  }

  #resp3Value(type: number, start: number, depth: number): unknown {
    const { replyMapping, stringNumbers } = this.#mode;
    const legacy = replyMapping === 'legacy';
    switch (type) {
      case NULL: {
        const nothing = this.line(start, true);
        return nothing === '' ? null : nothing === INCOMPLETE ? INCOMPLETE : NOT_DECODED;
      }
      case BOOLEAN: {
        const letter = this.line(start, true);
        if (letter !== 't' && letter !== 'f') return letter === INCOMPLETE ? INCOMPLETE : NOT_DECODED;
        return legacy ? Number(letter === 't') : letter === 't';
      }
      case DOUBLE:
        // Under the resp3 mapping a double becomes a number, by an algorithm that differs among host versions.
        if (stringNumbers) return this.line(start, true);
        return legacy ? this.line(start, this.#utf8) : NOT_DECODED;
      case SET:
        return this.#array(start, depth);
      case MAP:
        return this.#map(start, depth);
      default:
        return NOT_DECODED;
    }
  }

  #integer(start: number): unknown {
    const number = this.number(start);
    if (!Number.isFinite(number)) return notWhole(number);
    return this.#mode.stringNumbers ? this.chunk.latin1Slice(start, this.end - 2) : number;
  }

  #bulk(start: number): unknown {
    const length = this.number(start);
    if (length === -1) return null;
    if (!(length >= 0 && length !== INCOMPLETE_LINE)) return notWhole(length);
    const { end } = this;
    const chunk = this.chunk;
    const stop = end + length;
    if (stop + 2 > chunk.length) {
      this.#cutString.begin(chunk, end, length, this.#utf8);
      return INCOMPLETE;
    }
    if (chunk[stop] !== CR || chunk[stop + 1] !== LF) return NOT_DECODED;
    this.end = stop + 2;
    return this.#utf8 ? chunk.utf8Slice(end, stop) : chunk.subarray(end, stop);
  }

  #array(start: number, depth: number): unknown {
    const count = this.number(start);
    if (count === -1) return null;
    return this.#aggregate(count, count, false, this.#paired && depth === 0, depth);
  }

  /** A map becomes an object under the resp3 mapping, else an array as in RESP2. */
  #map(start: number, depth: number): unknown {
    const count = this.number(start);
    return this.#aggregate(count, count * 2, this.#mode.replyMapping === 'resp3', true, depth);
  }

  #aggregate(count: number, length: number, keyed: boolean, paired: boolean, depth: number): unknown {
    if (!(length >= 0 && length <= MAX_ELEMENTS) || depth >= MAX_DEPTH) return notWhole(count);
    this.#announced += length;
    if (this.#announced > MAX_ELEMENTS) return NOT_DECODED;
    const room = Math.floor((this.chunk.length - this.end) / MIN_ELEMENT_BYTES);
    const names = paired && length > 0 && (keyed || this.#utf8) ? FieldNames.of(length >> 1) : undefined;
    return this.#fill(new OpenAggregate(length, room, keyed, names), depth);
  }

  /** Decodes the elements that are missing. */
  #fill(open: OpenAggregate, depth: number): unknown {
    const chunk = this.chunk;
    const { values, length, keyed, names } = open;
    for (let index = open.filled; index < length; index += 1) {
      const isKey = keyed && index % 2 === 0;
      const start = this.wholeString();
      if (start >= 0) {
        const stop = this.end - 2;
        if (names !== undefined && index % 2 === 0) values[index] = this.#name(names, index >> 1, start, stop);
        else values[index] = isKey || this.#utf8 ? this.text(start, stop) : chunk.subarray(start, stop);
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
    return open.whole;
  }

  #name(names: FieldNames, index: number, start: number, stop: number): string {
    const known = names.find(index, this.chunk, start, stop);
    if (known !== undefined) return known;
    const name = this.text(start, stop);
    names.keep(index, name, stop - start);
    return name;
  }

  /** A key of a map under the resp3 mapping: a string in either encoding. */
  #key(depth: number): string | typeof INCOMPLETE | typeof NOT_DECODED {
    if (this.end >= this.chunk.length) return INCOMPLETE;
    const type = this.chunk[this.end];
    if (type !== BULK && type !== SIMPLE) return NOT_DECODED;
    const utf8 = this.#utf8;
    this.#utf8 = true;
    const key = this.#value(depth);
    this.#utf8 = utf8;
    return typeof key === 'string' || key === INCOMPLETE ? key : NOT_DECODED;
  }
}

function notWhole(number: number): typeof INCOMPLETE | typeof NOT_DECODED {
  return number === INCOMPLETE_LINE ? INCOMPLETE : NOT_DECODED;
}
