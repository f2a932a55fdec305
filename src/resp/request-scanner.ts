const CR = 13;

/**
 * Reads the commands in request bytes one after the other.
 *
 * RESP: a request is an array of bulk strings (https://redis.io/docs/latest/develop/reference/protocol-spec).
 */
export class RequestReader {
  /** Number of arguments of the last read command, its name included. */
  count = 0;
  /** Whether bytes were met that are no command, as inline commands. */
  malformed = false;
  readonly #bytes: Buffer;
  #position = 0;
  /** Where each argument of the command starts and ends, as far as they were read. */
  readonly #bounds: number[] = [];

  /** @param single - whether it is one command: then no more of it is read than is asked for. */
  constructor(
    data: string | Uint8Array,
    readonly single: boolean,
  ) {
    this.#bytes =
      typeof data === 'string' ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  }

  /** Goes to the next command; false if there is none. */
  next(): boolean {
    const started = this.count > 0;
    if ((started && this.single) || this.malformed || this.#position >= this.#bytes.length) return false;
    this.#bounds.length = 0;
    this.count = Math.max(0, this.#readLength('*'));
    this.malformed = this.count === 0 || !this.#readArguments(this.single ? 1 : this.count);
    return !this.malformed;
  }

  /** An argument of the last read command, as UTF-8; the first is its name. Empty if there is no such argument. */
  text(index: number): string {
    if (!this.#readArguments(index + 1)) return '';
    return this.#bytes.utf8Slice(this.#bounds[2 * index] as number, this.#bounds[2 * index + 1] as number);
  }

  /** Finds the first `count` arguments of the command; false if there are fewer. */
  #readArguments(count: number): boolean {
    if (count > this.count) return false;
    while (this.#bounds.length < 2 * count) {
      const length = this.#readLength('$');
      const end = this.#position + length;
      if (length < 0 || end + 2 > this.#bytes.length) return false;
      this.#bounds.push(this.#position, end);
      this.#position = end + 2;
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
