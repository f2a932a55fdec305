import type { Duplex } from 'node:stream';
import type { HostClient } from './types.js';

/**
 * `socketTimeout` for fast commands: their connection ends if nothing is received for that long while one of them
 * awaits its reply.
 *
 * Host: `Redis#setSocketTimeout` adds a listener for the next `data` event, and again after each. With another listener
 * a connection is not read in place (`read-in-place.ts`), so this is a timer beside it, told by our reader. iovalkey
 * and ioredis have it from 0.3 and 5.4 on, earlier versions ignore the option; `setTimeout` takes any value.
 */
export class SocketTimeout {
  #timer: NodeJS.Timeout | undefined;

  constructor(
    readonly client: HostClient,
    readonly stream: Duplex,
  ) {}

  /** A fast command was issued. */
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
  leaveToHost(): void {
    if (this.#timer === undefined) return;
    this.clear();
    // Host: as `sendCommand` does when it writes a command.
    if (this.client.socketTimeoutTimer === undefined) this.client.setSocketTimeout?.();
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    const { socketTimeout } = this.client.options;
    if (socketTimeout === undefined || this.client.setSocketTimeout === undefined) return;
    // An exception to `clock.ts`: the present global, as in the host, so that a fake clock moves both.
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      // Host: the option as it is by then.
      const ms = String(this.client.options.socketTimeout);
      this.stream.destroy(new Error(`Socket timeout. Expecting data, but didn't receive any in ${ms}ms.`));
    }, socketTimeout as number);
  }
}
