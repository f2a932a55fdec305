/** Characters at the end of a key that are looked at; keys that differ before them only are taken for one. */
const HASHED = 64;

const SMALLEST_TABLE = 1 << 10;
const LARGEST_TABLE = 1 << 20;

/**
 * Remembers keys that were asked for recently, in four bytes each: hashes in a table, where later keys replace earlier
 * ones. A cache that admits only keys that are known here keeps those that are asked for again (Einziger, Friedman and
 * Manes, "TinyLFU: A Highly Efficient Cache Admission Policy", 2017, section 3.4.2).
 */
export class Doorkeeper {
  readonly #hashes: Int32Array;
  /** Of a linear congruential generator (Numerical Recipes). */
  #random = 0;

  /** @param keys - about as many are remembered. */
  constructor(keys: number) {
    let size = SMALLEST_TABLE;
    while (size < keys && size < LARGEST_TABLE) size *= 2;
    this.#hashes = new Int32Array(size);
  }

  /** Whether a key was asked for recently. It is remembered now. */
  knows(name: string): boolean {
    const hashes = this.#hashes;
    const hash = hashOf(name);
    // Each hash has two places, and which one it takes is random: keys that are asked for in turn replace each other
    // in a table of one place per hash, for good.
    const place = (hash ^ (hash >>> 15)) & (hashes.length - 1);
    if (hashes[place] === hash || hashes[place ^ 1] === hash) return true;
    hashes[this.#nextRandom() < 0 ? place : place ^ 1] = hash;
    return false;
  }

  /** Keys are asked for that are not looked at: as others do, they take the places of some that are remembered. */
  passOver(keys: number): void {
    const hashes = this.#hashes;
    if (keys > 4 * hashes.length) {
      hashes.fill(0);
      return;
    }
    for (let left = keys; left > 0; left -= 1) {
      // The upper bits are the more random ones.
      hashes[(this.#nextRandom() >>> 12) & (hashes.length - 1)] = 0;
    }
  }

  #nextRandom(): number {
    this.#random = (Math.imul(this.#random, 1664525) + 1013904223) | 0;
    return this.#random;
  }
}

/** FNV-1a, over UTF-16 code units. */
function hashOf(name: string): number {
  let hash = 0x811c9dc5 | 0;
  for (let index = Math.max(0, name.length - HASHED); index < name.length; index += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
  }
  return hash;
}
