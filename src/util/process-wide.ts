/**
 * The one value of this name in the process, shared by all copies of this package that are loaded: from a bundle, from
 * `node_modules`, of another version.
 *
 * @param create - gives what has no properties: Jest takes properties away from what hangs on the global when a test
 *   file has ended, and connections end later.
 * @param name - also stands for the shape of the value: when the shape changes, use another name.
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
