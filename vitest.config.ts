import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';

const src = (file: string) => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

/** What `npm run test:package` runs: it takes the built package, a browser, a compiler, or minutes of whole programs. */
export const PACKAGE_TESTS = [
  'test/package/**/*.test.ts',
  'test/run-times/*.test.ts',
  'test/fastify/missing-packages.test.ts',
  'test/example/{demo,page}.test.ts',
  'test/cli/bench.test.ts',
  'test/doc-examples.test.ts',
];

/**
 * What needs a process of its own: what replaces, counts or watches something of the whole process, what happens once
 * in a process, and what measures memory or processor time. All other files share the process of their worker: to start
 * one, and to load everything in it, takes 0.6 s of processor time.
 */
const ALONE = [
  'test/{example,fastify,observability,packages}/**/*.test.ts',
  'test/advise/round-trips.test.ts',
  'test/client-cache/{prediction,units}.test.ts',
  'test/client/{automocked-ioredis,known-releases,mocked-ioredis,patched,stood-in,test-doubles}.test.ts',
  'test/cluster/redirections-of-fast-commands.test.ts',
  'test/connection/{batch,busy-poll,scheduler}.test.ts',
  'test/cork/{as-coalesced,stream-cork}.test.ts',
  'test/hostile/{back-pressure,memory}.test.ts',
  'test/lifecycle/fake-timers.test.ts',
  'test/connection/deadlines.test.ts',
  'test/security/secrets.test.ts',
];

/** `npm run test:matrix` and `canary` set these: a folder with other versions of clients, and which tests to run. */
const { MATRIX_CLIENTS: clients, MATRIX_TESTS: tests } = process.env;
const matrixClients = ['ioredis', 'ioredis5', 'iovalkey']
  .map((name) => ({ find: new RegExp(`^${name}$`), replacement: `${clients}/node_modules/${name}/built/index.js` }))
  .filter(({ replacement }) => clients && existsSync(replacement));

const everything = { include: tests ? tests.split(' ') : ['test/**/*.test.ts'] };
const projects = [
  { ...everything, name: 'together', exclude: ALONE, isolate: false },
  { name: 'alone', include: ALONE },
].map((test) => ({ extends: true as const, test }));
/** The matrix's `include` and the command line's `--exclude` do not reach projects: then each file is alone. */
const isWhole = !tests && !process.argv.includes('--exclude');

export default defineConfig({
  resolve: {
    alias: [
      { find: /^ioredis-coalesce$/, replacement: src('index.ts') },
      { find: /^ioredis-coalesce\/cork$/, replacement: src('cork/cork.ts') },
      { find: /^ioredis-coalesce\/(.+)$/, replacement: src('$1.ts') },
      ...matrixClients,
    ],
  },
  test: {
    exclude: [...configDefaults.exclude, ...PACKAGE_TESTS],
    ...(isWhole ? { projects } : everything),
    globalSetup: ['test/helpers/global-setup.ts'],
    setupFiles: [
      'test/helpers/assumed-releases.ts',
      'test/helpers/no-warnings.ts',
      'test/helpers/reused-memory.ts',
      'test/helpers/buffers-as-values.ts',
    ],
    // What hangs is found all the same; what is merely slow on a busy machine passes.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // Two cores are what the smallest supported machine has. Many tests wait rather than work: four keep both busy.
    maxWorkers: 4,
    coverage: {
      provider: 'v8',
      include: ['src/**/*.ts'],
      exclude: ['src/**/*.d.ts'],
      reporter: ['text', 'html'],
      thresholds: { statements: 96.5, branches: 93, functions: 96.5, lines: 98 },
    },
  },
});
