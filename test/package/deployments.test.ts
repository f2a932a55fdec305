/**
 * Services are deployed as what a tool has copied or compiled: each project is built, its output is moved to where no
 * node_modules is in reach, and run from there.
 */
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { nodeFileTrace } from '@vercel/nft';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../tools/free-port.js';
import { type PackedPackage, packPackage, ROOT } from '../helpers/packed.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const run = promisify(execFile);
const MINUTES = 60_000;

/** How each entry makes a client. */
const ENTRIES: Record<string, string> = {
  index: `import Redis from 'ioredis-coalesce';
    const redis = new Redis(url);`,
  coalesce: `import { Redis } from 'ioredis';
    import { coalesce } from 'ioredis-coalesce/coalesce';
    const redis = coalesce(new Redis(url));`,
  cork: `import { Redis } from 'ioredis';
    import { cork, corkOf } from 'ioredis-coalesce/cork';
    const redis = new Redis(url);
    cork(redis);
    redis.coalescer = { stats: () => ({ mode: corkOf(redis) && 'fast' }) };`,
  fastify: `import { fastify } from 'fastify';
    import plugin from 'ioredis-coalesce/fastify';
    const app = fastify();
    app.register(plugin, { url });
    await app.ready();
    const { redis } = app;`,
  prometheus: `import { Redis } from 'ioredis';
    import { coalesce } from 'ioredis-coalesce/coalesce';
    import { collectMetrics } from 'ioredis-coalesce/prometheus';
    const redis = coalesce(new Redis(url));
    collectMetrics(redis);`,
  register: `import 'ioredis-coalesce/register';
    import { Redis } from 'ioredis';
    const redis = new Redis(url);`,
};
const FORMS = ['mjs', 'cjs'] as const;
const KINDS = Object.keys(ENTRIES).flatMap((entry) => FORMS.map((form) => [entry, form] as const));
/** Without `register`, which is a flag of Node: what compiles it in makes the first client before it. */
const COMPILED = KINDS.filter(([entry]) => entry !== 'register');

