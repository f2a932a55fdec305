/**
 * `npm run test:applications [name …]`: applications and recipes of docs/recipes.md, each plain and, under
 * `ioredis-coalesce/register`, in both modes: all print the same, and commands are fast, or corked. Their packages
 * come from npm, the newest of the major version that is named here. docs/production.md has the list.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from './free-port.js';
import { recipeOf } from './recipe.js';
import { startRedis } from './redis-server.js';

const execute = promisify(execFile);
const ROOT = new URL('../', import.meta.url);
const REGISTER = `--import=${new URL('dist/register.js', ROOT).href}`;
const CORKED = `--import=${new URL('tools/applications/corked.mjs', ROOT).href}`;
const APPLICATION_MS = 120_000;

interface Application {
  readonly packages: readonly string[];
  /** Of docs/recipes.md: `recipe.mjs` beside the application. */
  readonly recipe?: string;
}

const APPLICATIONS: Readonly<Record<string, Application>> = {
  sessions: { packages: ['express@5', 'express-session@1', 'connect-redis@8', 'ioredis@6'] },
  moleculer: { packages: ['moleculer@0.15', 'ioredis@5'] },
  hocuspocus: {
    packages: ['@hocuspocus/server@4', '@hocuspocus/extension-redis@4', '@hocuspocus/provider@4', 'yjs@13', 'ws@8'],
  },
  express: {
    packages: ['express@5', 'express-session@1', 'connect-redis@8', 'ioredis@6'],
    recipe: 'Express with connect-redis',
  },
  nest: {
    packages: [
      '@nestjs/common@11',
      '@nestjs/core@11',
      '@nestjs/microservices@11',
      'reflect-metadata',
      'rxjs',
      'ioredis@6',
    ],
    recipe: 'NestJS: a microservice',
  },
};

/** Of each line that `IOREDIS_COALESCE=stats` prints: commands, and how many percent of them were fast. */
const FIGURES = /(\d+) commands, .* (\d+) % fast/g;
/** What `corked.mjs` prints. */
const CORKED_FIGURES = /^corked: (.*)$/m;

type Ran = Readonly<Record<'stdout' | 'stderr', string>>;

/** Runs an application on an empty server of its own. */
async function run(folder: string, more: NodeJS.ProcessEnv): Promise<Ran> {
  const server = await startRedis();
  try {
    const env = { ...process.env, ...more, REDIS_URL: server.url, PORT: String(await freePort()), SECRET: 'secret' };
    return await execute(process.execPath, ['application.mjs'], { cwd: folder, timeout: APPLICATION_MS, env });
  } finally {
    await server.stop();
  }
}

/** The last line: above it may be a log. */
function answerOf({ stdout }: Ran): string {
  return stdout.trim().split('\n').at(-1)!;
}

/** What was fast; undefined if nothing was. */
function fastOf({ stderr }: Ran): string | undefined {
  const figures = [...stderr.matchAll(FIGURES)].map(([, commands, percent]) => [Number(commands), Number(percent)]);
  const sum = (of: (commands: number, percent: number) => number) =>
    Math.round(figures.reduce((total, [commands = 0, percent = 0]) => total + of(commands, percent), 0));
  const fast = sum((commands, percent) => (commands * percent) / 100);
  return fast > 0 ? `${fast} of ${sum((commands) => commands)} commands fast` : undefined;
}

/** What left corked; undefined if nothing did, or a connection had not the cork. */
function corkedOf({ stderr }: Ran): string | undefined {
  const { corked, others, writes, batches } = JSON.parse(CORKED_FIGURES.exec(stderr)?.[1] ?? '{}') as Record<
    string,
    number
  >;
  return batches && corked && others === 0 ? `${writes} writes in ${batches}, ${corked} connections corked` : undefined;
}

/** @returns whether the application behaves as with a plain client, in both modes. */
async function check(name: string, { packages, recipe }: Application): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), `known-application-${name}-`));
  try {
    await writeFile(join(folder, 'package.json'), '{"private":true,"type":"module"}');
    await execute('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', ...packages], { cwd: folder });
    const program = fileURLToPath(new URL(`applications/${name}.mjs`, import.meta.url));
    await copyFile(program, join(folder, 'application.mjs'));
    if (recipe !== undefined) {
      await writeFile(join(folder, 'recipe.mjs'), recipeOf(recipe));
      await symlink(fileURLToPath(ROOT), join(folder, 'node_modules/ioredis-coalesce'), 'dir');
    }
    const plain = await run(folder, { IOREDIS_COALESCE: 'off' });
    const fast = await run(folder, { NODE_OPTIONS: REGISTER, IOREDIS_COALESCE: 'stats' });
    const cork = await run(folder, { NODE_OPTIONS: `${REGISTER} ${CORKED}`, IOREDIS_COALESCE: 'cork' });
    const isAsPlain = [fast, cork].every((ran) => answerOf(ran) === answerOf(plain) && answerOf(ran) !== '');
    const modes = [fastOf(fast), corkedOf(cork)];
    const isRight = isAsPlain && !modes.includes(undefined);
    const seen = modes.map((found, index) => found ?? `NOTHING ${['FAST', 'CORKED'][index]}`).join('; ');
    console.log(`${isAsPlain ? 'as plain' : 'NOT AS PLAIN'}: ${name}, ${seen}`);
    if (!isRight) {
      for (const [of, { stdout, stderr }] of Object.entries({ plain, fast, cork }))
        console.log(`${of}: ${stdout}${stderr}`);
    }
    return isRight;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const chosen = process.argv.slice(2);
for (const [name, application] of Object.entries(APPLICATIONS)) {
  if (chosen.length > 0 && !chosen.includes(name)) continue;
  const failed = ({ message }: Error) => console.log(`FAILED: ${name}: ${message}`);
  if (!(await check(name, application).catch(failed))) process.exitCode = 1;
}
