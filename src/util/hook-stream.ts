import type { Duplex } from 'node:stream';

type Method = 'end' | 'destroy' | 'cork';

/**
 * Hooks a stream's methods.
 *
 * @param write - called instead of the stream's own.
 * @param before - called before each of `methods`.
 * @returns a function that restores the stream.
 */
export function hookStream<M extends Method = 'end' | 'destroy'>(
  stream: Duplex,
  write: (...args: never[]) => boolean,
  before: (method: M) => void,
  methods: readonly M[] = ['end', 'destroy'] as readonly Method[] as readonly M[],
): () => void {
  const hooks: Record<string, unknown> = { write };
  for (const method of methods) {
    const own = stream[method] as (...args: unknown[]) => unknown;
    hooks[method] = (...args: unknown[]) => {
      before(method);
      return own.apply(stream, args);
    };
  }
  const removals = Object.entries(hooks).map(([method, value]) => {
    const found = Object.getOwnPropertyDescriptor(stream, method);
    Object.defineProperty(stream, method, { value, writable: true, configurable: true });
    return () => {
      // Another hook over ours calls it, so ours has to stay, and then only passes calls on.
      if (Object.getOwnPropertyDescriptor(stream, method)?.value !== value) return;
      if (found !== undefined) Object.defineProperty(stream, method, found);
      else Reflect.deleteProperty(stream, method);
    };
  });
  return () => {
    for (const remove of removals) remove();
  };
}
