import Denque from 'denque';
import type { HostWrite } from '../host/types.js';
import { appendParts, type Part, toBytes } from '../resp/encoder.js';

/** Bytes of commands that wait, all or none. */
export interface Held {
  commands: number;
  /** Hot commands' bytes, or one write of the host's. */
  readonly content: Part[] | HostWrite;
  readonly transaction: 'open' | 'closed' | undefined;
  /** Nothing joins an explicit pipeline. */
  readonly whole?: true;
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
    if (last === undefined || !Array.isArray(last.content) || last.whole || last.commands >= this.#maxHotRun) {
      last = { commands: 0, content: [], transaction: undefined };
      this.#held.push(last);
    }
    last.commands += 1;
    const parts = last.content as Part[];
    appendParts(parts, encoded);
    // Joined text is a tree of its pieces until it is written; a million commands must not wait as trees.
    if (last.commands === this.#maxHotRun) parts.splice(0, parts.length, ...parts.map(toBytes));
  }

  /** The pipeline goes as a whole. */
  holdPipeline(encoded: Part[], commands: number, isTransaction: boolean): void {
    this.commands += commands;
    this.#held.push({ commands, content: encoded, transaction: isTransaction ? 'closed' : undefined, whole: true });
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
