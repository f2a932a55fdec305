/**
 * A deep copy of a reply: a change to one does not show in the other. Objects that are neither arrays nor plain are not
 * copied, except Buffers: no decoder makes them, and only the code that made them could copy them.
 *
 * @param copyOther - gives the copy of such an object.
 */
export function deepCopy(value: unknown, copyOther: (value: object) => object = copyIfBuffer): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((element) => deepCopy(element, copyOther));
  if (Object.getPrototypeOf(value) !== Object.prototype) return copyOther(value);
  const copy: Record<string, unknown> = {};
  for (const [name, element] of Object.entries(value)) {
    const own = deepCopy(element, copyOther);
    // A map may have the key `__proto__`, which an assignment would not define.
    if (name !== '__proto__') copy[name] = own;
    else Object.defineProperty(copy, name, { value: own, configurable: true, enumerable: true, writable: true });
  }
  return copy;
}

function copyIfBuffer(value: object): object {
  return value instanceof Buffer ? Buffer.from(value) : value;
}

/**
 * `values.flat()`: one level of arrays is flattened, holes are left out. V8's own takes 25 times as long for the
 * arguments of a script (1.9 µs for 12; Node 20).
 *
 * @param values - without holes.
 */
export function flatOf(values: readonly unknown[]): unknown[] {
  const flat: unknown[] = [];
  for (let outer = 0; outer < values.length; outer += 1) {
    const value = values[outer];
    if (!Array.isArray(value)) {
      flat.push(value);
      continue;
    }
    // A getter may change the length: `flat` reads it once (ECMA-262, FlattenIntoArray).
    const { length } = value;
    for (let index = 0; index < length; index += 1) if (index in value) flat.push(value[index]);
  }
  return flat;
}
