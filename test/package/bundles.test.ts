/**
 * Services are bundled: each entry, by each common bundler, into each kind of module. The bundles run on a real server.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import commonjs from '@rollup/plugin-commonjs';
import json from '@rollup/plugin-json';
import nodeResolve from '@rollup/plugin-node-resolve';
import terser from '@rollup/plugin-terser';
import { minify as minifyBySwc } from '@swc/core';
import * as esbuild from 'esbuild';
import { build as rolldown } from 'rolldown';
import { type Plugin, rollup } from 'rollup';
import { minify as minifyByTerser } from 'terser';
import { build as vite } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import webpack from 'webpack';
import { linkPackage, type PackedPackage, type Project, packPackage, runProgram } from '../helpers/packed.js';

/** One program for each entry. Each prints what it got, and, but for the cork, whether its commands were fast. */
const PROGRAMS = {
  index: `
    import Redis, { coalesce, Redis as Same, ReplyError } from 'ioredis-coalesce';
    const redis = new Redis(url);
    await redis.set(prefix + 'k', 'v');
    const [value, failure] = await Promise.all([redis.getdel(prefix + 'k'), redis.call('NONE').catch((error) => error)]);
    report(redis, { value, right: Redis === Same && failure instanceof ReplyError && coalesce(redis) === redis });`,
  coalesce: `
    import { Redis } from 'ioredis';
    import { coalesce } from 'ioredis-coalesce/coalesce';
    const redis = coalesce(new Redis(url));
    await redis.set(prefix + 'k', 'v');
    report(redis, { value: await redis.getdel(prefix + 'k'), right: true });`,
  cork: `
    import { Redis } from 'ioredis';
    import { cork, corkOf } from 'ioredis-coalesce/cork';
    const redis = new Redis(url);
    const corked = cork(redis);
    await redis.set(prefix + 'k', 'v');
    report(redis, { value: await redis.getdel(prefix + 'k'), right: corkOf(redis) === corked && Object.hasOwn(redis.stream, 'write') });`,
  fastify: `
    import { fastify } from 'fastify';
    import fastifyRedis from 'ioredis-coalesce/fastify';
    const app = fastify();
    await app.register(fastifyRedis, { url });
    const { redis } = app;
    await redis.set(prefix + 'k', 'v');
    report(redis, { value: await redis.getdel(prefix + 'k'), right: app.hasDecorator('redis') });`,
  prometheus: `
    import { Registry } from 'prom-client';
    import { Redis } from 'ioredis';
    import { coalesce } from 'ioredis-coalesce/coalesce';
    import { collectMetrics } from 'ioredis-coalesce/prometheus';
    const redis = coalesce(new Redis(url));
    const register = new Registry();
    collectMetrics(redis, { register });
    await redis.set(prefix + 'k', 'v');
    const value = await redis.getdel(prefix + 'k');
    report(redis, { value, right: /redis_coalesce_attached 1/.test(await register.metrics()) });`,
};
type Entry = keyof typeof PROGRAMS;
const ENTRIES = Object.keys(PROGRAMS) as Entry[];

const REPORT = `
  const [url, prefix] = process.argv.slice(2);
  function report(redis, found) {
    console.log(JSON.stringify({ ...found, fast: redis.coalescer ? redis.coalescer.stats().fastCommands > 0 : undefined }));
    process.exit();
  }`;

/** What is left out of a bundle and found beside it. */
const EXTERNAL = ['fastify', 'ioredis', '@fastify/redis', 'prom-client'];
const BANNER =
  "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);";

/** How services are bundled. */
interface Kind {
  readonly format: 'esm' | 'cjs';
  /** Fastify itself is always one of them. */
  readonly external: readonly string[];
  readonly minify: boolean;
}

type Bundler<Result = unknown> = (sources: Record<string, string>, folder: string, kind: Kind) => Promise<Result>;

const byEsbuild: Bundler = (entryPoints, outdir, { format, external, minify }) =>
  esbuild.build({
    entryPoints,
    outdir,
    format,
    minify,
    bundle: true,
    platform: 'node',
    target: 'node20',
    external: [...external],
    outExtension: { '.js': format === 'esm' ? '.mjs' : '.cjs' },
    // With everything in it, an ES module needs require() for what ioredis requires of Node.
    ...(format === 'esm' && external.length === 1 && { banner: { js: BANNER } }),
    logLevel: 'silent',
  });

