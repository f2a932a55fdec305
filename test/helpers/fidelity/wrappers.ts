/** What users put around clients, pipelines and transactions: tracing, typing, counting calls. */

/** A transparent wrapper. */
const proxy = <T extends object>(target: T): T => new Proxy(target, {});

/** As a tracer does it: methods run on the object itself. */
const binding = <T extends object>(target: T): T =>
  new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name);
      return typeof value === 'function' ? value.bind(object) : value;
    },
  });

/** Knows nothing of symbols, as wrappers that look names up in a list of theirs. */
const byName = <T extends object>(target: T): T =>
  new Proxy(target, {
    get: (object, name) => (typeof name === 'symbol' ? undefined : (Reflect.get(object, name) as unknown)),
  });

/** Through these a host's client, pipeline or transaction works as it does by itself. */
export const WRAPPERS = {
  'a Proxy': proxy,
  'a Proxy that passes on names, and no symbols': byName,
  'a Proxy that binds methods': binding,
} as const;

export type Wrapper = keyof typeof WRAPPERS;
export const WRAPPER_NAMES = Object.keys(WRAPPERS) as Wrapper[];

/** The object itself, or behind a wrapper. */
export const wrapped = <T extends object>(target: T, wrapper: Wrapper | undefined): T =>
  wrapper === undefined ? target : WRAPPERS[wrapper](target);
