/**
 * A deep copy of a reply: a change to one does not show in the other. Objects that are no plain objects are not copied:
 * no decoder makes them, and only the code that made them could copy them.
 */
export function ownCopy(value: unknown, copyBuffer: (buffer: Buffer) => Buffer = Buffer.from): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Buffer) return copyBuffer(value);
  if (Array.isArray(value)) return value.map((element) => ownCopy(element, copyBuffer));
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  const copy: Record<string, unknown> = {};
  for (const [name, element] of Object.entries(value)) {
    const own = ownCopy(element, copyBuffer);
    // A map may have the key `__proto__`, which an assignment would not define.
    if (name !== '__proto__') copy[name] = own;
    else Object.defineProperty(copy, name, { value: own, configurable: true, enumerable: true, writable: true });
  }
  return copy;
}

/** Whether two decoded replies are equal. */
export function sameValue(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (one instanceof Buffer) return other instanceof Buffer && one.equals(other);
  if (Array.isArray(one)) {
    return Array.isArray(other) && one.length === other.length && one.every((value, i) => sameValue(value, other[i]));
  }
  if (other instanceof Buffer || Array.isArray(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => sameValue((one as Record<string, unknown>)[name], (other as Record<string, unknown>)[name]))
  );
}