const byRollup: Bundler = async (input, dir, { format, external, minify }) => {
  const plugins = [...rollupPlugins(), ...(minify ? [(terser as unknown as () => Plugin)()] : [])];
  const bundle = await rollup({ input, external: [...external], plugins, onwarn: () => {} });
  await bundle.write({ dir, format, entryFileNames: namesOf(format) });
  await bundle.close();
};

function rollupPlugins(): Plugin[] {
  return [
    (nodeResolve as unknown as (options: object) => Plugin)({ exportConditions: ['node'], preferBuiltins: true }),
    (commonjs as unknown as () => Plugin)(),
    (json as unknown as () => Plugin)(),
  ];
}

const namesOf = (format: Kind['format']) => (format === 'esm' ? '[name].mjs' : '[name].cjs');

const byRolldown: Bundler = (input, dir, { format, external, minify }) =>
  rolldown({
    input,
    external: [...external],
    platform: 'node',
    logLevel: 'silent',
    output: { dir, format, minify, entryFileNames: namesOf(format) },
  });

const byVite: Bundler = (input, outDir, { format, external, minify }) =>
  vite({
    configFile: false,
    logLevel: 'silent',
    ssr: { noExternal: true, external: [...external] },
    build: {
      ssr: true,
      outDir,
      minify,
      emptyOutDir: false,
      rolldownOptions: { input, external: [...external], output: { format, entryFileNames: namesOf(format) } },
    },
  });

/** A bundle of esbuild's, as another minifier writes it. */
const thenMinified =
  (minify: (code: string, module: boolean) => Promise<{ code?: string }>): Bundler =>
  async (sources, folder, kind) => {
    await byEsbuild(sources, folder, { ...kind, minify: false });
    const written = (await readdir(folder)).filter((name) => /\.[cm]js$/.test(name));
    for (const file of written.map((name) => join(folder, name))) {
      const { code } = await minify(await readFile(file, 'utf8'), kind.format === 'esm');
      await writeFile(file, code ?? '');
    }
  };
const bySwc = thenMinified((code, module) => minifyBySwc(code, { module, compress: true, mangle: true }));
const byTerser = thenMinified((code, module) => minifyByTerser(code, { module, compress: { passes: 3 }, ecma: 2020 }));

const byWebpack: Bundler<webpack.Stats> = (entry, path, { format, external, minify }) =>
  new Promise((resolve, reject) => {
    const esm = format === 'esm';
    webpack(
      {
        entry,
        mode: minify ? 'production' : 'development',
        devtool: false,
        target: 'node20',
        externalsType: esm ? 'module' : 'commonjs',
        externals: [...external],
        experiments: { outputModule: esm },
        output: {
          path,
          filename: esm ? '[name].mjs' : '[name].cjs',
          chunkFilename: esm ? '[name].mjs' : '[name].cjs',
          library: { type: esm ? 'module' : 'commonjs2' },
        },
      },
      (error, stats) => {
        if (error || !stats) reject(error);
        else if (stats.hasErrors()) reject(new Error(stats.toString({ all: false, errors: true })));
        else resolve(stats);
      },
    );
  });

