/**
 * The value of this name in the process, shared by all loaded copies of this package: in a bundle, in `node_modules`,
 * of another version.
 *
 * @param create - returns an object without properties: at the end of a test file, Jest deletes the properties of
 *   objects on the global, and connections end later.
 * @param name - identifies the shape of the value, too: use another name when the shape changes.
 */
export function processWide<T extends Set<never> | WeakSet<never> | Map<never, unknown> | WeakMap<never, unknown>>(
  name: string,
  create: () => T,
): T {
  const key = Symbol.for(`ioredis-coalesce.${name}`);
  const values = globalThis as unknown as Record<symbol, T | undefined>;
  values[key] ??= create();
  return values[key];
}
