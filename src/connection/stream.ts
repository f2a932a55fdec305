import type { Duplex } from 'node:stream';
import { socketTimeoutOf, startHostSocketTimeout } from '../host/state.js';
import type { HostClient } from '../host/types.js';

type StreamMethod = 'write' | 'end' | 'destroy';
type StreamFunction = (...args: never[]) => unknown;

const HOOKED: readonly StreamMethod[] = ['write', 'end', 'destroy'];

/** Hooks in front of a stream's own methods. `remove` leaves the stream as it was found. */
export class StreamHooks {
  readonly #hooks: Record<StreamMethod, StreamFunction>;
  /** The stream's methods as they were. */
  readonly originals: Pick<Duplex, StreamMethod>;
  readonly #wereOwn: ReadonlySet<StreamMethod>;

  /**
   * @param write - is called instead of the stream's own.
   * @param beforeEnd - is called before `end` and `destroy`.
   */
  constructor(
    readonly stream: Duplex,
    write: StreamFunction,
    beforeEnd: () => void,
  ) {
    const { end, destroy } = stream;
    this.originals = { write: stream.write, end, destroy };
    this.#hooks = {
      write,
      end(...args: Parameters<typeof end>) {
        beforeEnd();
        return end.apply(stream, args);
      },
      destroy(...args: Parameters<typeof destroy>) {
        beforeEnd();
        return destroy.apply(stream, args);
      },
    };
    this.#wereOwn = new Set(HOOKED.filter((method) => Object.hasOwn(stream, method)));
    for (const method of HOOKED) {
      Object.defineProperty(stream, method, { value: this.#hooks[method], writable: true, configurable: true });
    }
  }

  remove(): void {
    for (const method of HOOKED) {
      // Other code may have put a hook in front of ours. It calls ours, which then only passes on.
      if (Object.getOwnPropertyDescriptor(this.stream, method)?.value !== this.#hooks[method]) continue;
      if (this.#wereOwn.has(method)) Object.defineProperty(this.stream, method, { value: this.originals[method] });
      else Reflect.deleteProperty(this.stream, method);
    }
  }
}

/**
 * `socketTimeout` for hot commands: their connection ends if nothing is received for that long while one of them awaits
 * its reply.
 *
 * Host: `Redis#setSocketTimeout` adds a listener for the next `data` event, and again after each. With another listener a
 * connection is not read in place (`host/read-in-place.ts`), so this is a timer beside it, told by our reader.
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
  leaveToHost(): void {
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
