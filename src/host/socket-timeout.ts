import type { Duplex } from 'node:stream';
import type { HostClient } from './types.js';

/**
 * `socketTimeout` for fast commands: their connection ends if nothing is received for that long while one of them
 * awaits its reply.
 *
 * Host: `Redis#setSocketTimeout` adds a listener for the next `data` event, and again after each. With another
 * listener, a connection is not read in place (`read-in-place.ts`), so this is a timer that our reader notifies.
 * iovalkey has it since 0.3, ioredis since 5.4; earlier versions ignore the option. `setTimeout` takes any value.
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

  /** The connection becomes plain: the host takes over the timer, which keeps running. */
  leaveToHost(): void {
    const { client, stream } = this;
    const timer = this.#timer;
    if (timer === undefined) return;
    if (client.socketTimeoutTimer !== undefined) {
      this.clear();
      return;
    }
    this.#timer = undefined;
    client.socketTimeoutTimer = timer;
    // Host: the listener of `setSocketTimeout`, behind its data listener.
    stream.once('data', () => {
      clearTimeout(client.socketTimeoutTimer);
      client.socketTimeoutTimer = undefined;
      if (client.commandQueue.length > 0) client.setSocketTimeout?.();
    });
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    const { client, stream } = this;
    const { socketTimeout } = client.options;
    if (socketTimeout === undefined || client.setSocketTimeout === undefined) return;
    // An exception to `clock.ts`: the present global, as in the host, so that a fake clock moves both.
    const timer = setTimeout(() => {
      if (this.#timer === timer) this.#timer = undefined;
      else if (client.socketTimeoutTimer === timer) client.socketTimeoutTimer = undefined;
      // Host: the option's current value.
      const ms = String(client.options.socketTimeout);
      stream.destroy(new Error(`Socket timeout. Expecting data, but didn't receive any in ${ms}ms.`));
    }, socketTimeout as number);
    this.#timer = timer;
  }
}
