/**
 * A deep copy of a reply. Of objects that are neither arrays nor plain, only Buffers are copied: no decoder creates
 * others, and only the code that did could copy them.
 *
 * @param copyOther - returns the copy of such an object.
 */
export function deepCopy(value: unknown, copyOther: (value: object) => object = copyIfBuffer): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((element) => deepCopy(element, copyOther));
  if (Object.getPrototypeOf(value) !== Object.prototype) return copyOther(value);
  const copy: Record<string, unknown> = {};
  for (const [name, element] of Object.entries(value)) {
    const own = deepCopy(element, copyOther);
    // A map may have the key `__proto__`, which assignment would not define.
    if (name !== '__proto__') copy[name] = own;
    else Object.defineProperty(copy, name, { value: own, configurable: true, enumerable: true, writable: true });
  }
  return copy;
}

function copyIfBuffer(value: object): object {
  return value instanceof Buffer ? Buffer.from(value) : value;
}

/**
 * `values.flat()`: flattens one level of arrays, and omits holes. V8's own takes 25 times as long for the arguments of
 * a script (1.9 µs for 12; Node 20).
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
    // Read once, like `flat` (ECMA-262, FlattenIntoArray): a getter may change the length.
    const { length } = value;
    for (let index = 0; index < length; index += 1) if (index in value) flat.push(value[index]);
  }
  return flat;
}

/** Approximate bytes per element of a reply, which is a separate string or number. */
const ELEMENT_OVERHEAD = 24;
/** Approximate bytes of a kept Buffer, without its content. */
const BUFFER_OVERHEAD = 50;

/** Approximate bytes of a text: V8 needs two per character if one of them is beyond Latin-1. */
export function memoryOf(text: string): number {
  return Buffer.byteLength(text) === text.length ? text.length : 2 * text.length;
}

/** Approximate bytes of a decoded reply. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return memoryOf(value);
  if (value instanceof Buffer) return BUFFER_OVERHEAD + value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let bytes = ELEMENT_OVERHEAD;
  if (Array.isArray(value)) {
    for (const element of value) bytes += ELEMENT_OVERHEAD + sizeOf(element);
    return bytes;
  }
  for (const [name, element] of Object.entries(value)) {
    bytes += 2 * ELEMENT_OVERHEAD + memoryOf(name) + sizeOf(element);
  }
  return bytes;
}

/** An equal error for another caller, with that caller's command. It is native, as `structuredClone` requires. */
export function errorFor({ name, args }: { readonly name: string; readonly args: unknown }, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const copy: object = new Error();
  Object.setPrototypeOf(copy, Object.getPrototypeOf(error));
  // V8: `stack` may be an accessor, which gives each error its own.
  const { stack: _, ...others } = Object.getOwnPropertyDescriptors(error);
  Object.defineProperties(copy, others);
  Object.defineProperty(copy, 'stack', { value: error.stack, writable: true, enumerable: false, configurable: true });
  return 'command' in copy ? Object.assign(copy, { command: { name, args } }) : copy;
}

/** The characters hashed at either end: texts of equal length and equal ends have equal hashes. */
const HASHED = 64;
/** FNV's offset basis. */
const FIRST_HASH = 0x811c9dc5 | 0;
/** V8: looking up a method on texts of many kinds (joined, cut out, internalized) costs more than calling it. */
const { charCodeAt } = String.prototype;

/** FNV-1a over pairs of UTF-16 code units, because each step has to wait for the previous one. */
export function hashOf(whole: string, start = FIRST_HASH): number {
  const text = whole.length > 2 * HASHED ? whole.slice(0, HASHED) + whole.slice(-HASHED) : whole;
  const { length } = text;
  let hash = start ^ whole.length;
  let index = 0;
  for (; index + 1 < length; index += 2) {
    hash = Math.imul(hash ^ (charCodeAt.call(text, index) << 16) ^ charCodeAt.call(text, index + 1), 0x01000193);
  }
  return index < length ? Math.imul(hash ^ charCodeAt.call(text, index), 0x01000193) : hash;
}

/**
 * The method of the class that is furthest up, such as `on` of an emitter. The override of a subclass may use fields
 * that are not set yet while the constructors of its base classes run.
 */
export function baseMethod<Of extends object, Name extends keyof Of & string>(of: Of, name: Name): Of[Name] {
  let holder: object = of;
  for (let object: object = of; object !== null; object = Object.getPrototypeOf(object) as object) {
    if (Object.hasOwn(object, name)) holder = object;
  }
  return (holder as Of)[name];
}

/** The member of a view (`calls/view.ts`) that is its client. */
export const VIEWED = Symbol.for('ioredis-coalesce.viewed');

/** The client of a view, if it is one. */
export function viewedBy(client: object): object {
  const viewed = (client as { [VIEWED]?: unknown })[VIEWED];
  // A mock may have functions as all its members.
  return typeof viewed === 'object' && viewed !== null ? viewed : client;
}
