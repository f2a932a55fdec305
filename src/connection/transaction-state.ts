/** Whether the user has a transaction open on a connection, and watches keys, after the last command that was issued. */
export class TransactionState {
  open = false;
  watching = false;
  #connectionEnded = false;
  #settle: (() => void) | undefined;

  /** Resolves when the open transaction has ended, and rejects if its connection has; undefined if none is open. */
  closed(): Promise<void> | undefined {
    if (this.#connectionEnded) return Promise.reject(ended());
    if (!this.open) return undefined;
    return new Promise((resolve, reject) => {
      this.#settle = () => (this.#connectionEnded ? reject(ended()) : resolve());
    });
  }

  /** EXEC or DISCARD, which also end WATCH. */
  ends(): void {
    this.open = false;
    this.watching = false;
    this.#settle?.();
  }

  connectionEnds(): void {
    this.#connectionEnded = true;
    this.#settle?.();
  }
}

function ended(): Error {
  return new Error('the connection has ended');
}
