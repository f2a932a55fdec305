import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const src = (file: string) => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

/** `npm run test:matrix` sets these: a folder with other versions of clients, and which tests to run. */
const { MATRIX_CLIENTS: clients, MATRIX_TESTS: tests } = process.env;
const matrixClient = (name: string) => ({
  find: new RegExp(`^${name}$`),
  replacement: `${clients}/node_modules/${name}/built/index.js`,
});

export default defineConfig({
  resolve: {
    alias: [
      { find: /^ioredis-coalesce$/, replacement: src('index.ts') },
      { find: /^ioredis-coalesce\/(.+)$/, replacement: src('$1.ts') },
      ...(clients ? ['ioredis5', 'iovalkey'].map(matrixClient) : []),
    ],
  },
  test: {
    include: tests ? tests.split(' ') : ['test/**/*.test.ts'],
    globalSetup: ['test/helpers/global-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // Two cores is what the smallest supported machine has; more forks only make timings noisy.
    maxWorkers: 2,
  },
});
