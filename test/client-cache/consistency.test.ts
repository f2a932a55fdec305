/** The guarantees of the client-side cache under load; `npm run test:soak` runs the long form. */
import type { CacheOptions } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { describeFigures } from '../helpers/client-cache/checker.js';
import { runScenario, SCENARIOS } from '../helpers/client-cache/scenarios.js';
import { SEED } from '../helpers/hostile/random.js';
import { assumeFar } from '../helpers/predicting.js';
import { share } from '../helpers/share.js';

assumeFar();

const READS = Number(process.env.CHECKED_READS ?? 1_000);

const CACHES: readonly (readonly [string, Pick<CacheOptions, 'prefixes' | 'prefetch'>])[] = [
  ['every key', {}],
  ['keys of a prefix', { prefixes: ['checked:'] }],
  ['every key, and predictions', { prefetch: true }],
  ['keys of a prefix, and predictions', { prefetch: true, prefixes: ['checked:'] }],
];
const CASES = SCENARIOS.flatMap((scenario) =>
  CACHES.filter(([, cache]) => scenario.predicting !== true || cache.prefetch).map(
    ([keys, cache]) => [keys, scenario.name, cache, scenario] as const,
  ),
);

describe('reads answered from memory', () => {
  it.each(share(CASES, 9))(
    '%s: %s',
    async (_, name, cache, scenario) => {
      const figures = await runScenario(scenario, cache, READS, SEED);
      console.log(describeFigures(name, figures));
      expect(figures.violations, `HOSTILE_SEED=${SEED}`).toEqual([]);
      expect(figures.hits).toBeGreaterThan(0);
      // A connection that is lost may not have learned anything yet.
      if (cache.prefetch && scenario.disturb === undefined) expect(figures.predicted).toBeGreaterThan(0);
    },
    60_000 + 5 * READS,
  );
});
