import { SEED } from './hostile/random.js';

/**
 * All cases with `WHOLE_TESTS=1`, as nightly; otherwise one of so many, others in each run. `HOSTILE_SEED` repeats it,
 * or the file's own seed.
 */
export const share = <T>(cases: readonly T[], of: number, seed = SEED): T[] =>
  cases.filter((_, index) => process.env.WHOLE_TESTS === '1' || (index + seed) % of === 0);
