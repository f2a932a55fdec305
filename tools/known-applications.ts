/**
 * `npm run test:applications [name …]`: applications that know nothing of this package, each once plain and once under
 * `ioredis-coalesce/register`: both print the same, and commands are fast. Their packages come from npm, the newest of the
 * major version that is named here. docs/production.md has the list.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startRedis } from './redis-server.js';

const execute = promisify(execFile);
const REGISTER = new URL('../dist/register.js', import.meta.url).href;
const APPLICATION_MS = 120_000;

const APPLICATIONS: Readonly<Record<string, readonly string[]>> = {
  sessions: ['express@5', 'express-session@1', 'connect-redis@8', 'ioredis@6'],
  moleculer: ['moleculer@0.15', 'ioredis@5'],
  hocuspocus: ['@hocuspocus/server@4', '@hocuspocus/extension-redis@4', '@hocuspocus/provider@4', 'yjs@13', 'ws@8'],
};

/** Of each line that `IOREDIS_COALESCE=stats` prints: commands, and how many percent of them were fast. */
const FIGURES = /(\d+) commands, .* (\d+) % fast/g;

interface Outcome {
  readonly printed: string;
  readonly commands: number;
  readonly fastCommands: number;
}

/** Runs an application on an empty server of its own. */
async function run(folder: string, more: NodeJS.ProcessEnv): Promise<Outcome> {
  const server = await startRedis();
  try {
    const { stdout, stderr } = await execute(process.execPath, ['application.mjs'], {
      cwd: folder,
      timeout: APPLICATION_MS,
      env: { ...process.env, ...more, REDIS_URL: server.url },
    });
    const figures = [...stderr.matchAll(FIGURES)].map(([, commands, percent]) => [Number(commands), Number(percent)]);
    const sum = (of: (commands: number, percent: number) => number) =>
      figures.reduce((total, [commands = 0, percent = 0]) => total + of(commands, percent), 0);
    return {
      printed: stdout,
      commands: sum((commands) => commands),
      fastCommands: Math.round(sum((commands, percent) => (commands * percent) / 100)),
    };
  } finally {
    await server.stop();
  }
}

/** @returns whether the application behaves as with a plain client. */
async function check(name: string, packages: readonly string[]): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), `known-application-${name}-`));
  try {
    await writeFile(join(folder, 'package.json'), '{"private":true,"type":"module"}');
    await execute('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], { cwd: folder });
    const program = fileURLToPath(new URL(`applications/${name}.mjs`, import.meta.url));
    await copyFile(program, join(folder, 'application.mjs'));
    const plain = await run(folder, {});
    const coalesced = await run(folder, { NODE_OPTIONS: `--import=${REGISTER}`, IOREDIS_COALESCE: 'stats' });
    const { commands, fastCommands } = coalesced;
    const isRight = coalesced.printed === plain.printed && plain.printed !== '' && fastCommands > 0;
    console.log(`${isRight ? 'as plain' : 'NOT AS PLAIN'}: ${name}, ${fastCommands} of ${commands} commands fast`);
    if (!isRight) console.log(`plain:     ${plain.printed}\ncoalesced: ${coalesced.printed}`);
    return isRight;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const chosen = process.argv.slice(2);
for (const [name, packages] of Object.entries(APPLICATIONS)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  if (!(await check(name, packages))) process.exitCode = 1;
}
