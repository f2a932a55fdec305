/** The recipes of docs/testing.md, as they are written there, in a project that installed the packed package. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { section } from '../helpers/markdown.js';
import { type PackedPackage, type Project, packPackage, ROOT } from '../helpers/packed.js';

const run = promisify(execFile);
const DOCUMENT = readFileSync(join(ROOT, 'docs/testing.md'), 'utf8');
/** The client of an application. */
const CLIENT = `new Redis({ retryStrategy: () => null, lazyConnect: true })`;
const EXPECTATIONS = `
  const sockets = [];
  const { connect } = Socket.prototype;
  Socket.prototype.connect = function (...args) {
    sockets.push(args);
    return connect.apply(this, args);
  };
  test('the application is answered from memory', async () => {
    expect(await redis.set('a', '2')).toBe('OK');
    expect(await redis.get('a')).toBe('2');
    expect(redis.coalescer.enabled).toBe(false);
    expect(sockets).toEqual([]);
  });`;

let packed: PackedPackage;

beforeAll(async () => {
  packed = await packPackage();
}, 300_000);

afterAll(() => packed?.remove());

test.each(['module', 'commonjs'])('Vitest replaces ioredis by ioredis-mock, in a project of type %s', async (type) => {
  const project = await packed.createProject(`vitest-${type}`, ['ioredis', 'ioredis-mock', 'vitest']);
  await project.write('package.json', JSON.stringify({ name: 'vitest-project', private: true, type }));
  const [config, mock] = recipes('ts').filter((code) => code.includes('vitest'));
  await project.write('vitest.config.mts', config!);
  await project.write('client.ts', `import Redis from 'ioredis-coalesce';\nexport const redis = ${CLIENT};`);
  await project.write(
    'client.test.ts',
    `import { Socket } from 'node:net';
     import { expect, test } from 'vitest';
     import { redis } from './client.js';
     ${mock}
     ${EXPECTATIONS.replace('const sockets', 'const sockets: unknown[]').replace('function (...args)', 'function (this: Socket, ...args: never)')}`,
  );
  await expectToPass(project, 'vitest/vitest.mjs', ['run']);
});

test('Jest replaces ioredis by ioredis-mock', async () => {
  const project = await packed.createProject('jest', ['ioredis', 'ioredis-mock']);
  const [mock] = recipes('js');
  await project.write('client.js', `const Redis = require('ioredis-coalesce');\nmodule.exports = ${CLIENT};`);
  await project.write(
    'client.test.js',
    `${mock}
     const { Socket } = require('node:net');
     const redis = require('./client.js');
     ${EXPECTATIONS}`,
  );
  await expectToPass(project, 'jest/bin/jest.js', ['--rootDir', '.']);
});

/** The code blocks of one language, in the part about ioredis-mock. */
function recipes(language: string): string[] {
  const found = section(DOCUMENT, 'ioredis-mock').matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'));
  return [...found].map(([, code = '']) => code);
}

async function expectToPass({ folder }: Project, program: string, args: readonly string[]): Promise<void> {
  // A run within a run must not take itself for this one.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|JEST|TEST$|NODE_ENV)/.test(name)),
  );
  const done = run(process.execPath, [join(ROOT, 'node_modules', program), ...args], { cwd: folder, env });
  const { stdout, stderr } = await done.catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`the recipe fails:\n${error.stdout}${error.stderr}`);
  });
  expect(stdout + stderr).toMatch(/1 passed/);
}