const everything = { external: ['fastify'] };
const alone = { external: EXTERNAL };
const CASES: [string, Bundler, Kind][] = [
  ['esbuild, an ES module with ioredis in it', byEsbuild, { format: 'esm', ...everything, minify: false }],
  ['esbuild, a minified ES module with ioredis in it', byEsbuild, { format: 'esm', ...everything, minify: true }],
  ['esbuild, an ES module beside ioredis', byEsbuild, { format: 'esm', ...alone, minify: false }],
  ['esbuild, a minified ES module beside ioredis', byEsbuild, { format: 'esm', ...alone, minify: true }],
  ['esbuild, CommonJS with ioredis in it', byEsbuild, { format: 'cjs', ...everything, minify: false }],
  ['esbuild, minified CommonJS with ioredis in it', byEsbuild, { format: 'cjs', ...everything, minify: true }],
  ['esbuild, CommonJS beside ioredis', byEsbuild, { format: 'cjs', ...alone, minify: false }],
  ['rollup, a minified ES module with ioredis in it', byRollup, { format: 'esm', ...everything, minify: true }],
  ['rollup, an ES module beside ioredis', byRollup, { format: 'esm', ...alone, minify: false }],
  ['rollup, CommonJS with ioredis in it', byRollup, { format: 'cjs', ...everything, minify: false }],
  ['rolldown, a minified ES module with ioredis in it', byRolldown, { format: 'esm', ...everything, minify: true }],
  ['rolldown, minified CommonJS with ioredis in it', byRolldown, { format: 'cjs', ...everything, minify: true }],
  ['rolldown, an ES module beside ioredis', byRolldown, { format: 'esm', ...alone, minify: true }],
  ['vite, a minified ES module with ioredis in it', byVite, { format: 'esm', ...everything, minify: true }],
  ['esbuild and swc, an ES module with ioredis in it', bySwc, { format: 'esm', ...everything, minify: true }],
  ['esbuild and terser, CommonJS with ioredis in it', byTerser, { format: 'cjs', ...everything, minify: true }],
  ['webpack, a minified ES module with ioredis in it', byWebpack, { format: 'esm', ...everything, minify: true }],
  ['webpack, an ES module beside ioredis', byWebpack, { format: 'esm', ...alone, minify: false }],
  ['webpack, minified CommonJS with ioredis in it', byWebpack, { format: 'cjs', ...everything, minify: true }],
];

let packed: PackedPackage;
let project: Project;

beforeAll(async () => {
  packed = await packPackage();
  project = await packed.createProject('service', EXTERNAL);
}, 300_000);

afterAll(() => packed?.remove());

describe.each(CASES)('bundled by %s', (name, bundler, kind) => {
  const extension = kind.format === 'esm' ? 'mjs' : 'cjs';
  let folder: string;

  beforeAll(async () => {
    // Beside the project, so that nothing is found but what is meant to be.
    folder = join(project.folder, '..', name.replaceAll(/\W+/g, '-'));
    const sources = Object.fromEntries(
      ENTRIES.map((entry) => [entry, join(project.folder, `${entry}.${kind.format}.mjs`)]),
    ) as Record<Entry, string>;
    await mkdir(folder, { recursive: true });
    for (const entry of ENTRIES) await writeFile(sources[entry], programOf(entry, kind.format));
    for (const external of kind.external) await linkPackage(folder, external);
    await bundler(sources, folder, kind);
  }, 300_000);

  it.each(ENTRIES)('the entry %s works, and is fast unless it is the cork', async (entry) => {
    const fast = entry === 'cork' ? {} : { fast: true };
    expect(await runProgram(join(folder, `${entry}.${extension}`))).toEqual({ value: 'v', right: true, ...fast });
  });
});

it('webpack has nothing to warn of in any entry that is loaded by require()', async () => {
  const entry = join(project.folder, 'required.cjs');
  const required = ['', '/coalesce', '/cork', '/fastify', '/prometheus'].map(
    (name) => `require('ioredis-coalesce${name}');`,
  );
  await writeFile(entry, required.join('\n'));
  const folder = join(project.folder, '..', 'webpack-required');
  const stats = await byWebpack({ required: entry }, folder, { format: 'cjs', ...alone, minify: false });
  expect(stats.toJson({ all: false, warnings: true }).warnings?.map(({ message }) => message)).toEqual([]);
});

it('rollup makes one file of a top-level await that registers the Fastify plugin', async () => {
  const input = join(project.folder, 'single.mjs');
  const file = join(project.folder, 'single-bundle.mjs');
  await writeFile(input, programOf('fastify', 'esm'));
  const bundle = await rollup({ input, external: ['fastify', 'ioredis'], plugins: rollupPlugins(), onwarn: () => {} });
  await bundle.write({ file, format: 'esm', inlineDynamicImports: true });
  await bundle.close();
  expect(await runProgram(file)).toEqual({ value: 'v', right: true, fast: true });
});

/** CommonJS has no `await` outside of functions. */
function programOf(entry: Entry, format: Kind['format']): string {
  const lines = PROGRAMS[entry].split('\n').map((line) => line.trim());
  const imports = lines.filter((line) => line.startsWith('import '));
  const body = lines.filter((line) => !line.startsWith('import ')).join('\n');
  return [...imports, REPORT, format === 'esm' ? body : `(async () => {${body}})();`].join('\n');
}
