import { defineConfig } from 'vitest/config';
import { soakCommands } from './test/soak/duration.js';
import base from './vitest.config.js';

const { projects: _, ...settings } = base.test ?? {};

/** The long forms: `SOAK_MINUTES` in all, 15 by default. */
export default defineConfig({
  ...base,
  test: {
    ...settings,
    include: ['test/soak/**/*.soak.ts', 'test/fidelity/{random,exiting}-programs.test.ts'],
    env: { SOAK_COMMANDS: String(soakCommands()) },
    // One after the other: they measure memory, and load both cores as it is.
    fileParallelism: false,
    testTimeout: 3_600_000,
    disableConsoleIntercept: true,
  },
});
