import type { Duplex } from 'node:stream';
import type { AnyFunction } from '../../host/types.js';
import { nextTick } from '../../util/clock.js';

/** Our listener for `data`, in the place of the host's, which is called from it. */
export class DataListener {
  /** The host's listener is running, which may call user code. */
  #forwarding = false;

  constructor(
    readonly stream: Duplex,
    readonly host: AnyFunction,
    readonly ours: (chunk: Buffer) => void,
  ) {
    stream.removeListener('data', host);
    // In front of other listeners, which may rely on the queue having moved on (the host's `setSocketTimeout`). Where
    // there are none, `on`: Node emits data within the read for listeners added by `on`, and on nextTick for prepended
    // ones.
    if (stream.listenerCount('data') === 0) stream.on('data', ours);
    else stream.prependListener('data', ours);
  }

  get forwarding(): boolean {
    return this.#forwarding;
  }

  /**
   * Invariant 9. Host: `flushQueue` removes all `data` listeners, and user code may do so too. Node does not emit
   * `removeListener` for the only listener of an event, so this is checked when other code has run, and while it runs.
   */
  isGone(): boolean {
    return this.stream.listenerCount('data', this.ours) === 0;
  }

  /** Whether nobody else gets what is read. */
  isAlone(): boolean {
    return this.stream.listenerCount('data') === 1 && !this.isGone();
  }

  /** Invariant 7: an error that user code throws out of the host's listener is rethrown later. */
  forward(bytes: Buffer): void {
    this.#forwarding = true;
    try {
      this.host.call(this.stream, bytes);
    } catch (error) {
      nextTick(() => {
        throw error;
      });
    } finally {
      this.#forwarding = false;
    }
  }

  /** Puts the host's listener back. */
  remove(): void {
    this.stream.removeListener('data', this.ours);
    this.stream.prependListener('data', this.host);
  }
}
