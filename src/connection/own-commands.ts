import Denque from 'denque';
import type { ReplyCount } from './reply-count.js';

/** A command in flight that affects the kept answers of certain keys. */
interface OnItsWay {
  readonly position: number;
  readonly keys: readonly string[];
  readonly writes: boolean;
}

const NEVER = -1;

/**
 * This client's own commands on one connection, as far as they affect answers kept in memory. A command is known by its
 * position: how many commands were queued before it.
 *
 *     position    0   1   2   3   4   5
 *     queue      [get a][set b][get b][eval][get c]      `replies.all` of them have left it
 *
 * Invariant 12: a read is answered from memory only if nothing that this client has issued before it could have
 * changed the answer.
 *
 * - When a write of a key is issued, the kept answers of the key are dropped. While the write is in flight, a reply to
 *   an earlier read of the key is not kept.
 * - Where the keys of a command are not known, nothing is served until all pushes that it may have caused have come.
 *   RESP: they come between its reply and the next one (Redis 7, `afterCommand`), so the next reply shows that. With
 *   BCAST they are sent at the end of the server's turn, so the reply to a command that was issued after its reply
 *   shows it.
 */
export class OwnCommands {
  readonly #onTheirWay = new Denque<OnItsWay>();
  /** Keys with a write in flight, by the position of the last one. */
  readonly #written = new Map<string, number>();
  /** The position of the last command in flight that may have changed any key, with BCAST. */
  #anything = NEVER;
  /** Nothing is served until the reply at this position has come. */
  #heldUntil = NEVER;
  /** Replies to reads issued before this position are not kept. */
  #fillFrom = 0;
  /** The position of the next command whose reply matters here. */
  #awaited = Number.POSITIVE_INFINITY;

  constructor(
    readonly replies: ReplyCount,
    /** Whether pushes come at the end of the server's turn (BCAST): a reply may show a change before its push. */
    readonly pushesLate: boolean,
    /** A reply has shown these keys: their earlier answers must wait until the reply at `position` has come. */
    readonly shown: (keys: readonly string[], position: number) => void,
  ) {}

  /** Whether no command of unknown keys keeps answers from being served. */
  get settled(): boolean {
    return this.replies.all > this.#heldUntil;
  }

  writes(keys: readonly string[], position: number): void {
    for (const key of keys) this.#written.set(key, position);
    this.#issued({ position, keys, writes: true });
  }

  /** A read of these keys whose answer is not kept; it may show newer values than the kept answers. */
  shows(keys: readonly string[], position: number): void {
    if (this.pushesLate) this.#issued({ position, keys, writes: false });
  }

  #issued(command: OnItsWay): void {
    this.#onTheirWay.push(command);
    this.#awaits(command.position);
  }

  #awaits(position: number): void {
    if (position < this.#awaited) this.#awaited = position;
  }

  changesAnything(position: number): void {
    if (this.pushesLate) {
      this.#anything = position;
      this.#awaits(position);
      this.#heldUntil = Number.POSITIVE_INFINITY;
    } else {
      this.#heldUntil = position + 1;
    }
  }

  /** Replies to reads issued before `position` are not kept. */
  forgetBefore(position: number): void {
    this.#fillFrom = position;
  }

  /** Commands have left `queue` with their replies: with late pushes each of them, otherwise any number at once. */
  answer(queue: { readonly length: number }): void {
    const answered = this.replies.all;
    if (answered > this.#awaited) this.#awaitedAnswered(answered, answered + queue.length);
  }

  /** @param next - the position of the next command to be issued. */
  #awaitedAnswered(answered: number, next: number): void {
    if (answered > this.#anything) {
      if (this.#anything !== NEVER) this.#heldUntil = next;
      this.#anything = NEVER;
    }
    this.#awaited = this.#anything === NEVER ? Number.POSITIVE_INFINITY : this.#anything;
    for (let first = this.#onTheirWay.peekFront(); first !== undefined; first = this.#onTheirWay.peekFront()) {
      if (first.position >= answered) {
        this.#awaits(first.position);
        return;
      }
      this.#onTheirWay.shift();
      if (!first.writes) this.shown(first.keys, next);
      else for (const key of first.keys) if (this.#written.get(key) === first.position) this.#written.delete(key);
    }
  }

  /** Whether the last reply may be kept as the answer to its read of `key`. */
  mayFill(key: string): boolean {
    return this.replies.all > this.#fillFrom && (this.#written.size === 0 || !this.#written.has(key));
  }
}
