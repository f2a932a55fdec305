/**
 * Runs the core's checks on run times other than Node, for `npm run test:matrix`: the built package, as it is
 * installed.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Report } from '../test/run-times/core-program.js';
import type { RunTimeCell } from './matrix-report.js';
import type { Clients, Obtained, RunTime, Server } from './matrix-versions.js';
import { startRedis } from './redis-server.js';

const execute = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PROGRAM = join(ROOT, 'test/run-times/core-program.ts');

/**
 * @param server - the one that `startRedis()` starts.
 * @param client - the installed ones.
 */
export async function runChecks(
  runTimes: readonly Obtained<RunTime>[],
  server: Obtained<Server>,
  client: Obtained<Clients>,
): Promise<RunTimeCell[]> {
  if (runTimes.length === 0) return [];
  await execute('npm', ['run', 'build:code'], { cwd: ROOT });
  const folder = await createProject();
  const redis = await startRedis();
  const cells: RunTimeCell[] = [];
  try {
    for (const { found, path, args } of runTimes) {
      console.log(`\n== ${found}, ${server.found}, ${client.found}`);
      const started = Date.now();
      const command = [...args, 'core-program.ts', redis.url, `${found}:`];
      const { passed, failed, facts } = await report(path, command, folder);
      for (const { name, reason } of failed) console.log(`failed: ${name}: ${reason}`);
      cells.push({
        runTime: found,
        server: server.found,
        clients: client.found,
        passed: passed.length,
        failed: failed.length,
        seconds: Math.round((Date.now() - started) / 1000),
        facts,
      });
    }
  } finally {
    await redis.stop();
    await rm(folder, { recursive: true });
  }
  return cells;
}

/** A folder with the program, in which the package and the clients are installed. */
async function createProject(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'matrix-run-times-'));
  const { name } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { name: string };
  await mkdir(join(folder, 'node_modules'));
  await symlink(ROOT, join(folder, 'node_modules', name), 'dir');
  for (const client of ['ioredis', 'ioredis5', 'iovalkey']) {
    await symlink(join(ROOT, 'node_modules', client), join(folder, 'node_modules', client), 'dir');
  }
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'project', private: true, type: 'module' }));
  await copyFile(PROGRAM, join(folder, 'core-program.ts'));
  return folder;
}

async function report(path: string, args: readonly string[], cwd: string): Promise<Report> {
  try {
    const env = { ...process.env, DENO_DIR: join(cwd, '.deno'), DENO_NO_UPDATE_CHECK: '1' };
    const { stdout } = await execute(path, args, { cwd, env, timeout: 300_000 });
    return JSON.parse(stdout) as Report;
  } catch (error) {
    return { passed: [], failed: [{ name: 'the program', reason: String(error) }], facts: { readsInPlace: false } };
  }
}
