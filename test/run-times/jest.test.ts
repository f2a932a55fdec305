/**
 * Real Jest runs tests of a project in which the packed package is installed; each of them with a plain client first.
 */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PackedPackage, type Project, packPackage } from '../helpers/packed.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const resolve = createRequire(import.meta.url).resolve;

/** What all of Jest's tests use: `use(client)` gives what a client answers. */
const HELPERS = `
  exports.url = process.env.JEST_REDIS_URL;
  exports.use = async (client) => {
    const key = process.env.JEST_KEY_PREFIX + 'k';
    const seen = [await client.set(key, 'v')];
    for (let round = 0; round < 3; round += 1) {
      seen.push(await Promise.all(Array.from({ length: 20 }, () => client.get(key))));
    }
    seen.push(await client.incr(key).catch(String));
    client.disconnect();
    return seen;
  };
  exports.load = () => {
    const { Redis } = require('ioredis');
    const { coalesce } = require('ioredis-coalesce/coalesce');
    const DropIn = require('ioredis-coalesce').default;
    return {
      plain: (options = {}) => new Redis(exports.url, options),
      coalesced: (options = {}) => coalesce(new Redis(exports.url, options)),
      'drop-in': (options = {}) => new DropIn(exports.url, options),
    };
  };
  exports.expectAllAlike = async (clients, options) => {
    const plain = await exports.use(clients.plain(options));
    expect(plain.flat()).toHaveLength(62);
    for (const kind of ['coalesced', 'drop-in']) expect(await exports.use(clients[kind](options))).toEqual(plain);
  };`;

/** Jest's own configuration of a test, and its text. */
const TESTS: Record<string, { config?: object; text: string }> = {
  'in the environment jsdom': {
    config: {
      testEnvironment: resolve('jest-environment-jsdom'),
      testEnvironmentOptions: { customExportConditions: ['node'] },
    },
    text: `test('it', () => expectAllAlike(load(), { commandTimeout: 60_000 }));`,
  },
  'with fake timers from before it is loaded': {
    config: { fakeTimers: { enableGlobally: true, doNotFake: ['nextTick'] } },
    text: `test('it', () => expectAllAlike(load()));`,
  },
  'with all clocks fake while it is loaded': {
    config: { fakeTimers: { enableGlobally: true } },
    text: `const clients = load();
      test('it', () => {
        jest.useRealTimers();
        return expectAllAlike(clients);
      });`,
  },
  'with legacy fake timers from before it is loaded': {
    config: { fakeTimers: { enableGlobally: true, legacyFakeTimers: true } },
    text: `test('it', () => expectAllAlike(load(), { commandTimeout: 60_000 }));`,
  },
  'with legacy fake timers from after it is loaded': {
    text: `const clients = load();
      test('it', () => {
        jest.useFakeTimers({ legacyFakeTimers: true });
        return expectAllAlike(clients, { commandTimeout: 60_000 });
      });`,
  },
  'with a copy of it for each test': {
    text: `const before = process.listenerCount('exit');
      const open = [];
      test.each(Array.from({ length: 14 }, (_, index) => index))('copy %d', async () => {
        jest.resetModules();
        open.push(load().coalesced());
        await open.at(-1).ping();
        expect(process.listenerCount('exit') - before).toBe(1);
      });
      test('all are closed', async () => {
        for (const client of open) {
          const ended = new Promise((resolve) => client.once('end', resolve));
          await client.quit();
          await ended;
        }
        expect(process.listenerCount('exit')).toBe(before);
      });`,
  },
};

interface JestReport {
  readonly numPassedTests: number;
  readonly testResults: readonly { readonly name: string; readonly status: string; readonly message: string }[];
}

let packed: PackedPackage;
let report: JestReport;
let output = '';

beforeAll(async () => {
  packed = await packPackage();
  const project = await packed.createProject('jest', ['ioredis']);
  await project.write('helpers.cjs', HELPERS);
  const projects = [];
  for (const [index, { config, text }] of Object.values(TESTS).entries()) {
    const file = `case-${index}.test.cjs`;
    await project.write(file, `const { load, expectAllAlike } = require('./helpers.cjs');\n${text}`);
    projects.push({
      rootDir: project.folder,
      testMatch: [`<rootDir>/${file}`],
      moduleFileExtensions: ['js', 'cjs', 'json'],
      transform: {},
      ...config,
    });
  }
  await project.write('jest.config.json', JSON.stringify({ projects }));
  output = await runJest(project);
  const written = await readFile(join(project.folder, 'report.json'), 'utf8').catch(() => {
    throw new Error(`Jest has written no report:\n${output}`);
  });
  report = JSON.parse(written) as JestReport;
}, 300_000);

afterAll(() => packed?.remove());

function runJest(project: Project): Promise<string> {
  const args = [
    resolve('jest/bin/jest'),
    '--config=jest.config.json',
    '--json',
    '--outputFile=report.json',
    '--maxWorkers=1',
    '--forceExit',
    '--testTimeout=60000',
  ];
  const child = spawn(process.execPath, args, {
    cwd: project.folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, JEST_REDIS_URL: redisUrl(), JEST_KEY_PREFIX: uniquePrefix('jest') },
  });
  let text = '';
  child.stderr.on('data', (chunk) => {
    text += String(chunk);
  });
  return new Promise((done) => child.once('close', () => done(text)));
}

describe('Jest runs a test that loads the package', () => {
  it.each(Object.keys(TESTS).map((name, index) => [name, index] as const))('%s', (_, index) => {
    const result = report.testResults.find(({ name }) => name.endsWith(`case-${index}.test.cjs`));
    expect(result?.message).toBe('');
    expect(result?.status).toBe('passed');
  });

  it('and no listeners are left behind', () => {
    expect(output).not.toContain('MaxListenersExceededWarning');
  });
});
