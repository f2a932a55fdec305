/**
 * The names of a hash's fields, as strings of an earlier reply.
 *
 * Most hashes of a service have the same fields, which a server mostly sends in the same order. Comparing a name with the
 * bytes costs a quarter of reading it. And V8 has to look up each new string in its table of property names when it
 * becomes one; this one is there already. Together that is a third of the cost of `HGETALL`.
 */

/** A longer name is read: comparing it byte by byte costs as much. */
const LONGEST_NAME = 64;
/** Names that are kept, of all hashes; then all are forgotten. */
const MOST_NAMES = 32_768;
/** Replies after which names are tried again that did not come again: keeping them costs a fifth of such a reply. */
const LONGEST_REST = 255;

/** By the number of fields: hashes of different kinds mostly differ in it. One for all connections of a thread. */
const kept = new Map<number, FieldNames>();
let room = MOST_NAMES;

export class FieldNames {
  readonly #names: (string | undefined)[] = [];
  /** Whether the last reply was read with names, and how many of them were not known. */
  #tried = true;
  #missed = 0;
  /** Replies that are still read without names, and how many after the next one whose names are not known. */
  #rest = 0;
  #nextRest = 0;

  /** For a hash with `count` fields; undefined if they are too many, or if such hashes have new names each time. */
  static of(count: number): FieldNames | undefined {
    const known = kept.get(count);
    if (known !== undefined) return known.#rests(count) ? undefined : known;
    if (count > MOST_NAMES) return undefined;
    if (count > room) FieldNames.forget();
    room -= count;
    const names = new FieldNames();
    kept.set(count, names);
    return names;
  }

  /** Whether the next reply is read without names. */
  #rests(count: number): boolean {
    if (this.#tried) {
      const inVain = 2 * this.#missed > count;
      this.#rest = inVain ? this.#nextRest : 0;
      this.#nextRest = inVain ? Math.min(2 * this.#nextRest + 1, LONGEST_REST) : 0;
      this.#missed = 0;
    }
    this.#tried = this.#rest === 0;
    if (!this.#tried) this.#rest -= 1;
    return !this.#tried;
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
    this.#missed += 1;
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
