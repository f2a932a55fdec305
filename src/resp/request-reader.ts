const CR = 13;
/** The number of characters read first. The rest of a longer command is read only on demand. */
const HEAD = 512;

/**
 * Reads the commands in request bytes in turn.
 *
 * RESP: a request is an array of bulk strings (https://redis.io/docs/latest/develop/reference/protocol-spec).
 */
export class RequestReader {
  /** The number of arguments of the current command, including its name. */
  count = 0;
  /** Whether it has found bytes that are not a command in RESP, such as inline commands. */
  malformed = false;
  #bytes: Buffer;
  #position = 0;
  /** The start and end of each argument read so far. */
  readonly #bounds: number[] = [];
  /** The whole text, if only its beginning is in `#bytes`. */
  #text: string | undefined;

  /** @param single - whether it is a single command, which is read only as far as needed. */
  constructor(
    data: string | Uint8Array,
    readonly single: boolean,
  ) {
    if (typeof data !== 'string') this.#bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    else {
      this.#bytes = Buffer.from(single ? data.slice(0, HEAD) : data);
      if (single) this.#text = data;
    }
  }

  /** Advances to the next command; returns false if there is none. */
  next(): boolean {
    const started = this.count > 0;
    if ((started && this.single) || this.malformed || this.#position >= this.#bytes.length) return false;
    this.#bounds.length = 0;
    this.count = Math.max(0, this.#readLength('*'));
    this.malformed = this.count === 0 || !this.#readArguments(this.single ? 1 : this.count);
    return !this.malformed;
  }

  /** An argument of the current command, as UTF-8; the first is its name. Empty if there is no such argument. */
  text(index: number): string {
    if (!this.#readArguments(index + 1)) return '';
    return this.#bytes.utf8Slice(this.#bounds[2 * index] as number, this.#bounds[2 * index + 1] as number);
  }

  /** Finds the first `count` arguments of the command; returns false if there are fewer. */
  #readArguments(count: number): boolean {
    if (count > this.count) return false;
    while (this.#bounds.length < 2 * count) {
      const start = this.#position;
      const length = this.#readLength('$');
      const end = this.#position + length;
      if (length >= 0 && end + 2 <= this.#bytes.length) {
        this.#bounds.push(this.#position, end);
        this.#position = end + 2;
      } else {
        if (this.#text === undefined) return false;
        this.#bytes = Buffer.from(this.#text);
        this.#text = undefined;
        this.#position = start;
      }
    }
    return true;
  }

  #readLength(marker: '*' | '$'): number {
    const bytes = this.#bytes;
    if (bytes[this.#position] !== marker.charCodeAt(0)) return -1;
    const lineEnd = bytes.indexOf(CR, this.#position);
    if (lineEnd < 0) return -1;
    const length = Number(bytes.latin1Slice(this.#position + 1, lineEnd));
    this.#position = lineEnd + 2;
    return Number.isSafeInteger(length) ? length : -1;
  }
}
