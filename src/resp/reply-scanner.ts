/**
 * Finds where replies end without decoding them, over any number of chunks: one counter of outstanding elements, one
 * of bytes to skip, and the line that is being read. It keeps no bytes.
 *
 * RESP: https://redis.io/docs/latest/develop/reference/protocol-spec.
 */

const CR = 13;
const LF = 10;
const MINUS = 45;
const ZERO = 48;

type LineKind = 'text' | 'empty' | 'letter' | 'bulk' | 'elements' | 'pairs';

/** What the line after each type byte says. A byte that is not here starts no reply. */
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

/** No reply, bulk string or aggregate is as large; a longer length is not believed. */
const MAX_LENGTH = 2 ** 40;

export type ScanResult = 'whole' | 'more' | 'malformed';

export class ReplyScanner {
  /** Where the reply ended in the chunk scanned last, if it was `'whole'`. */
  end = 0;

  #outstanding = 0;
  #skip = 0;
  #line: LineKind | undefined;
  /** The length read so far of a line that states one; -1 once a minus was seen. */
  #length = 0;
  /** Characters of the line so far. */
  #lineLength = 0;
  #afterCr = false;

  /** Whether a reply was begun and its end not seen yet. */
  get midReply(): boolean {
    return this.#outstanding > 0;
  }

  /** Scans one reply from `position`, or goes on with the one that an earlier chunk began. */
  scan(chunk: Uint8Array, position: number): ScanResult {
    let cursor = position;
    if (this.#outstanding === 0) this.#outstanding = 1;
    while (this.#outstanding > 0) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, chunk.length - cursor);
        cursor += skipped;
        this.#skip -= skipped;
        if (this.#skip > 0) return 'more';
        this.#outstanding -= 1;
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
      if (cursor < 0) return 'malformed';
      if (this.#line !== undefined) return 'more';
    }
    this.end = cursor;
    return 'whole';
  }

  /** Reads on in a line; returns the position behind what was read, or -1. The line is done when `#line` is undefined. */
  #readLine(chunk: Uint8Array, from: number): number {
    let cursor = from;
    const kind = this.#line;
    if (kind === 'text' && !this.#afterCr) {
      const lineEnd = chunk.indexOf(CR, cursor);
      if (lineEnd < 0) return chunk.length;
      cursor = lineEnd;
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
    return this.#length <= MAX_LENGTH;
  }

  /** Takes note of what the finished line says; false if it says nothing sensible. */
  #endOfLine(): boolean {
    const kind = this.#line;
    const length = this.#length;
    this.#line = undefined;
    this.#afterCr = false;
    switch (kind) {
      case 'bulk':
        if (this.#lineLength === 0 || (length < 0 && this.#lineLength !== 2)) return false;
        if (length < 0) this.#outstanding -= 1;
        else this.#skip = length + 2;
        return true;
      case 'elements':
      case 'pairs':
        if (this.#lineLength === 0 || (length < 0 && (this.#lineLength !== 2 || kind === 'pairs'))) return false;
        this.#outstanding += Math.max(length, 0) * (kind === 'pairs' ? 2 : 1) - 1;
        return true;
      case 'letter':
        this.#outstanding -= 1;
        return this.#lineLength === 1;
      default:
        this.#outstanding -= 1;
        return true;
    }
  }
}
