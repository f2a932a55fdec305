import type { Duplex } from 'node:stream';
import { socketTimeoutOf, startHostSocketTimeout } from '../host/state.js';
import type { HostClient } from '../host/types.js';

/**
 * `socketTimeout` for hot commands: their connection ends if nothing is received for that long while one of them awaits
 * its reply.
 *
 * Host: `Redis#setSocketTimeout` adds a listener for the next `data` event, and again after each. With another listener a
 * connection is not read in place (`host/read-buffer.ts`), so this is a timer beside it, told by our reader.
 */
export class SocketTimeout {
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly client: HostClient,
    readonly stream: Duplex,
  ) {}

  /** A hot command was issued. */
  sent(): void {
    if (this.#timer === undefined) this.#start();
  }

  /** Bytes were received, and the replies in them have left the queue. */
  received(): void {
    if (this.#timer === undefined) return;
    this.clear();
    if (this.client.commandQueue.length > 0) this.#start();
  }

  /** The connection becomes plain: the host watches over what is in flight. */
  handOver(): void {
    if (this.#timer === undefined) return;
    this.clear();
    startHostSocketTimeout(this.client);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    const ms = socketTimeoutOf(this.client);
    if (ms === undefined) return;
    // An exception to `clock.ts`: the present global, as in the host, so that a fake clock moves both.
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const { socketTimeout } = this.client.options;
      this.stream.destroy(
        new Error(`Socket timeout. Expecting data, but didn't receive any in ${String(socketTimeout)}ms.`),
      );
    }, ms);
  }
}
