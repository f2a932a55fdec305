/** The program that checks the core on Bun and Deno (`npm run test:matrix`), on Node, with the packed package. */
import { execFile } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PackedPackage, packPackage, ROOT } from '../helpers/packed.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import type { Report } from './core-program.js';

const run = promisify(execFile);
const PROGRAM = fileURLToPath(new URL('core-program.ts', import.meta.url));
const TSX = pathToFileURL(join(ROOT, 'node_modules/tsx/dist/loader.mjs')).href;

let packed: PackedPackage;

beforeAll(async () => {
  packed = await packPackage();
}, 300_000);

afterAll(() => packed?.remove());

it('all checks of the program pass', async () => {
  const project = await packed.createProject('core-program', ['ioredis', 'ioredis5', 'iovalkey']);
  await project.write('package.json', JSON.stringify({ type: 'module' }));
  await copyFile(PROGRAM, join(project.folder, 'core-program.ts'));
  const args = ['--import', TSX, 'core-program.ts', redisUrl(), uniquePrefix('core-program')];
  const { stdout } = await run(process.execPath, args, { cwd: project.folder });
  const { passed, failed } = JSON.parse(stdout) as Report;
  expect(failed).toEqual([]);
  expect(passed.length).toBeGreaterThan(40);
});
