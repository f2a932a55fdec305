/** Random numbers that a seed repeats. */
export interface Random {
  /** A whole number from 0 to `below` - 1. */
  below(below: number): number;
  /** A whole number, both ends included. */
  between(low: number, high: number): number;
  /** True once in `calls` calls, on average. */
  oneIn(calls: number): boolean;
  /** One of a list that is not empty. */
  of<T>(list: readonly T[]): T;
}

/** Mulberry32: what decides here is that a run can be repeated, not how good the numbers are. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    below,
    between: (low, high) => low + below(high - low + 1),
    oneIn: (calls) => below(calls) === 0,
    of: <T>(list: readonly T[]) => list[below(list.length)] as T,
  };
}

/** `HOSTILE_SEED` repeats a run's choices; the moments at which they take effect are the machine's. */
export const SEED = seedFrom(process.env.HOSTILE_SEED);

function seedFrom(text: string | undefined): number {
  if (text === undefined || text === '') return Date.now() % 2 ** 31;
  const seed = Number(text);
  if (!Number.isSafeInteger(seed) || seed < 0) {
    throw new RangeError(`HOSTILE_SEED must be a whole number from 0, got "${text}"`);
  }
  return seed;
}
