/** Alternating keys and values as a plain object, as the host makes it of a map under the resp3 mapping. */
export function objectOf(values: readonly unknown[]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (let index = 0; index < values.length; index += 2) {
    const key = values[index] as string;
    const value = values[index + 1];
    // Host: `decodeMapAsObject` keeps these two from reaching the prototype.
    if (key === '__proto__' || key === 'constructor') {
      Object.defineProperty(object, key, { value, configurable: true, enumerable: true, writable: true });
    } else {
      object[key] = value;
    }
  }
  return object;
}
