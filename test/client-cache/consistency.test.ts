/** The guarantees of the client-side cache under load; `npm run test:soak` runs the long form. */
import { describe, expect, it } from 'vitest';
import { describeFigures } from '../helpers/client-cache/checker.js';
import { runScenario, SCENARIOS } from '../helpers/client-cache/scenarios.js';
import { SEED } from '../helpers/hostile/random.js';

const READS = Number(process.env.CHECKED_READS ?? 1_000);

describe.each([
  ['every key', {}],
  ['keys of a prefix', { prefixes: ['checked:'] }],
] as const)('reads answered from memory, %s', (_, prefixes) => {
  it.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))(
    '%s',
    async (name, scenario) => {
      const figures = await runScenario(scenario, prefixes, READS, SEED);
      console.log(describeFigures(name, figures));
      expect(figures.violations, `HOSTILE_SEED=${SEED}`).toEqual([]);
      expect(figures.hits).toBeGreaterThan(0);
    },
    60_000 + 5 * READS,
  );
});
