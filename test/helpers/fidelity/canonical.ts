const classes = new WeakMap<object, string>();
let classCount = 0;

/**
 * A text that is the same for two values exactly when a caller could not tell them apart: types, prototypes (by
 * identity, not by name), property order and attributes, `-0`, bytes. Stack frames are left out.
 */
export function canonical(value: unknown): string {
  switch (typeof value) {
    case 'undefined':
      return 'undefined';
    case 'string':
      return JSON.stringify(value);
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value);
    case 'bigint':
      return `${value}n`;
    case 'boolean':
    case 'symbol':
      return String(value);
    case 'function':
      return `function ${value.name}`;
    default:
      return value === null ? 'null' : canonicalObject(value as object);
  }
}

/** The objects that the one at hand is in. Host: an error of EXEC may be among its own `previousErrors`. */
const around: object[] = [];

function canonicalObject(value: object): string {
  const at = around.lastIndexOf(value);
  if (at >= 0) return `what is ${around.length - at} above`;
  around.push(value);
  try {
    return contentOf(value);
  } finally {
    around.pop();
  }
}

function contentOf(value: object): string {
  if (Buffer.isBuffer(value)) {
    return `Buffer<${value.toString('hex')}>`;
  }
  if (Array.isArray(value)) {
    const extra = Object.getOwnPropertyNames(value).filter((name) => name !== 'length' && !/^\d+$/.test(name));
    const items = Array.from({ length: value.length }, (_, index) =>
      index in value ? canonical(value[index]) : 'hole',
    );
    return `${plainOr(value, Array.prototype)}[${items.join(', ')}]${properties(value, extra)}`;
  }
  if (value instanceof Error) {
    const own = Object.getOwnPropertyNames(value).filter((name) => name !== 'stack');
    const head = String(value.stack).split('\n')[0] ?? '';
    return `${classOf(value)}(${JSON.stringify(value.name)}, ${JSON.stringify(value.message)}, ${JSON.stringify(head)})${properties(value, own)}`;
  }
  if (value instanceof Map) {
    const items = [...value].map(([key, item]) => `${canonical(key)} => ${canonical(item)}`);
    return `${classOf(value)}{${items.join(', ')}}`;
  }
  if (value instanceof Set) {
    return `${classOf(value)}{${[...value].map(canonical).join(', ')}}`;
  }
  if (value instanceof Date) {
    return `${classOf(value)}(${value.getTime()})`;
  }
  return `${plainOr(value, Object.prototype)}${properties(value, Object.getOwnPropertyNames(value), true)}`;
}

function plainOr(value: object, prototype: object): string {
  return Object.getPrototypeOf(value) === prototype ? '' : `${classOf(value)} `;
}

function properties(value: object, names: readonly string[], always = false): string {
  if (names.length === 0 && !always) {
    return '';
  }
  const parts = names.map((name) => {
    const found = Object.getOwnPropertyDescriptor(value, name);
    const shown = found && 'value' in found ? canonical(found.value) : 'accessor';
    const flags = `${found?.writable ? '' : '!w'}${found?.enumerable ? '' : '!e'}${found?.configurable ? '' : '!c'}`;
    return `${JSON.stringify(name)}${flags}: ${shown}`;
  });
  return `{${parts.join(', ')}}`;
}

function classOf(value: object): string {
  const prototype = Object.getPrototypeOf(value) as { constructor?: { name?: string } } | null;
  if (prototype === null) {
    return 'null-prototype';
  }
  let name = classes.get(prototype);
  if (name === undefined) {
    classCount += 1;
    name = `${prototype.constructor?.name ?? 'anonymous'}#${classCount}`;
    classes.set(prototype, name);
  }
  return name;
}

const SHOWN = 160;

/** The two texts around the first character at which they part; `undefined` if they do not. */
export function difference(expected: string | undefined, actual: string | undefined): string | undefined {
  if (expected === actual) {
    return undefined;
  }
  if (expected === undefined || actual === undefined) {
    return `plain: ${clip(expected, 0)}\n  coalesced: ${clip(actual, 0)}`;
  }
  let at = 0;
  while (at < expected.length && expected[at] === actual[at]) {
    at += 1;
  }
  const from = Math.max(0, at - 40);
  return `plain: ${clip(expected, from)}\n  coalesced: ${clip(actual, from)}`;
}

function clip(text: string | undefined, from: number): string {
  if (text === undefined) {
    return '(nothing)';
  }
  const end = from + SHOWN;
  return `${from > 0 ? '…' : ''}${text.slice(from, end)}${end < text.length ? '…' : ''}`;
}
