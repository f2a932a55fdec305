import { execFile } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { redisUrl, uniquePrefix } from './helpers/redis.js';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const PROGRAMS = fileURLToPath(new URL('types/programs/', import.meta.url));
const TIMEOUT = 60_000;

let scratch: string;
let packed: string[];
/** A project whose node_modules holds the packed package, ioredis and types. */
let project: string;
/** The same, but with iovalkey in place of ioredis. */
let withoutIoredis: string;

beforeAll(async () => {
  if (isStale()) {
    await run('npm', ['run', 'build'], { cwd: ROOT });
  }
  scratch = await mkdtemp(join(tmpdir(), 'ioredis-coalesce-package-'));
  // prepack would build again.
  const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', scratch], {
    cwd: ROOT,
  });
  const [tarball] = JSON.parse(stdout) as [{ filename: string; files: { path: string }[] }];
  packed = tarball.files.map(({ path }) => path);
  project = await createProject('project', join(scratch, tarball.filename), ['ioredis', '@types/node']);
  withoutIoredis = await createProject('without-ioredis', join(scratch, tarball.filename), ['iovalkey', '@types/node']);
}, TIMEOUT);

afterAll(() => rm(scratch, { recursive: true, force: true }));

test('the package holds the build and its papers, nothing else', () => {
  const outside = packed.filter((path) => !path.startsWith('dist/'));
  expect(outside.sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']);
  for (const entry of ['index', 'coalesce']) {
    for (const extension of ['js', 'cjs', 'd.ts', 'd.cts']) {
      expect(packed).toContain(`dist/${entry}.${extension}`);
    }
  }
});

test('an ES module imports the class and coalesce()', async () => {
  await write(
    project,
    'esm.mjs',
    `import { createRequire } from 'node:module';
     import { Redis as Plain } from 'ioredis';
     import Redis, { coalesce, Redis as Same, ReplyError } from 'ioredis-coalesce';
     import { coalesce as fromOtherEntry } from 'ioredis-coalesce/coalesce';
     const [url, prefix] = process.argv.slice(2);
     const redis = new Redis(url, { coalesce: { schedule: 'immediate' } });
     await redis.set(prefix + 'k', 'v');
     const value = await redis.get(prefix + 'k');
     const failure = await redis.incr(prefix + 'k').catch((error) => error);
     const plain = new Plain(url);
     const wrapped = coalesce(plain);
     console.log(JSON.stringify({
       value,
       batches: redis.coalescer.stats().batches > 0,
       same: Redis === Same && coalesce === fromOtherEntry && wrapped === plain,
       instanceOf: redis instanceof Plain,
       replyError: failure instanceof ReplyError,
       oneCopy: createRequire(import.meta.url)('ioredis-coalesce').Redis === Redis,
       wrapped: await wrapped.getdel(prefix + 'k'),
     }));
     redis.disconnect();
     wrapped.disconnect();`,
  );
  expect(await runIn(project, 'esm.mjs')).toEqual({
    value: 'v',
    batches: true,
    same: true,
    instanceOf: true,
    replyError: true,
    oneCopy: true,
    wrapped: 'v',
  });
});

test('a CommonJS module requires the class in each of the ways that ioredis allows', async () => {
  await write(
    project,
    'common.cjs',
    `const Redis = require('ioredis-coalesce');
     const { coalesce } = require('ioredis-coalesce/coalesce');
     const [url, prefix] = process.argv.slice(2);
     const redis = new Redis(url);
     (async () => {
       await redis.set(prefix + 'k', 'v');
       console.log(JSON.stringify({
         value: await redis.getdel(prefix + 'k'),
         batches: redis.coalescer.stats().batches > 0,
         same: Redis === Redis.default && Redis === Redis.Redis && coalesce === Redis.coalesce,
       }));
       redis.disconnect();
     })();`,
  );
  expect(await runIn(project, 'common.cjs')).toEqual({ value: 'v', batches: true, same: true });
});

test(
  'TypeScript finds the types from both module systems',
  async () => {
    const body = `
      const redis: Redis = new Redis({ host: '127.0.0.1', lazyConnect: true, coalesce: { maxBatchSize: 100 } });
      const batches: number = redis.coalescer.stats().batches;
      const wrapped = coalesce(new Plain({ lazyConnect: true }), { shareReads: true });
      const value: Promise<string | null> = wrapped.get('k');
      const sameClass: typeof Redis = Same;
      // @ts-expect-error no such option
      coalesce(redis, { maxBatchSise: 1 });
      export const all = [batches, wrapped.coalescer.stats().commands, value, sameClass, other(redis).coalescer];
    `;
    await write(
      project,
      'module.mts',
      `import { Redis as Plain } from 'ioredis';
       import Redis, { coalesce, Redis as Same } from 'ioredis-coalesce';
       import { coalesce as other } from 'ioredis-coalesce/coalesce';
       ${body}`,
    );
    await write(
      project,
      'common.cts',
      `import { Redis as Plain } from 'ioredis';
       import { coalesce, default as Redis, Redis as Same } from 'ioredis-coalesce';
       import { coalesce as other } from 'ioredis-coalesce/coalesce';
       ${body}`,
    );
    await typecheck(project, ['module.mts', 'common.cts']);
  },
  TIMEOUT,
);

test.each([
  ['ES modules of Node', 'module', { module: 'Node16' }],
  ['CommonJS of Node', 'commonjs', { module: 'Node16' }],
  ['a bundler', 'module', { module: 'ESNext', moduleResolution: 'bundler' }],
] as const)(
  'what people write compiles for %s: a service, a Cluster, scripts of their own, an app on Fastify',
  async (_name, type, options) => {
    const folder = join(scratch, `users-${type}-${options.module}`);
    await cp(project, folder, { recursive: true, verbatimSymlinks: true });
    for (const dependency of ['fastify', '@fastify']) {
      await symlink(join(ROOT, 'node_modules', dependency), join(folder, 'node_modules', dependency), 'dir');
    }
    await write(folder, 'package.json', JSON.stringify({ name: 'users', private: true, type }));
    for (const file of ['service.ts', 'app.ts']) await cp(join(PROGRAMS, file), join(folder, file));
    // The test above looks into the declarations themselves.
    await typecheck(folder, ['service.ts', 'app.ts'], { ...options, skipLibCheck: true });
  },
  3 * TIMEOUT,
);

test(
  'the coalesce entry needs no ioredis: it wraps an iovalkey client, types included',
  async () => {
    const wrapAndAsk = `
      const redis = coalesce(new Valkey(process.argv[2] as string));
      const key = process.argv[3] + 'k';
      await redis.set(key, 'v');
      console.log(JSON.stringify({ value: await redis.getdel(key), batches: redis.coalescer.stats().batches > 0 }));
      redis.disconnect();`;
    const source = `
      import Valkey from 'iovalkey';
      import { coalesce } from 'ioredis-coalesce/coalesce';
      ${wrapAndAsk}`;
    await write(withoutIoredis, 'wrap.mjs', source.replace(' as string', ''));
    expect(await runIn(withoutIoredis, 'wrap.mjs')).toEqual({ value: 'v', batches: true });

    await write(withoutIoredis, 'wrap.mts', source.replace('import Valkey', 'import { Redis as Valkey }'));
    await typecheck(withoutIoredis, ['wrap.mts']);
  },
  TIMEOUT,
);

test.each([
  ['missing.mjs', "import 'ioredis-coalesce';"],
  ['missing.cjs', "require('ioredis-coalesce');"],
])('the drop-in classes without ioredis are an error that says what to do (%s)', async (file, source) => {
  await write(withoutIoredis, file, source);
  await expect(runIn(withoutIoredis, file)).rejects.toThrow(
    'ioredis-coalesce: the drop-in classes need the package "ioredis" (version 5 or 6), which is not installed: ' +
      'run "npm install ioredis", or import { coalesce } from "ioredis-coalesce/coalesce"',
  );
});

test.each([
  ['metrics.mjs', "import 'ioredis-coalesce/prometheus';"],
  ['metrics.cjs', "require('ioredis-coalesce/prometheus');"],
])('the metrics without prom-client are an error that says what to do (%s)', async (file, source) => {
  await write(withoutIoredis, file, source);
  await expect(runIn(withoutIoredis, file)).rejects.toThrow(
    'ioredis-coalesce: ioredis-coalesce/prometheus needs the package "prom-client", which is not installed: ' +
      'run "npm install prom-client"',
  );
});

function isStale(): boolean {
  const built = join(ROOT, 'dist/index.js');
  if (!existsSync(built)) return true;
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((file) => `src/${file}`);
  const newest = Math.max(
    ...[...sources, 'package.json', 'tsup.config.ts', 'tools/esm-entries.mjs'].map(
      (file) => statSync(join(ROOT, file)).mtimeMs,
    ),
  );
  return statSync(built).mtimeMs < newest;
}

/** Unpacks the tarball as npm would, and links what an install would have fetched: no network. */
async function createProject(name: string, tarball: string, dependencies: readonly string[]): Promise<string> {
  const folder = join(scratch, name);
  const target = join(folder, 'node_modules/ioredis-coalesce');
  await mkdir(target, { recursive: true });
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', target]);
  const own = JSON.parse(await readFile(join(target, 'package.json'), 'utf8')) as { dependencies: object };
  for (const dependency of [...Object.keys(own.dependencies), ...dependencies]) {
    const link = join(folder, 'node_modules', dependency);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(ROOT, 'node_modules', dependency), link, 'dir');
  }
  await write(folder, 'package.json', JSON.stringify({ name, private: true }));
  return folder;
}

function write(folder: string, file: string, text: string): Promise<void> {
  return writeFile(join(folder, file), text);
}

/** Runs a program that prints one line of JSON. */
async function runIn(folder: string, file: string): Promise<unknown> {
  const prefix = uniquePrefix('package');
  const { stdout } = await run(process.execPath, [file, redisUrl(), prefix], { cwd: folder, timeout: 15_000 });
  return JSON.parse(stdout);
}

async function typecheck(folder: string, files: readonly string[], more: object = {}): Promise<void> {
  const options = { module: 'NodeNext', target: 'ES2022', strict: true, noEmit: true, types: ['node'], ...more };
  await write(folder, 'tsconfig.json', JSON.stringify({ compilerOptions: options, files }));
  try {
    await run(process.execPath, [TSC, '-p', '.'], { cwd: folder });
  } catch (error) {
    throw new Error(`tsc found errors:\n${(error as { stdout: string }).stdout}`);
  }
}
