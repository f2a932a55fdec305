import { type Effect, effectOf } from '../commands/effects.js';
import type { HostQueue, QueueItem } from '../host/types.js';

/**
 * Whether the user has a transaction open on a connection, and watches keys, after the last command that was issued.
 * The single source of this fact: `HostWriteHook` and `pipelines/` report each command that can change it.
 */
export class TransactionState {
  watching = false;
  /** Whether MULTI was seen, and neither EXEC nor DISCARD since. */
  begun = false;
  #closed: Promise<void> | undefined;
  #settle: (() => void) | undefined;

  /**
   * @param queue - the host's, whose commands count as issued. Host: iovalkey without a ready check has already sent
   * those of the lost connection again.
   * @param unknown - whether the connection was in use before, so that a reply must show the state.
   */
  constructor(
    queue?: HostQueue,
    public unknown = false,
  ) {
    if (queue === undefined) return;
    for (let index = 0; index < queue.length; index += 1) {
      const { name, args } = (queue.peekAt(index) as QueueItem).command;
      this.issued(effectOf({ count: 1 + args.length, text: (at) => (at === 0 ? name : '') }));
    }
  }

  /** Whether a transaction may be open: where that is not known, one counts as open. */
  get open(): boolean {
    return this.begun || this.unknown;
  }

  /** A command with this effect is about to be sent, or to be held in the backlog. */
  issued(effect: Effect): void {
    switch (effect) {
      case 'multi':
        this.becomes('open');
        break;
      case 'exec':
      case 'discard':
      case 'reset':
        this.becomes('closed');
        break;
      case 'watch':
        this.watching = true;
        break;
      case 'unwatch':
        this.watching = false;
        break;
    }
  }

  /** Commands were issued that open or close a transaction. `closed` also ends WATCH. */
  becomes(state: 'open' | 'closed'): void {
    this.unknown = false;
    this.begun = state === 'open';
    if (this.begun) return;
    this.watching = false;
    this.#settle?.();
    this.#settle = undefined;
    this.#closed = undefined;
  }

  /**
   * A reply came while the state was unknown. It answers a command older than any that was seen here.
   *
   * RESP: a command in a transaction is answered with `+QUEUED`. An error proves nothing: commands are refused there,
   * too.
   *
   * @param line - the beginning of its first or last line.
   */
  replied(line: string): void {
    const proves = !(line.startsWith('-') || '+QUEUED'.startsWith(line));
    if (this.unknown && proves) this.becomes('closed');
  }

  /** Resolves when no transaction is open any more, or its connection has ended; undefined if none is open. */
  closed(): Promise<void> | undefined {
    if (!this.open) return undefined;
    this.#closed ??= new Promise((resolve) => {
      this.#settle = resolve;
    });
    return this.#closed;
  }
}
