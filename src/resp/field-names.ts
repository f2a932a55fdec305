/**
 * The names of a hash's fields, as strings of an earlier reply.
 *
 * Most hashes of a service have the same fields, which a server mostly sends in the same order. Comparing a name with the
 * bytes costs a quarter of reading it. And V8 has to look up each new string in its table of property names when it
 * becomes one; this one is there already. Together that is a third of the cost of `HGETALL`.
 */

/** A longer name is read: comparing it byte by byte costs as much. */
const LONGEST_NAME = 64;
/** The most names that are kept, of all hashes; beyond it all are dropped. */
const MOST_NAMES = 32_768;

/** By the number of fields: hashes of different kinds mostly differ in it. One for all connections of a thread. */
const kept = new Map<number, FieldNames>();
let room = MOST_NAMES;

export class FieldNames {
  readonly #names: (string | undefined)[] = [];

  /** For a hash with `count` fields; undefined if they are too many. */
  static of(count: number): FieldNames | undefined {
    const known = kept.get(count);
    if (known !== undefined) return known;
    if (count > MOST_NAMES) return undefined;
    if (count > room) FieldNames.forget();
    room -= count;
    const names = new FieldNames();
    kept.set(count, names);
    return names;
  }

  /** Forgets all names. */
  static forget(): void {
    kept.clear();
    room = MOST_NAMES;
  }

  /**
   * @returns the text of the bytes from `start` to `stop`, the name of the field at `index`, if an earlier reply had it
   *   there or beside: a field that is added or missing moves the others by one.
   */
  find(index: number, chunk: Buffer, start: number, stop: number): string | undefined {
    const names = this.#names;
    if (isText(names[index], chunk, start, stop)) return names[index];
    if (isText(names[index + 1], chunk, start, stop)) return names[index + 1];
    // An index of -1 would make V8's reads of the array slower.
    return index > 0 && isText(names[index - 1], chunk, start, stop) ? names[index - 1] : undefined;
  }

  /** Keeps the name of the field at `index`, read from `bytes` bytes. */
  keep(index: number, name: string, bytes: number): void {
    // Only ASCII has as many characters as bytes, or bytes that are no UTF-8: U+FFFD, which equals none.
    if (bytes <= LONGEST_NAME && name.length === bytes) this.#names[index] = name;
  }
}

function isText(text: string | undefined, chunk: Buffer, start: number, stop: number): boolean {
  if (text === undefined || text.length !== stop - start) return false;
  for (let index = 0, position = start; position < stop; index += 1, position += 1) {
    if (chunk[position] !== text.charCodeAt(index)) return false;
  }
  return true;
}