/** Prints what it got and on what its client stands, and ends by itself. */
function programOf(entry: string, form: string): string {
  const lines = (ENTRIES[entry] as string).split('\n').map((line) => line.trim());
  const imports = lines.filter((line) => line.startsWith('import ')).join('\n');
  const body = `const [url, key] = process.argv.slice(-2);
    ${lines.filter((line) => !line.startsWith('import ')).join('\n')}
    await redis.set(key, 'v');
    console.log(JSON.stringify([await redis.getdel(key), redis.coalescer.stats().mode]));
    await redis.quit();`;
  const loads =
    form === 'mjs'
      ? imports
      : imports
          .replaceAll(/import ([^']+) from '([^']+)'/g, "const $1 = require('$2')")
          .replaceAll(/import '([^']+)'/g, "require('$1')");
  return `${loads}\n(async () => {${body}})();`;
}

let packed: PackedPackage;
let scratch: string;
let project: string;

beforeAll(async () => {
  packed = await packPackage();
  scratch = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-deployed-'));
  project = await install('service', [
    ...['ioredis', 'fastify', '@fastify/redis', 'prom-client'].map(asHere),
    ...['@vercel/ncc@0.45', '@rspack/core@2', '@oven/bun-linux-x64-baseline@1.4'],
  ]);
  for (const [entry, form] of KINDS) await writeFile(join(project, `${entry}.${form}`), programOf(entry, form));
}, 10 * MINUTES);

afterAll(async () => {
  await packed?.remove();
  if (scratch) await rm(scratch, { recursive: true, force: true });
});

/** A dependency in the version that this repository has. */
function asHere(name: string): string {
  const manifest = readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8');
  return `${name}@${(JSON.parse(manifest) as { version: string }).version}`;
}

/** A project with the package and others installed by npm, as an application would be. */
async function install(name: string, packages: readonly string[], files: Record<string, string> = {}): Promise<string> {
  const folder = join(scratch, name);
  for (const [file, text] of Object.entries({ 'package.json': '{ "private": true }', ...files })) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  const quiet = ['--no-audit', '--no-fund'];
  await run('npm', ['install', ...quiet, packed.tarball, ...packages], { cwd: folder });
  return folder;
}

async function folderFor(name: string): Promise<string> {
  const folder = join(scratch, 'deployed', name);
  await mkdir(folder, { recursive: true });
  return folder;
}

/** Runs a program to its end; a warning on its standard error fails. */
async function ran(command: string, args: readonly string[], cwd: string): Promise<unknown> {
  const all = [...args, redisUrl(), uniquePrefix('deployed')];
  const { stdout, stderr } = await run(command, all, { cwd, timeout: MINUTES });
  return stderr === '' ? JSON.parse(stdout) : stderr;
}

const RIGHT = ['v', 'fast'];

describe('a copy of the traced files (Vercel, Netlify)', () => {
  it.each(KINDS)('%s, as %s', { timeout: 2 * MINUTES }, async (entry, form) => {
    const program = `${entry}.${form}`;
    const { fileList } = await nodeFileTrace([join(project, program)], { base: project, processCwd: project });
    const folder = await folderFor(`traced-${program}`);
    for (const file of fileList) await cp(join(project, file), join(folder, file), { recursive: true });
    expect(await ran(process.execPath, [program], folder)).toEqual(RIGHT);
  });
});

describe('one file', () => {
  const bun = () => join(project, 'node_modules/@oven/bun-linux-x64-baseline/bin/bun');

  it.each(COMPILED)('by bun build, for Node: %s, as %s', { timeout: 2 * MINUTES }, async (entry, form) => {
    const file = join(await folderFor(`bun-${entry}-${form}`), 'service.mjs');
    await run(bun(), ['build', '--target', 'node', '--outfile', file, `${entry}.${form}`], { cwd: project });
    expect(await ran(process.execPath, [file], dirname(file))).toEqual(RIGHT);
  });

  it.each(FORMS)('by bun build --compile, as %s', { timeout: 2 * MINUTES }, async (form) => {
    const file = join(await folderFor(`compiled-${form}`), 'service');
    await run(bun(), ['build', '--compile', '--outfile', file, `index.${form}`], { cwd: project });
    expect(await ran(file, [], dirname(file))).toEqual(RIGHT);
  });

  it.each(COMPILED)('by ncc: %s, as %s', { timeout: 2 * MINUTES }, async (entry, form) => {
    const folder = await folderFor(`ncc-${entry}-${form}`);
    const ncc = join(project, 'node_modules/@vercel/ncc/dist/ncc/cli.js');
    await run(process.execPath, [ncc, 'build', `${entry}.${form}`, '-o', folder], { cwd: project });
    const [index] = (await readdir(folder)).filter((file) => file.startsWith('index.'));
    expect(await ran(process.execPath, [index as string], folder)).toEqual(RIGHT);
  });

  it.each(COMPILED)('by rspack: %s, as %s', { timeout: 2 * MINUTES }, async (entry, form) => {
    const folder = await folderFor(`rspack-${entry}-${form}`);
    const config = {
      mode: 'production',
      target: 'node20',
      context: project,
      output: { path: folder, filename: 'service.cjs' },
    };
    await writeFile(
      join(project, `rspack-${entry}-${form}.mjs`),
      `import { rspack } from '@rspack/core';
       rspack({ ...${JSON.stringify(config)}, entry: './${entry}.${form}' }, (error, stats) => {
         if (error || stats.hasErrors()) throw error ?? new Error(stats.toString());
       });`,
    );
    await run(process.execPath, [`rspack-${entry}-${form}.mjs`], { cwd: project });
    expect(await ran(process.execPath, ['service.cjs'], folder)).toEqual(RIGHT);
  });
});

/** What a built server answers to the first request; killed by SIGTERM, which ends it. */
async function answerOf(folder: string, file: string, path: string): Promise<unknown> {
  const port = await freePort();
  const env = { ...process.env, NODE_ENV: 'production', PORT: String(port), REDIS_URL: redisUrl() };
  const server = spawn(process.execPath, [file], { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  server.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const ended = new Promise((resolve) => server.once('close', resolve));
  try {
    for (;;) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
      if (response) return { status: response.status, ...((await response.json()) as object), stderr };
      if (server.exitCode !== null) throw new Error(`the server has ended:\n${stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  } finally {
    server.kill();
    await ended;
  }
}

const ANSWER = `await redis.set('deployed', 'v');
  const answer = { value: await redis.get('deployed'), mode: redis.coalescer.stats().mode };`;
const SERVED = { status: 200, value: 'v', mode: 'fast', stderr: '' };

it('a server of Nitro (Nuxt), by its defaults', { timeout: 6 * MINUTES }, async () => {
  const folder = await install('nitro', ['nitropack@2.13', asHere('ioredis')], {
    'package.json': '{ "private": true, "type": "module" }',
    'nitro.config.ts': 'export default defineNitroConfig({ compatibilityDate: "2026-11-01" });',
    'routes/index.ts': `import Redis from 'ioredis-coalesce';
      const redis = new Redis(process.env.REDIS_URL);
      export default defineEventHandler(async () => { ${ANSWER} return answer; });`,
  });
  await run(process.execPath, ['node_modules/nitropack/dist/cli/index.mjs', 'build'], { cwd: folder });
  const deployed = await folderFor('nitro');
  await cp(join(folder, '.output'), deployed, { recursive: true, verbatimSymlinks: true });
  await rm(folder, { recursive: true });
  expect(await answerOf(deployed, 'server/index.mjs', '/')).toEqual(SERVED);
});

it('the standalone output of Next, bundled and with serverExternalPackages', { timeout: 10 * MINUTES }, async () => {
  const folder = await install('next', ['next@16', 'react@19', 'react-dom@19', asHere('ioredis')], {
    'next.config.mjs': `export default {
      output: 'standalone',
      distDir: process.env.DIST,
      outputFileTracingRoot: import.meta.dirname,
      ...(process.env.DIST === 'external' && { serverExternalPackages: ['ioredis-coalesce', 'ioredis'] }),
    };`,
    'app/layout.js': 'export default ({ children }) => <html><body>{children}</body></html>;',
    'app/api/route.js': `import Redis from 'ioredis-coalesce';
      export const dynamic = 'force-dynamic';
      let redis;
      export async function GET() { redis ??= new Redis(process.env.REDIS_URL); ${ANSWER} return Response.json(answer); }`,
  });
  const deployed = await folderFor('next');
  for (const [kind, flag] of [
    ['bundled', '--turbopack'],
    ['external', '--turbopack'],
  ] as const) {
    const env = { ...process.env, DIST: kind, NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' as const };
    await run(process.execPath, ['node_modules/next/dist/bin/next', 'build', flag], { cwd: folder, env });
    await cp(join(folder, kind, 'standalone'), join(deployed, kind), { recursive: true, verbatimSymlinks: true });
  }
  await rm(folder, { recursive: true });
  for (const kind of ['bundled', 'external']) {
    expect(await answerOf(join(deployed, kind), 'server.js', '/api')).toEqual(SERVED);
  }
});

it.each([['prom-client@14'], ['@fastify/redis@6'], ['@fastify/redis@7'], ['ioredis@4']])(
  'npm installs the package beside %s without a flag',
  { timeout: 4 * MINUTES },
  async (other) => {
    await expect(install(`beside-${other.replaceAll(/\W/g, '-')}`, [other])).resolves.toBeTruthy();
  },
);
