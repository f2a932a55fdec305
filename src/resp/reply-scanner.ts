/**
 * Finds the ends of replies over any number of chunks, without decoding them or keeping bytes: by a counter of
 * outstanding elements, one of bytes to skip, and the state of the current line.
 *
 * RESP: https://redis.io/docs/latest/develop/reference/protocol-spec.
 */

const CR = 13;
const LF = 10;
const MINUS = 45;
const ZERO = 48;

type LineKind = 'text' | 'empty' | 'letter' | 'bulk' | 'elements' | 'pairs';

/** The kind of line after each type byte. No other byte starts a reply. */
const LINE_KINDS: Readonly<Record<string, LineKind>> = {
  '+': 'text',
  '-': 'text',
  ':': 'text',
  ',': 'text',
  '(': 'text',
  _: 'empty',
  '#': 'letter',
  $: 'bulk',
  '=': 'bulk',
  '!': 'bulk',
  '*': 'elements',
  '~': 'elements',
  '>': 'elements',
  '%': 'pairs',
};
const KIND_OF_BYTE: readonly (LineKind | undefined)[] = Array.from(
  { length: 256 },
  (_, byte) => LINE_KINDS[String.fromCharCode(byte)],
);

/** Larger than every limit below. Prevents an endless line of digits. */
const MAX_LENGTH = 2 ** 40;
const MAX_LENGTH_DIGITS = 64;

/** Limits of a reply. Hosts have none: they allocate what headers announce, and recurse as deeply as replies nest. */
export const REPLY_LIMITS = {
  /** Bytes of one bulk string: Redis's own default (`proto-max-bulk-len`), and about Node's longest string. */
  bulkBytes: 512 * 1024 * 1024,
  /** Bytes of a line that is not a length: simple strings and errors. */
  lineBytes: 1024 * 1024,
  /** Elements announced in one reply that have not arrived yet. */
  elements: 2 ** 25,
  /** Nested aggregates. */
  depth: 512,
} as const;

type ScanResult = 'whole' | 'more' | 'malformed' | 'oversized';

export class ReplyScanner {
  /** The end of the last reply in its chunk, if it was `'whole'`. */
  end = 0;
  /** The part of an `'oversized'` reply that is too large, for the error message. */
  excess = '';
  /** The number of missing elements in all open aggregates; 0 between two replies. */
  outstanding = 0;
  /** The number of missing elements per open aggregate, the innermost last; the first is for the reply itself. */
  readonly #remaining: number[] = [0];
  #skip = 0;
  #line: LineKind | undefined;
  /** The length read so far, if the line states one; -1 after a minus. */
  #length = 0;
  /** The number of characters of the line so far. */
  #lineLength = 0;
  #afterCr = false;

  /** Scans one reply from `position`, or continues one from an earlier chunk. */
  scan(chunk: Uint8Array, position: number): ScanResult {
    let cursor = position;
    if (this.outstanding === 0) {
      this.outstanding = 1;
      this.#remaining[0] = 1;
    }
    while (this.outstanding > 0) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, chunk.length - cursor);
        cursor += skipped;
        this.#skip -= skipped;
        if (this.#skip > 0) return 'more';
        this.#elementEnds();
        continue;
      }
      if (cursor >= chunk.length) return 'more';
      if (this.#line === undefined) {
        this.#line = KIND_OF_BYTE[chunk[cursor] as number];
        if (this.#line === undefined) return 'malformed';
        cursor += 1;
        this.#length = 0;
        this.#lineLength = 0;
        this.#afterCr = false;
      }
      cursor = this.#readLine(chunk, cursor);
      if (cursor < 0) return this.excess === '' ? 'malformed' : 'oversized';
      if (this.#line !== undefined) return 'more';
    }
    this.end = cursor;
    return 'whole';
  }

