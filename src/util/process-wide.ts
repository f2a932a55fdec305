/**
 * The one value of this name in the process, whichever copies of this package it has loaded: those of a bundle, of
 * `node_modules`, of another version.
 *
 * @param name - names the value's shape too: give it another one when that changes.
 */
export function processWide<T>(name: string, create: () => T): T {
  const key = Symbol.for(`ioredis-coalesce.${name}`);
  const values = globalThis as unknown as Record<symbol, T | undefined>;
  values[key] ??= create();
  return values[key];
}
