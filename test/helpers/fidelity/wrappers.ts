/** What users put around clients, pipelines and transactions: tracing, typing, counting calls, promisifying. */

/** A transparent wrapper. */
function proxy<T extends object>(target: T): T {
  return new Proxy(target, {});
}

/** As a tracer does it: methods run on the object itself. */
function binding<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name);
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });
}

/** The same, and chains stay behind the wrapper. */
function returningItself<T extends object>(target: T): T {
  const wrapped: T = new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const result: unknown = value.apply(object, args);
        return result === object ? wrapped : result;
      };
    },
  });
  return wrapped;
}

/** Passes on by hand what a Proxy passes on by itself. */
function byHand<T extends object>(target: T): T {
  return new Proxy(target, {
    get: (object, name, receiver) => Reflect.get(object, name, receiver),
    set: (object, name, value, receiver) => Reflect.set(object, name, value, receiver),
    has: (object, name) => Reflect.has(object, name),
  });
}

/** Knows nothing of symbols, as wrappers that look names up in a list of theirs. */
function byName<T extends object>(target: T): T {
  return new Proxy(target, {
    get: (object, name) => (typeof name === 'symbol' ? undefined : (Reflect.get(object, name) as unknown)),
  });
}

/** Through these a host's client, pipeline or transaction works as it does by itself. */
export const WRAPPERS = {
  'a Proxy': proxy,
  'a Proxy of a Proxy': <T extends object>(target: T) => proxy(proxy(target)),
  'a Proxy that passes everything on by hand': byHand,
  'a Proxy that passes on names, and no symbols': byName,
  'a Proxy that binds methods': binding,
  'a Proxy whose methods return it': returningItself,
} as const;

export type Wrapper = keyof typeof WRAPPERS;
export const WRAPPER_NAMES = Object.keys(WRAPPERS) as Wrapper[];

/** The object itself, or behind a wrapper. */
export function wrapped<T extends object>(target: T, wrapper: Wrapper | undefined): T {
  return wrapper === undefined ? target : WRAPPERS[wrapper](target);
}

/** A client that wraps what `multi()` and `pipeline()` return, as tracing and typing wrappers do. */
export function wrapsPipelines<T extends object>(client: T, wrap: (pipeline: never) => object): T {
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        const result: unknown = value.apply(target, args);
        return name === 'multi' || name === 'pipeline' ? wrap(result as never) : result;
      };
    },
  });
}
