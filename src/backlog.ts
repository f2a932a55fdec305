import Denque from 'denque';
import type { Part } from './resp/encoder.js';

/** Something the host wrote, with `write`'s own arguments. */
export interface HostWrite {
  readonly data: string | Uint8Array;
  readonly encoding: BufferEncoding | undefined;
  readonly callback: ((error?: Error | null) => void) | undefined;
}

/** Bytes of commands that wait, all or none. */
export interface Held {
  commands: number;
  /** Hot commands' bytes, or one write of the host's. */
  readonly content: Part[] | HostWrite;
  readonly transaction: 'open' | 'closed' | undefined;
}

/**
 * The bytes of commands beyond `maxInFlight`, in order. Their entries are in the host's queue already, so that whatever
 * the host does to queued commands, it does to these too.
 */
export class Backlog {
  readonly #held = new Denque<Held>();
  readonly #maxHotRun: number;
  /** Commands whose bytes wait. */
  commands = 0;

  constructor(maxInFlight: number, maxBatchSize: number) {
    // Small enough to be let go one by one as replies come in, large enough to be worth a write.
    this.#maxHotRun = Math.max(1, Math.min(maxBatchSize, maxInFlight >> 3));
  }

  /** @param encoded - exact: text that waits is not checked again. */
  holdHot(encoded: Part[]): void {
    this.commands += 1;
    let last = this.#held.peekBack();
    if (last === undefined || !Array.isArray(last.content) || last.commands >= this.#maxHotRun) {
      last = { commands: 0, content: [], transaction: undefined };
      this.#held.push(last);
    }
    last.commands += 1;
    const parts = last.content as Part[];
    appendParts(parts, encoded);
    // Joined text is a tree of its pieces until it is written; a million commands must not wait as trees.
    if (last.commands === this.#maxHotRun) parts.splice(0, parts.length, ...parts.map(toBytes));
  }

  holdHost(write: HostWrite, commands: number, transaction: Held['transaction']): void {
    this.commands += commands;
    this.#held.push({ commands, content: write, transaction });
  }

  /** The next to go if `room` commands fit, or whatever comes next if `any`. */
  take(room: number, any: boolean): Held | undefined {
    const first = this.#held.peekFront();
    if (first === undefined || !(any || first.commands <= room)) return undefined;
    this.commands -= first.commands;
    return this.#held.shift();
  }
}

function toBytes(part: Part): Buffer {
  return typeof part === 'string' ? Buffer.from(part, 'latin1') : part;
}

/** Appends a request to others, its first text joined to their last; large parts stay apart. */
export function appendParts(parts: Part[], encoded: readonly Part[]): Part[] {
  const [first] = encoded;
  const last = parts.length - 1;
  const joins = typeof first === 'string' && typeof parts[last] === 'string';
  if (joins) parts[last] += first;
  for (let index = joins ? 1 : 0; index < encoded.length; index += 1) parts.push(encoded[index] as Part);
  return parts;
}
