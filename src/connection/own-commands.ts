import Denque from 'denque';

/** A command on its way that bears on what is kept of certain keys. */
interface OnItsWay {
  readonly position: number;
  readonly keys: readonly string[];
  readonly writes: boolean;
}

const NEVER = -1;

/**
 * This client's own commands on one connection, as far as they bear on answers kept in memory. Commands are known by
 * their position: how many were queued before them.
 *
 *     position    0   1   2   3   4   5
 *     queue      [get a][set b][get b][eval][get c]      `answered` of them have left it
 *
 * Invariant 12: a read is answered from memory only if nothing that this client has issued before it could have
 * changed the answer. So what is kept of a key is dropped when a write of it is issued; a reply to a read fills
 * nothing while a write that was issued behind the read is on its way. Where the keys are not known, nothing is served
 * until it is sure that all pushes have come which the command may have caused. RESP: those follow its reply before any
 * other reply (Redis 7, `afterCommand`), so the next reply shows that; with BCAST they are sent at the end of the
 * server's turn, so the reply to a command that was issued after that reply shows it.
 */
export class OwnCommands {
  /** Commands that have left the queue. */
  answered = 0;
  readonly #onTheirWay = new Denque<OnItsWay>();
  /** Keys with a write on its way, by the position of the last one. */
  readonly #written = new Map<string, number>();
  /** The last command on its way that may have changed any key, with BCAST. */
  #anything = NEVER;
  /** Nothing is served until the reply at this position has come. */
  #heldUntil = NEVER;
  /** Reads issued before this one fill nothing. */
  #fillFrom = 0;

  constructor(
    /** Whether pushes come at the end of the server's turn (BCAST), behind replies that show what they announce. */
    readonly pushesLate: boolean,
    /** A reply has shown these keys; what was kept of them before must wait for the reply at `position`. */
    readonly shown: (keys: readonly string[], position: number) => void,
  ) {}

  /** Whether answers may be served, as far as the commands of unknown keys are concerned. */
  get settled(): boolean {
    return this.answered > this.#heldUntil;
  }

  writes(keys: readonly string[], position: number): void {
    for (const key of keys) this.#written.set(key, position);
    this.#onTheirWay.push({ position, keys, writes: true });
  }

  /** A read of these keys that is not kept; what it shows may be newer than what is. */
  shows(keys: readonly string[], position: number): void {
    if (this.pushesLate) this.#onTheirWay.push({ position, keys, writes: false });
  }

  changesAnything(position: number): void {
    if (this.pushesLate) {
      this.#anything = position;
      this.#heldUntil = Number.POSITIVE_INFINITY;
    } else {
      this.#heldUntil = position + 1;
    }
  }

  /** Reads issued before `position` fill nothing. */
  forgetBefore(position: number): void {
    this.#fillFrom = position;
  }

  /**
   * The head of the queue has left it.
   *
   * @param next - the position of the next command to be issued.
   */
  answer(next: number): void {
    this.answered += 1;
    if (this.#anything !== NEVER && this.answered > this.#anything) {
      this.#anything = NEVER;
      this.#heldUntil = next;
    }
    const { answered } = this;
    for (let first = this.#onTheirWay.peekFront(); first !== undefined; first = this.#onTheirWay.peekFront()) {
      if (first.position >= answered) return;
      this.#onTheirWay.shift();
      if (!first.writes) this.shown(first.keys, next);
      else for (const key of first.keys) if (this.#written.get(key) === first.position) this.#written.delete(key);
    }
  }

  /** Whether the reply that came last may be kept as the answer to its read of `key`. */
  mayFill(key: string): boolean {
    return this.answered > this.#fillFrom && !this.#written.has(key);
  }
}
