/**
 * The entry `ioredis-coalesce/cork`: it stands alone, in each form of the package, and serves releases that nobody here
 * has seen.
 */
import { execFile } from 'node:child_process';
import { cp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { builtinModules, createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PackedPackage, type Project, packPackage, ROOT } from '../helpers/packed.js';
import { redisUrl } from '../helpers/redis.js';

const run = promisify(execFile);
const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');

let packed: PackedPackage;
/** Without the package's own dependencies. */
let project: Project;
let dist: string;

beforeAll(async () => {
  packed = await packPackage();
  project = await packed.createProject('cork', ['ioredis', 'ioredis5', 'iovalkey', '@types/node']);
  dist = join(project.folder, 'node_modules/ioredis-coalesce/dist');
  const { dependencies } = JSON.parse(await readFile(join(dist, '../package.json'), 'utf8')) as {
    dependencies: object;
  };
  for (const name of Object.keys(dependencies)) await rm(join(project.folder, 'node_modules', name));
}, 300_000);

afterAll(() => packed?.remove());

/** What a file loads, and so on: files of the package, and the names of all else. */
async function loadedBy(file: string, found = new Map<string, string>()): Promise<Map<string, string>> {
  const text = await readFile(file, 'utf8');
  found.set(file, text);
  for (const { fileName } of ts.preProcessFile(text, true, true).importedFiles) {
    const next = fileName.startsWith('.') ? join(dirname(file), fileName) : fileName;
    if (found.has(next)) continue;
    if (fileName.startsWith('.')) await loadedBy(next, found);
    else found.set(next, '');
  }
  return found;
}

describe('the built entry', () => {
  it.each(['cork.cjs', 'bundler/cork.js'])(
    '%s loads src/cork, how options are checked, and a part of src/util, and nothing but Node',
    async (entry) => {
      const loaded = await loadedBy(join(dist, entry));
      const sources = [...loaded.values()].flatMap((text) => [...text.matchAll(/^\/\/ (src\/.*|node_modules\/.*)$/gm)]);
      const names = sources.map(([, name = '']) => name);
      expect(names).toEqual(
        expect.arrayContaining(['src/cork/cork.ts', 'src/cork/stream-cork.ts', 'src/util/busy-poll.ts']),
      );
      expect(names.filter((name) => !/^src\/((cork|util)\/|(options|environment|errors)\.ts$)/.test(name))).toEqual([]);
      const others = [...loaded.keys()].filter((file) => !file.startsWith(dist));
      expect(others.length).toBeGreaterThan(0);
      expect(others.filter((name) => !builtinModules.includes(name.replace('node:', '')))).toEqual([]);
    },
  );

  it('loads whatever the other entries need only with them', async () => {
    const loaded = await loadedBy(join(dist, 'coalesce.cjs'));
    expect([...loaded.keys()]).toContain('debug');
  });
});

const program = (host: string) => `
  const [url, prefix] = process.argv.slice(2);
  const client = new Client(url, { retryStrategy: () => 5 });
  await new Promise((ready) => client.once('ready', ready));
  const { stream } = client;
  const corked = cork(client);
  let writes = 0;
  const { _write, _writev } = stream;
  stream._write = function (...args) { writes += 1; return _write.apply(this, args); };
  stream._writev = function (...args) { writes += 1; return _writev.apply(this, args); };
  const key = prefix + '${host}';
  const replies = await Promise.all([client.set(key, 'v'), ...Array.from({ length: 98 }, () => client.get(key)), client.getdel(key)]);
  const isBatched = writes < 50;
  corked.undo();
  console.log(JSON.stringify({ right: replies.every((reply, at) => reply === (at === 0 ? 'OK' : 'v')), isBatched, same: cork === other }));
  process.exit();`;

describe.each(['ioredis', 'ioredis5', 'iovalkey'])('a client of %s is corked', (host) => {
  const expected = { right: true, isBatched: true, same: true };

  it('by import', async () => {
    await project.write(
      `${host}.mjs`,
      `import { createRequire } from 'node:module';
       import { Redis as Client } from '${host}';
       import { cork } from 'ioredis-coalesce/cork';
       const { cork: other } = createRequire(import.meta.url)('ioredis-coalesce/cork');
       ${program(host)}`,
    );
    expect(await project.run(`${host}.mjs`)).toEqual(expected);
  });

  it('by require()', async () => {
    await project.write(
      `${host}.cjs`,
      `const { Redis: Client } = require('${host}');
       const { cork } = require('ioredis-coalesce/cork');
       (async () => {
         const { cork: other } = await import('ioredis-coalesce/cork');
         ${program(host)}
       })();`,
    );
    expect(await project.run(`${host}.cjs`)).toEqual(expected);
  });
});

it('two copies cork a stream once, and each takes off what the other has put on', async () => {
  await project.write(
    'copies.cjs',
    `const { Redis } = require('ioredis');
     const common = require('ioredis-coalesce/cork');
     (async () => {
       const esm = await import('./node_modules/ioredis-coalesce/dist/bundler/cork.js');
       const client = new Redis(process.argv[2]);
       await client.ping();
       const { stream } = client;
       const listeners = () => stream.listenerCount('data') + client.listenerCount('connect') + process.listenerCount('exit');
       const before = listeners();
       const found = { copies: esm.cork === common.cork ? 1 : 2, same: [], left: [], replies: [] };
       for (const [first, second] of [[common, esm], [esm, common]]) {
         const corked = first.cork(client);
         const { write } = stream;
         found.same.push(second.cork(client) === corked, stream.write === write, second.corkOf(client) === corked);
         found.replies.push(...await Promise.all([client.echo('a'), client.echo('b')]));
         second.corkOf(client).undo();
         found.left.push(Object.hasOwn(stream, 'write'), first.corkOf(client) === undefined, listeners() - before);
       }
       console.log(JSON.stringify(found));
       client.disconnect();
     })();`,
  );
  expect(await project.run('copies.cjs')).toEqual({
    copies: 2,
    same: [true, true, true, true, true, true],
    left: [false, true, 0, false, true, 0],
    replies: ['a', 'b', 'a', 'b'],
  });
});

it.each([
  ['NodeNext', { module: 'NodeNext' }, ['cork.mts', 'cork.cts']],
  ['a bundler', { module: 'ESNext', moduleResolution: 'bundler' }, ['cork.mts']],
])(
  'TypeScript finds the types: %s',
  async (_name, options, files) => {
    const source = `
      import { Redis } from 'ioredis';
      import { type Corked, type CorkOptions, cork, corkStream } from 'ioredis-coalesce/cork';
      const options: CorkOptions = { schedule: 'tick', busyPoll: false, maxBatchBytes: 1000 };
      const client = new Redis({ lazyConnect: true });
      const corked: Corked = cork(client, options);
      corked.flush();
      corked.undo();
      // @ts-expect-error no such option
      cork(client, { maxBatchSize: 1 });
      // @ts-expect-error no stream
      corkStream('stream');
      export const all = [corkStream(client.stream)];`;
    for (const file of files) await project.write(file, source);
    const compilerOptions = { target: 'ES2022', strict: true, noEmit: true, types: ['node'], ...options };
    await project.write('tsconfig.json', JSON.stringify({ compilerOptions, files }));
    const { stdout } = await run(process.execPath, [TSC, '-p', '.'], { cwd: project.folder }).catch((error) => error);
    expect(stdout).toBe('');
  },
  180_000,
);

it('npm installs the package beside a future ioredis without a flag, and its clients are corked', async () => {
  const folder = join(project.folder, '../future');
  const future = join(folder, 'ioredis');
  await cp(join(ROOT, 'node_modules/ioredis'), future, { recursive: true });
  const manifest = JSON.parse(await readFile(join(future, 'package.json'), 'utf8')) as { dependencies: object };
  await writeFile(join(future, 'package.json'), JSON.stringify({ ...manifest, version: '6.1.0' }));
  const file = join(future, 'built/Redis.js');
  const text = await readFile(file, 'utf8');
  const changed = text.replace(
    'sendCommand(command, stream) {',
    'sendCommand(command, stream) { this.sent = (this.sent ?? 0) + 1;',
  );
  expect(changed).not.toBe(text);
  await writeFile(file, changed);

  // What both depend on comes from tarballs too, so that nothing is fetched.
  const folders = new Map<string, string>([['ioredis', future]]);
  const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { dependencies: object };
  const missing = [...Object.keys(manifest.dependencies), ...Object.keys(dependencies)];
  for (let name = missing.pop(); name !== undefined; name = missing.pop()) {
    if (folders.has(name)) continue;
    const from = join(ROOT, 'node_modules', name);
    folders.set(name, from);
    const own = JSON.parse(await readFile(join(from, 'package.json'), 'utf8')) as { dependencies?: object };
    missing.push(...Object.keys(own.dependencies ?? {}));
  }
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder, ...folders.values()];
  const { stdout } = await run('npm', pack, { cwd: folder });
  const tarballs = (JSON.parse(stdout) as { name: string; filename: string }[]).map(
    ({ name, filename }) => [name, `file:${join(folder, filename)}`] as const,
  );
  const parent = dirname(project.folder);
  const [own = ''] = (await readdir(parent)).filter((name) => name.endsWith('.tgz'));
  const needs = { ...Object.fromEntries(tarballs), 'ioredis-coalesce': `file:${join(parent, own)}` };
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'future', private: true, dependencies: needs }));
  await writeFile(join(folder, '.npmrc'), 'offline=true\naudit=false\nfund=false\nupdate-notifier=false\n');
  await run('npm', ['install'], { cwd: folder });

  const use = join(folder, 'use.mjs');
  await writeFile(
    use,
    `import { Redis } from 'ioredis';
       import { coalesce } from 'ioredis-coalesce/coalesce';
       const [, , url] = process.argv;
       const codes = [];
       process.on('warning', ({ code }) => codes.push(code));
       const client = coalesce(new Redis(url));
       await client.ping();
       const replies = await Promise.all(Array.from({ length: 50 }, (_, index) => client.echo(String(index))));
       const { mode, unknownClient, batches } = client.coalescer.stats();
       console.log(JSON.stringify({
         right: replies.every((reply, index) => reply === String(index)), sent: client.sent > 50, mode, unknownClient,
         isBatched: batches < 30, codes,
       }));
       process.exit();`,
  );
  const { stdout: printed } = await run(process.execPath, [use, redisUrl()]);
  expect(JSON.parse(printed)).toEqual({
    right: true,
    sent: true,
    mode: 'cork',
    unknownClient: 'ioredis 6.1.0',
    isBatched: true,
    codes: ['COALESCE_WARN_UNKNOWN_CLIENT'],
  });
}, 180_000);
