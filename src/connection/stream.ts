import type { Duplex } from 'node:stream';

type StreamMethod = 'write' | 'end' | 'destroy';
type StreamFunction = (...args: never[]) => unknown;

const HOOKED: readonly StreamMethod[] = ['write', 'end', 'destroy'];

/** Hooks in front of a stream's own methods. `remove` leaves the stream as it was found. */
export class StreamHooks {
  readonly #hooks: Record<StreamMethod, StreamFunction>;
  /** The stream's methods as they were. */
  readonly originals: Pick<Duplex, StreamMethod>;
  /** Its own properties of these names. */
  readonly #found: ReadonlyMap<StreamMethod, PropertyDescriptor | undefined>;

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
    this.#found = new Map(HOOKED.map((method) => [method, Object.getOwnPropertyDescriptor(stream, method)]));
    for (const method of HOOKED) {
      Object.defineProperty(stream, method, { value: this.#hooks[method], writable: true, configurable: true });
    }
  }

  remove(): void {
    for (const [method, found] of this.#found) {
      // Other code may have put a hook in front of ours. It calls ours, which then only passes on.
      if (Object.getOwnPropertyDescriptor(this.stream, method)?.value !== this.#hooks[method]) continue;
      if (found !== undefined) Object.defineProperty(this.stream, method, found);
      else Reflect.deleteProperty(this.stream, method);
    }
  }
}
