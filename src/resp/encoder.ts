/**
 * Arguments to RESP, as Latin-1 text: one character a byte. Joining strings and writing them once costs less than
 * filling a Buffer argument by argument, and text of one byte a character goes to the socket without being measured
 * again. Arguments too long for copying twice stay Buffers of their own between pieces of text.
 *
 * RESP: a request is an array of bulk strings (https://redis.io/docs/latest/develop/reference/protocol-spec).
 */

/** Text in which each character is a byte, or a Buffer; a request is these, one after the other. */
export type Part = string | Buffer;

/** Above this many bytes an argument is written as a Buffer of its own, measured in `bench/micro/encoder.ts`. */
const LARGE = 4096;

/** Up to this length a loop over the characters is faster than the call into the engine. */
const SHORT = 64;

const LENGTHS = 1024;
const bulkHeaders = Array.from({ length: LENGTHS }, (_, length) => `\r\n$${length}\r\n`);

/** The end of the line or argument before, and the header of a bulk string of `length` bytes. */
function nextBulkHeader(length: number): string {
  return length < LENGTHS ? (bulkHeaders[length] as string) : `\r\n$${length}\r\n`;
}

/** `*3\r\n$3\r\nset`: the command's name and number of arguments, without the line end that follows. */
export function commandHead(name: string, argumentCount: number): string {
  return `*${argumentCount + 1}\r\n$${name.length}\r\n${name}`;
}

/**
 * One command as RESP.
 *
 * @param name - the command's name in ASCII, written as it is.
 * @param args - strings (UTF-8 on the wire, a lone surrogate as U+FFFD), finite numbers, Buffers.
 * @returns the text, or parts if an argument is large, or undefined if an argument is of another type.
 */
export function encodeCommand(name: string, args: readonly unknown[]): string | Part[] | undefined {
  return encodeArguments(commandHead(name, args.length), args);
}

/** The same with the head prepared, for callers who keep it. */
export function encodeArguments(head: string, args: readonly unknown[]): string | Part[] | undefined {
  let text = head;
  for (let index = 0; index < args.length; index += 1) {
    const argument = args[index];
    if (typeof argument === 'string') {
      const { length } = argument;
      if (length > LARGE) return encodeParts(head, args);
      if (isAscii(argument)) {
        text += nextBulkHeader(length) + argument;
        continue;
      }
      const bytes = latin1OfUtf8(argument);
      text += nextBulkHeader(bytes.length) + bytes;
    } else if (typeof argument === 'number') {
      if (!Number.isFinite(argument)) return undefined;
      const digits = String(argument);
      text += nextBulkHeader(digits.length) + digits;
    } else if (argument instanceof Buffer) {
      if (argument.length > LARGE) return encodeParts(head, args);
      text += nextBulkHeader(argument.length) + argument.latin1Slice();
    } else {
      return undefined;
    }
  }
  return `${text}\r\n`;
}

function encodeParts(head: string, args: readonly unknown[]): Part[] | undefined {
  const parts: Part[] = [];
  let text = head;
  for (const argument of args) {
    const bytes = bytesOf(argument);
    if (bytes === undefined) return undefined;
    text += nextBulkHeader(bytes.length);
    if (bytes.length > LARGE) {
      parts.push(text, bytes);
      text = '';
    } else {
      text += bytes.latin1Slice();
    }
  }
  parts.push(`${text}\r\n`);
  return parts;
}

/** A copy: the caller may change his Buffer before the flush, and the host would have copied it by now. */
function bytesOf(argument: unknown): Buffer | undefined {
  if (typeof argument === 'string' || argument instanceof Buffer) return Buffer.from(argument as string);
  return typeof argument === 'number' && Number.isFinite(argument) ? Buffer.from(String(argument)) : undefined;
}

/** Whether each character is one byte in UTF-8. */
function isAscii(text: string): boolean {
  const { length } = text;
  if (length > SHORT) return Buffer.byteLength(text) === length;
  for (let index = 0; index < length; index += 1) {
    if (text.charCodeAt(index) > 0x7f) return false;
  }
  return true;
}

function latin1OfUtf8(text: string): string {
  return Buffer.from(text).latin1Slice();
}
