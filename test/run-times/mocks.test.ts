/** The mocks of docs/testing.md, and others of the module `ioredis`, under each test runner, as with plain ioredis. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { section } from '../helpers/markdown.js';
import { type PackedPackage, type Project, packPackage, ROOT } from '../helpers/packed.js';

const run = promisify(execFile);
const resolve = createRequire(import.meta.url).resolve;
const DOCUMENTED = [
  ...section(readFileSync(join(ROOT, 'docs/testing.md'), 'utf8'), 'In your tests').matchAll(/```js\n(.*?)```/gs),
].map(([, code]) => code as string);
const example = (start: string) => DOCUMENTED.find((code) => code.startsWith(start)) as string;

const USED = `
  const redis = new Redis();
  assert.equal(await redis.get('k'), 'mocked');
  assert.equal(redis.coalescer.enabled, false);
  assert.throws(() => new Cluster([]), /needs the class Cluster of the package "ioredis"/);`;
const JEST = (mock: string, used: string) => `
  const assert = require('node:assert');
  ${mock}
  test('it', async () => {
    const { Redis, Cluster } = require('ioredis-coalesce');
    ${used}
  });`;

let packed: PackedPackage;
let project: Project;

beforeAll(async () => {
  packed = await packPackage();
  project = await packed.createProject('mocks', ['ioredis', 'vitest']);
  await project.write('jest.config.json', JSON.stringify({ testMatch: ['**/*.jest.js'], transform: {} }));
}, 300_000);

afterAll(() => packed?.remove());

const runIn = (...args: string[]) => run(process.execPath, args, { cwd: project.folder });

describe('Jest', () => {
  it.each([
    ['of the documents', (): string => example('jest.mock'), USED],
    [
      'automatic',
      (): string => `jest.mock('ioredis');`,
      `
      const redis = new Redis();
      redis.get.mockResolvedValue('mocked');
      assert.equal(await redis.get('k'), 'mocked');
      redis.duplicate();
      expect(redis.duplicate).toHaveBeenCalled();`,
    ],
    [
      'that is the class itself, without disconnect()',
      (): string => `jest.mock('ioredis', () => class { get() { return 'mocked'; } });`,
      USED,
    ],
    [
      'whose constructor throws',
      (): string => `jest.mock('ioredis', () => class { constructor() { throw new Error('its own'); } });`,
      `assert.throws(() => new Redis(), /^Error: its own$/);`,
    ],
  ] as const)('a mock %s', async (name, mock, used) => {
    const file = `${name.replaceAll(/\W/g, '-')}.jest.js`;
    await project.write(file, JEST(mock(), used));
    const { stderr } = await runIn(resolve('jest/bin/jest'), '--config=jest.config.json', file);
    expect(stderr).toContain('1 passed');
  });
});

it.each([
  ['with the package inlined', ['ioredis-coalesce']],
  ['with all inlined', true],
])('Vitest, %s', async (name, inline) => {
  const file = `${name.replaceAll(' ', '-')}.vitest.mjs`;
  await project.write(
    file,
    `import assert from 'node:assert';
     import { test, vi } from 'vitest';
     import { Cluster, Redis } from 'ioredis-coalesce';
     ${example('vi.mock')}
     test('it', async () => {${USED}});`,
  );
  const test = { include: [file], server: { deps: { inline } } };
  await project.write('vitest.config.mjs', `export default ${JSON.stringify({ test })};`);
  const { stdout } = await runIn(resolve('vitest/package.json').replace('package.json', 'vitest.mjs'), 'run');
  expect(stdout).toMatch(/1 passed/);
});

it('node:test', async () => {
  await project.write(
    'node.mjs',
    `import assert from 'node:assert';
     import { mock, test } from 'node:test';
     test('it', async () => {
       ${example('mock.module')}
       const { Cluster, Redis } = await import('ioredis-coalesce');
       ${USED}
     });`,
  );
  const { stdout } = await runIn('--experimental-test-module-mocks', '--test-reporter=tap', '--test', 'node.mjs');
  expect(stdout).toContain('# pass 1');
});
