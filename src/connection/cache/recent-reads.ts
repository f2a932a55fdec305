/** Only this many of a text's last characters are looked at: texts that are alike there are taken for one. */
const HASHED = 64;
/** FNV's offset basis. */
const FIRST_HASH = 0x811c9dc5 | 0;
const SMALLEST_TABLE = 1 << 10;
const LARGEST_TABLE = 1 << 20;

/**
 * Remembers reads that were asked for recently, in four bytes each: hashes in a table, where later ones replace earlier
 * ones (Einziger, Friedman and Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017, section 3.4.2).
 */
export class RecentReads {
  readonly #hashes: Int32Array;
  #random = 0;

  /** @param reads - about as many are remembered. */
  constructor(reads: number) {
    this.#hashes = new Int32Array(tableSize(reads));
  }

  /** Whether the read with this hash was asked for recently. It is remembered now. */
  knows(hash: number): boolean {
    const hashes = this.#hashes;
    // Each hash has two places, and which one it takes is random: reads that are asked for in turn replace each other
    // in a table of one place per hash, for good.
    const place = placeIn(hashes, hash);
    if (hashes[place] === hash || hashes[place ^ 1] === hash) return true;
    this.#random = nextRandom(this.#random);
    hashes[this.#random < 0 ? place : place ^ 1] = hash;
    return false;
  }
}

function tableSize(least: number): number {
  let size = SMALLEST_TABLE;
  while (size < least && size < LARGEST_TABLE) size *= 2;
  return size;
}

function placeIn(table: { readonly length: number }, hash: number): number {
  return (hash ^ (hash >>> 15)) & (table.length - 1);
}

/** A linear congruential generator (Numerical Recipes). Its lower bits repeat soon. */
function nextRandom(state: number): number {
  return (Math.imul(state, 1664525) + 1013904223) | 0;
}

/** V8: to look a method up on texts of many kinds (joined, cut out, internalized) costs more than to call it. */
const { charCodeAt } = String.prototype;

/** FNV-1a, over pairs of UTF-16 code units: each step waits for the one before. */
export function hashOf(text: string, start = FIRST_HASH): number {
  const { length } = text;
  let hash = start;
  let index = Math.max(0, length - HASHED);
  for (; index + 1 < length; index += 2) {
    hash = Math.imul(hash ^ (charCodeAt.call(text, index) << 16) ^ charCodeAt.call(text, index + 1), 0x01000193);
  }
  return index < length ? Math.imul(hash ^ charCodeAt.call(text, index), 0x01000193) : hash;
}