  /** Continues a line; returns the position reached, or -1 for an error. At the line's end, clears `#line`. */
  #readLine(chunk: Uint8Array, from: number): number {
    let cursor = from;
    const kind = this.#line;
    if (kind === 'text' && !this.#afterCr) {
      const lineEnd = chunk.indexOf(CR, cursor);
      const next = lineEnd < 0 ? chunk.length : lineEnd;
      this.#lineLength += next - cursor;
      if (this.#lineLength > REPLY_LIMITS.lineBytes) {
        this.#exceed(`a line of more than ${REPLY_LIMITS.lineBytes} bytes`);
        return -1;
      }
      if (lineEnd < 0) return next;
      cursor = next;
    }
    while (cursor < chunk.length) {
      const byte = chunk[cursor] as number;
      cursor += 1;
      if (this.#afterCr) {
        if (byte !== LF) return -1;
        return this.#endOfLine() ? cursor : -1;
      }
      if (byte === CR) {
        this.#afterCr = true;
        continue;
      }
      this.#lineLength += 1;
      if (!this.#addToLength(byte)) return -1;
    }
    return cursor;
  }

  #addToLength(byte: number): boolean {
    // Leading zeros do not change a length, but their number must be limited.
    if (this.#lineLength > MAX_LENGTH_DIGITS) return this.#exceed(`a length of more than ${MAX_LENGTH_DIGITS} digits`);
    if (this.#line === 'letter') return true;
    if (this.#line === 'empty') return false;
    if (byte === MINUS && this.#lineLength === 1) {
      this.#length = -1;
      return true;
    }
    const digit = byte - ZERO;
    if (digit < 0 || digit > 9) return false;
    if (this.#length < 0) return digit === 1 && this.#lineLength === 2; // -1, RESP2's null
    this.#length = this.#length * 10 + digit;
    return this.#length <= MAX_LENGTH || this.#exceed(`a length of more than ${MAX_LENGTH}`);
  }

  /** Records the excess; returns false, so that callers stop. */
  #exceed(excess: string): false {
    this.excess = excess;
    return false;
  }

  #elementEnds(): void {
    this.outstanding -= 1;
    const remaining = this.#remaining;
    let last = remaining.length - 1;
    remaining[last] = (remaining[last] as number) - 1;
    // A complete aggregate is an element of the one around it.
    while (last > 0 && remaining[last] === 0) {
      remaining.pop();
      last -= 1;
      remaining[last] = (remaining[last] as number) - 1;
    }
  }

  #aggregateBegins(elements: number): boolean {
    if (elements === 0) {
      this.#elementEnds();
      return true;
    }
    this.outstanding += elements - 1;
    this.#remaining.push(elements);
    if (this.outstanding > REPLY_LIMITS.elements) {
      return this.#exceed(`an aggregate of ${elements} elements, with more than ${REPLY_LIMITS.elements} to come`);
    }
    if (this.#remaining.length > REPLY_LIMITS.depth + 1) {
      return this.#exceed(`more than ${REPLY_LIMITS.depth} aggregates within each other`);
    }
    return true;
  }

  /** Applies a complete line; returns false if it is malformed, or exceeds a limit. */
  #endOfLine(): boolean {
    const kind = this.#line;
    const length = this.#length;
    this.#line = undefined;
    this.#afterCr = false;
    switch (kind) {
      case 'bulk':
        if (this.#lineLength === 0 || (length < 0 && this.#lineLength !== 2)) return false;
        if (length > REPLY_LIMITS.bulkBytes) return this.#exceed(`a bulk string of ${length} bytes`);
        if (length < 0) this.#elementEnds();
        else this.#skip = length + 2;
        return true;
      case 'elements':
      case 'pairs':
        if (this.#lineLength === 0 || (length < 0 && (this.#lineLength !== 2 || kind === 'pairs'))) return false;
        return this.#aggregateBegins(Math.max(length, 0) * (kind === 'pairs' ? 2 : 1));
      case 'letter':
        this.#elementEnds();
        return this.#lineLength === 1;
      default:
        this.#elementEnds();
        return true;
    }
  }
}
