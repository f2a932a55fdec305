import type { Duplex } from 'node:stream';

/**
 * Puts hooks in front of a stream's own methods.
 *
 * @param write - is called instead of the stream's own.
 * @param beforeEnd - is called before `end` and `destroy`.
 * @returns a function that leaves the stream as it was found.
 */
export function hookStream(
  stream: Duplex,
  write: (...args: never[]) => boolean,
  beforeEnd: (method: 'end' | 'destroy') => void,
): () => void {
  const { end, destroy } = stream;
  const hooks = {
    write,
    end(...args: Parameters<typeof end>) {
      beforeEnd('end');
      return end.apply(stream, args);
    },
    destroy(...args: Parameters<typeof destroy>) {
      beforeEnd('destroy');
      return destroy.apply(stream, args);
    },
  };
  const removals = Object.entries(hooks).map(([method, value]) => {
    const found = Object.getOwnPropertyDescriptor(stream, method);
    Object.defineProperty(stream, method, { value, writable: true, configurable: true });
    return () => {
      // Other code may have put a hook in front of ours. It calls ours, which then only passes on.
      if (Object.getOwnPropertyDescriptor(stream, method)?.value !== value) return;
      if (found !== undefined) Object.defineProperty(stream, method, found);
      else Reflect.deleteProperty(stream, method);
    };
  });
  return () => {
    for (const remove of removals) remove();
  };
}
