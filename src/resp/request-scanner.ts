/** The commands in a piece of request bytes. */
export interface RequestScan {
  /** Number of whole commands. */
  readonly commands: number;
  /** Whether a transaction is open after it, if it opens or closes any. */
  readonly transaction: 'open' | 'closed' | undefined;
  /** Whether it has a `CLIENT REPLY OFF` or `SKIP`, after which replies are missing. */
  readonly repliesOff: boolean;
}

const CR = 13;
const LONGEST_NAME = 16;

/**
 * Reads the commands in request bytes one after the other.
 *
 * RESP: a request is an array of bulk strings (https://redis.io/docs/latest/develop/reference/protocol-spec).
 */
export class RequestReader {
  /** Number of arguments of the last read command, its name included. */
  count = 0;
  readonly #bytes: Buffer;
  #position = 0;
  /** Where each argument starts and ends. */
  readonly #bounds: number[] = [];

  constructor(data: string | Uint8Array) {
    this.#bytes =
      typeof data === 'string' ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  }

  /** Whether all bytes have been read; if not, the rest is not a whole request. */
  get atEnd(): boolean {
    return this.#position >= this.#bytes.length;
  }

  /** Goes to the next command; false if there is none. */
  next(): boolean {
    const start = this.#position;
    this.count = 0;
    const count = this.#readLength('*');
    for (let index = 0; index < count; index += 1) {
      const length = this.#readLength('$');
      const end = this.#position + length;
      if (length < 0 || end + 2 > this.#bytes.length) {
        this.#position = start;
        return false;
      }
      this.#bounds[2 * index] = this.#position;
      this.#bounds[2 * index + 1] = end;
      this.#position = end + 2;
    }
    if (count < 1) {
      this.#position = start;
      return false;
    }
    this.count = count;
    return true;
  }

  /** An argument of the last read command, as UTF-8; the first is its name. */
  text(index: number): string {
    return this.#bytes.utf8Slice(this.#bounds[2 * index] as number, this.#bounds[2 * index + 1] as number);
  }

  /** The command's name in lower case; cut if it is longer than any name in Redis. */
  get name(): string {
    const start = this.#bounds[0] as number;
    return this.#bytes.latin1Slice(start, Math.min(this.#bounds[1] as number, start + LONGEST_NAME)).toLowerCase();
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

/**
 * Counts the commands in request bytes and notes MULTI, EXEC and DISCARD among them. Bytes of another form end the
 * scan. The result counts at least one command.
 */
export function scanRequests(data: string | Uint8Array): RequestScan {
  const requests = new RequestReader(data);
  let commands = 0;
  let transaction: RequestScan['transaction'];
  let repliesOff = false;
  while (requests.next()) {
    commands += 1;
    const { name } = requests;
    if (name === 'client' && requests.count > 2 && requests.text(1).toLowerCase() === 'reply') {
      repliesOff ||= ['off', 'skip'].includes(requests.text(2).toLowerCase());
    }
    if (name === 'multi') transaction = 'open';
    else if (name === 'exec' || name === 'discard' || name === 'reset') transaction = 'closed';
  }
  return { commands: Math.max(commands, 1), transaction, repliesOff };
}
