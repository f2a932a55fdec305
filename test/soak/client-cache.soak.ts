import { describe, expect, it } from 'vitest';
import { describeFigures } from '../helpers/client-cache/checker.js';
import { runScenario, SCENARIOS } from '../helpers/client-cache/scenarios.js';
import { SEED } from '../helpers/hostile/random.js';
import { soakScale } from './duration.js';

/** Of each scenario in each mode. */
const READS = Math.ceil(200_000 * soakScale());

describe.each([
  ['every key', {}],
  ['keys of a prefix', { prefixes: ['checked:'] }],
] as const)('client-side cache, %s', (mode, prefixes) => {
  it.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))('%s', async (name, scenario) => {
    const figures = await runScenario(scenario, prefixes, READS, SEED);
    console.log(`${mode}, ${describeFigures(name, figures)}`);
    expect(figures.violations, `HOSTILE_SEED=${SEED}`).toEqual([]);
    expect(figures.hits).toBeGreaterThan(0);
  });
});
