/**
 * Encodes arguments as RESP, in Latin-1 text with one character per byte. Joining strings and writing them once costs
 * less than filling a Buffer argument by argument, and Node writes such text without measuring it again. Arguments too
 * long to be copied twice stay separate, between pieces of text.
 *
 * RESP: a request is an array of bulk strings (https://redis.io/docs/latest/develop/reference/protocol-spec).
 */

/**
 * A part of a request: text in which each character is a byte, or a Buffer. A large argument is a separate part, so
 * that it is copied only once, into the write. The last part of a request is short text.
 */
export type Part = string | Buffer;

/** Above this many bytes an argument is a separate part. */
const LARGE = 4096;

/**
 * Above this many characters a request is split into several parts. With any number of arguments, joined text must stay
 * far below V8's longest string (2^29 characters).
 */
const LONG_TEXT = 64 * 1024;

/** Buffer's own method, which a user's subclass may override. */
const { latin1Slice } = Buffer.prototype;

const LENGTHS = 1024;
const bulkHeaders = Array.from({ length: LENGTHS }, (_, length) => `\r\n$${length}\r\n`);

/** The end of the previous line or argument, then the header of a bulk string of `length` bytes. */
function nextBulkHeader(length: number): string {
  return length < LENGTHS ? (bulkHeaders[length] as string) : `\r\n$${length}\r\n`;
}

/** `*3\r\n$3\r\nset`: the number of arguments and the command's name, without the line end. */
export function commandHead(name: string, argumentCount: number): string {
  return `*${argumentCount + 1}\r\n$${name.length}\r\n${name}`;
}

/** Heads are kept for commands of up to this many arguments. */
const KEPT_HEADS = 32;

/** The heads of one command by the number of its arguments, each created once. */
export class CommandHeads {
  readonly #kept: string[] = [];

  constructor(readonly make: (argumentCount: number) => string) {}

  for(argumentCount: number): string {
    const kept = this.#kept[argumentCount];
    if (kept !== undefined) return kept;
    const head = this.make(argumentCount);
    if (argumentCount < KEPT_HEADS) this.#kept[argumentCount] = head;
    return head;
  }
}

/**
 * Encodes one command as RESP, for the fast path.
 *
 * Testing each string for ASCII would dominate the cost, whereas testing a whole batch is nearly free. So the text
 * assumes that every string argument is ASCII. The batch tests it with `isAscii`, and encodes the commands again with
 * `encodeExactly` if that was wrong.
 *
 * @param head - see `commandHead`.
 * @param args - strings, plain numbers, Buffers.
 * @returns text to be tested; or exact parts, if an argument is large or a Buffer; or undefined, if an argument has
 *   another type.
 */
export function encodeAssumingAscii(head: string, args: readonly unknown[]): string | Part[] | undefined {
  let text = head;
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index];
    if (typeof argument === 'string') {
      const { length } = argument;
      if (length > LARGE) return encodeRest(head, args, text, index);
      text += nextBulkHeader(length) + argument;
      if (text.length > LONG_TEXT) return encodeExactly(head, args);
    } else if (typeof argument === 'number' && isPlainNumber(argument)) {
      const digits = String(argument);
      text += nextBulkHeader(digits.length) + digits;
    } else {
      return encodeRest(head, args, text, index);
    }
  }
  return `${text}\r\n`;
}

/** Encodes exactly from the argument at `index` on. `text` is everything before it, tested only once. */
function encodeRest(head: string, args: readonly unknown[], text: string, index: number): Part[] | undefined {
  return isAscii(text) ? encodeExactly(text, args, index) : encodeExactly(head, args);
}

/**
 * Encodes one command as RESP, with strings of any characters.
 *
 * @param head - see `commandHead`; with the arguments before `from`, if it is not 0.
 * @param args - strings (UTF-8 on the wire, a lone surrogate as U+FFFD), plain numbers, Buffers.
 * @returns its parts, or undefined if an argument is of another type.
 */
export function encodeExactly(head: string, args: readonly unknown[], from = 0): Part[] | undefined {
  const parts: Part[] = [];
  let text = head;
  for (let index = from; index < args.length; index += 1) {
    const part = partOf(args[index]);
    if (part === undefined) return undefined;
    text += nextBulkHeader(part.length);
    if (typeof part === 'string' && part.length <= LARGE) {
      text += part;
      if (text.length <= LONG_TEXT) continue;
      parts.push(text);
    } else {
      parts.push(text, part);
    }
    text = '';
  }
  parts.push(`${text}\r\n`);
  return parts;
}

/**
 * An argument's bytes; as a Buffer only if there are more than `LARGE`. Copied, because the caller may change a Buffer
 * before the flush, and the host would have copied it already.
 */
function partOf(argument: unknown): Part | undefined {
  if (typeof argument === 'string') {
    if (isAscii(argument)) return argument;
    const bytes = Buffer.from(argument);
    return bytes.length > LARGE ? bytes : bytes.latin1Slice(0, bytes.length);
  }
  if (argument instanceof Buffer) {
    const { length } = argument;
    return length > LARGE ? Buffer.from(argument) : latin1Slice.call(argument, 0, length);
  }
  return typeof argument === 'number' && isPlainNumber(argument) ? String(argument) : undefined;
}

/**
 * Whether every host writes the number like `String`. Host: ioredis 6 writes integers beyond 2^53 with all digits,
 * earlier versions and iovalkey as `1e+21` (`built/utils/index.js`, `toArg`).
 */
export function isPlainNumber(value: number): boolean {
  return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
}

/** Whether all arguments can be encoded here. */
export function areEncodable(args: readonly unknown[]): boolean {
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index];
    if (typeof argument === 'string') continue;
    if (typeof argument === 'number' ? !isPlainNumber(argument) : !(argument instanceof Buffer)) return false;
  }
  return true;
}

/** Whether each character is one byte in UTF-8. */
export function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

/** Longer text is not joined, because V8's longest string has 2^29 characters. */
const JOINED_TEXT = 512 * 1024;

/** Appends a request to others, and joins its first text to their last one. Large parts stay separate. */
export function appendParts<T>(parts: (T | Part)[], encoded: readonly Part[]): (T | Part)[] {
  const [first] = encoded;
  const last = parts.length - 1;
  const before = parts[last];
  const joins = typeof first === 'string' && typeof before === 'string' && before.length + first.length <= JOINED_TEXT;
  if (joins) parts[last] = before + first;
  for (let index = joins ? 1 : 0; index < encoded.length; index += 1) parts.push(encoded[index] as Part);
  return parts;
}

/** A part's bytes; text of one byte per character becomes a Buffer. */
export function toBytes(part: Part): Buffer {
  return typeof part === 'string' ? Buffer.from(part, 'latin1') : part;
}
