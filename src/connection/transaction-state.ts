/** Whether the user has a transaction open on a connection, and watches keys, after the last command that was issued. */
export class TransactionState {
  watching = false;
  #open = false;
  /** Whether only the next reply can tell: the connection was in use before. */
  #unknown = false;
  #connectionEnded = false;
  #closed: Promise<void> | undefined;
  #settle: (() => void) | undefined;

  /** Where that is not known, one counts as open. */
  get open(): boolean {
    return this.#open;
  }

  /** @param awaited - whether one is open after the commands that await their reply; undefined if they do not tell. */
  joins(awaited: 'open' | 'closed' | undefined): void {
    this.#open = awaited !== 'closed';
    this.#unknown = awaited === undefined;
  }

  /**
   * The first reply on a connection that was in use.
   *
   * RESP: a queued command is answered with `+QUEUED`, or with an error, and then EXEC with an error, too.
   *
   * @param line - the beginning of its last line.
   */
  firstReply(line: string): void {
    if (this.#unknown && !line.startsWith('+QUEUED')) this.ends();
    this.#unknown = false;
  }

  /** Resolves when the open transaction has ended, and rejects if its connection has; undefined if none is open. */
  closed(): Promise<void> | undefined {
    if (this.#connectionEnded) return Promise.reject(ended());
    if (!this.#open) return undefined;
    this.#closed ??= new Promise((resolve, reject) => {
      this.#settle = () => (this.#connectionEnded ? reject(ended()) : resolve());
    });
    return this.#closed;
  }

  /** MULTI. */
  opens(): void {
    this.#open = true;
    this.#unknown = false;
  }

  /** EXEC or DISCARD, which also end WATCH. */
  ends(): void {
    this.#open = false;
    this.#unknown = false;
    this.watching = false;
    this.#tellClosed();
  }

  connectionEnds(): void {
    this.#connectionEnded = true;
    this.#tellClosed();
  }

  #tellClosed(): void {
    this.#settle?.();
    this.#settle = undefined;
    this.#closed = undefined;
  }
}

function ended(): Error {
  return new Error('the connection has ended');
}
