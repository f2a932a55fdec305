import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { cp, mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { steps } from '../../tools/release-steps.js';
import { type PackedPackage, type Project, packPackage, ROOT } from '../helpers/packed.js';

const run = promisify(execFile);
const TSC = createRequire(import.meta.url).resolve('typescript/bin/tsc');
const PROGRAMS = fileURLToPath(new URL('../types/programs/', import.meta.url));
const TIMEOUT = 180_000;

interface Published {
  readonly files: readonly { readonly path: string }[];
}

let packed: PackedPackage;
/** Has ioredis and types. */
let project: Project;
/** The same, but with iovalkey in place of ioredis. */
let withoutIoredis: Project;
/** A service of Fastify. */
let fastifyUsers: Project;

beforeAll(async () => {
  packed = await packPackage();
  project = await packed.createProject('project', ['ioredis', '@types/node']);
  withoutIoredis = await packed.createProject('without-ioredis', ['iovalkey', '@types/node']);
  fastifyUsers = await packed.createProject('fastify-users', ['ioredis', '@types/node', 'fastify', '@fastify/redis']);
  await fastifyUsers.write('package.json', JSON.stringify({ name: 'users', private: true, type: 'module' }));
}, 300_000);

afterAll(() => packed?.remove());

test('the package holds the build, its documents, the dashboard and the alert rules, nothing else', () => {
  const outside = packed.files.filter((path) => !path.startsWith('dist/'));
  const documents = readdirSync(join(ROOT, 'docs')).filter((file) => /\.(md|yml)$|dashboard/.test(file));
  const docs = documents.map((file) => `docs/${file}`);
  expect(outside.sort()).toEqual(
    ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md', ...docs, 'package.json'].sort(),
  );
  const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { exports: object };
  const named = JSON.stringify(exports).match(/(?<=".\/)dist\/[^"]+/g);
  expect(named).toHaveLength(39);
  expect(packed.files).toEqual(expect.arrayContaining(named as string[]));
});

test('the package holds no source maps: its code is as readable as its sources', () => {
  expect(packed.files.filter((path) => path.endsWith('.map'))).toEqual([]);
});

test('a dry run of the release would publish these files, and sends nothing to the registry', async () => {
  const sent: string[] = [];
  const registry = createServer(({ method = '' }, response) => {
    sent.push(method);
    response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
  const { port } = registry.address() as AddressInfo;
  const [npm = '', ...args] = steps({ dryRun: true }).at(-1)?.command ?? [];
  const flags = ['--ignore-scripts', '--json', '--registry', `http://127.0.0.1:${port}/`];
  try {
    const { stdout } = await run(npm, [...args, ...flags], { cwd: ROOT });
    // By name from npm 11 on.
    const printed = JSON.parse(stdout) as Published | Readonly<Record<string, Published>>;
    const { files } = ('files' in printed ? printed : printed['ioredis-coalesce']) as Published;
    expect(files.map(({ path }) => path).sort()).toEqual([...packed.files].sort());
    expect(sent.filter((method) => method !== 'GET')).toEqual([]);
  } finally {
    registry.close();
  }
});

test('the classes have the names that they are imported by, in each form of the build', async () => {
  const show = 'console.log(JSON.stringify([Redis.name, Cluster.name, Redis.createClient.name]))';
  await project.write('names.mjs', `import { Cluster, Redis } from 'ioredis-coalesce'; ${show}`);
  await project.write('names.cjs', `const { Cluster, Redis } = require('ioredis-coalesce'); ${show}`);
  const bundled = join(project.folder, 'node_modules/ioredis-coalesce/dist/bundler/index.js');
  await project.write('names-bundled.mjs', `import { Cluster, Redis } from ${JSON.stringify(bundled)}; ${show}`);
  for (const file of ['names.mjs', 'names.cjs', 'names-bundled.mjs']) {
    expect(await project.run(file)).toEqual(['Redis', 'Cluster', 'createClient']);
  }
});

test.each(['node', 'development'])('an ES module imports the class and coalesce(): %s', async (condition) => {
  await project.write(
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
  expect(await project.run('esm.mjs', [`--conditions=${condition}`])).toEqual({
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
  await project.write(
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
  expect(await project.run('common.cjs')).toEqual({ value: 'v', batches: true, same: true });
});

test('two copies of the package in one process, as beside a bundle, work on the same clients', async () => {
  await project.write(
    'two-copies.cjs',
    `const { Redis: Plain, Cluster } = require('ioredis');
     const common = require('ioredis-coalesce/coalesce');
     const [url, prefix] = process.argv.slice(2);
     const warnings = [];
     process.on('warning', ({ code }) => warnings.push(code));
     (async () => {
       const esm = await import('./node_modules/ioredis-coalesce/dist/bundler/coalesce.js');
       const found = { copies: esm.coalesce === common.coalesce ? 1 : 2 };
       for (const [name, first, second] of [['esm first', esm, common], ['cjs first', common, esm]]) {
         const client = first.coalesce(new Plain(url), { maxBatchSize: 7 });
         const { coalescer } = client;
         const same = second.coalesce(client, { maxBatchSize: 7 }).coalescer === coalescer;
         const replies = await Promise.all([client.echo('a'), second.coalesce(client).echo('b')]);
         // In flight by one copy, then taken over by the other.
         const inFlight = [client.echo('c'), client.call('ECHO', 'd')];
         coalescer.detach();
         second.coalesce(client, { shareReads: true });
         const more = [client.echo('e'), client.get(prefix), client.get(prefix)];
         found[name] = [same, ...replies, ...(await Promise.all([...inFlight, ...more])), client.coalescer.options.shareReads];
         first.coalesce(client);
         await client.echo('f');
         found[name].push(client.coalescer.stats().fastCommands > 0);
         client.disconnect();
       }
       const idle = esm.coalesce(new Plain({ lazyConnect: true }), false);
       found.idle = [idle.coalescer.enabled, common.coalesce(idle).coalescer.enabled];
       for (const copy of [esm, common]) copy.coalesce({ get() {}, set() {}, quit() {} });
       await new Promise(setImmediate);
       found.warnings = warnings;
       console.log(JSON.stringify(found));
     })();`,
  );
  const answers = [true, 'a', 'b', 'c', 'd', 'e', null, null, true, true];
  expect(await project.run('two-copies.cjs')).toEqual({
    copies: 2,
    'esm first': answers,
    'cjs first': answers,
    idle: [false, true],
    warnings: ['COALESCE_WARN_TEST_DOUBLE'],
  });
});

test('two copies of the metrics add to one registry', async () => {
  const both = await packed.createProject('metrics', ['ioredis', 'prom-client']);
  await both.write(
    'metrics.cjs',
    `const { Redis } = require('ioredis');
     const { register } = require('prom-client');
     const { coalesce } = require('ioredis-coalesce/coalesce');
     const common = require('ioredis-coalesce/prometheus');
     (async () => {
       const esm = await import('./node_modules/ioredis-coalesce/dist/bundler/prometheus.js');
       const clients = ['a', 'b'].map(() => coalesce(new Redis(process.argv[2])));
       common.collectMetrics(clients[0], { labels: { client: 'a' } });
       esm.collectMetrics(clients[1], { labels: { client: 'b' } });
       const metrics = await register.metrics();
       console.log(JSON.stringify(metrics.match(/^redis_coalesce_attached.*$/gm)));
       for (const client of clients) client.disconnect();
     })();`,
  );
  expect(await both.run('metrics.cjs')).toEqual([
    'redis_coalesce_attached{client="a"} 1',
    'redis_coalesce_attached{client="b"} 1',
  ]);
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
    await project.write(
      'module.mts',
      `import { Redis as Plain } from 'ioredis';
       import Redis, { coalesce, Redis as Same } from 'ioredis-coalesce';
       import { coalesce as other } from 'ioredis-coalesce/coalesce';
       ${body}`,
    );
    await project.write(
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
  'typical user code compiles for %s: a service, a Cluster, custom scripts, a Fastify app',
  async (_name, type, options) => {
    const users = await packed.createProject(`users-${type}-${options.module}`, [
      'ioredis',
      '@types/node',
      'fastify',
      '@fastify/redis',
    ]);
    await users.write('package.json', JSON.stringify({ name: 'users', private: true, type }));
    for (const file of ['service.ts', 'app.ts']) await cp(join(PROGRAMS, file), join(users.folder, file));
    // The test above looks into the declarations themselves.
    await typecheck(users, ['service.ts', 'app.ts'], { ...options, skipLibCheck: true });
  },
  3 * TIMEOUT,
);

test.each([
  ['ours alone', ''],
  ['@fastify/redis before ours', "import '@fastify/redis';"],
  ['@fastify/redis after ours', "import 'ioredis-coalesce/fastify'; import '@fastify/redis';"],
])(
  'app.redis has one type, coalescer included: %s',
  async (_name, imports) => {
    await fastifyUsers.write(
      'redis.ts',
      `${imports}
       import fastifyRedis from 'ioredis-coalesce/fastify';
       import { fastify } from 'fastify';
       const app = fastify();
       app.register(fastifyRedis, { url: 'redis://127.0.0.1', coalesce: { maxBatchSize: 5 } });
       const value: Promise<string | null> = app.redis.get('k');
       const batches: number = app.redis.coalescer.stats().batches;
       const ofNamespace: number | undefined = app.redis.sessions?.coalescer.stats().batches;
       // @ts-expect-error no such member
       app.redis.coalescer.statistics();
       export const all = [value, batches, ofNamespace];`,
    );
    await typecheck(fastifyUsers, ['redis.ts']);
  },
  TIMEOUT,
);

test.each([
  ['nodenext', {}],
  ['node16', { module: 'Node16' }],
  ['bundler', { module: 'ESNext', moduleResolution: 'bundler' }],
  ['node10', { module: 'CommonJS', moduleResolution: 'node10', esModuleInterop: true }],
])(
  'the plugin has its types beside ioredis 5, although @fastify/redis brings ioredis 6: %s',
  async (resolution, options) => {
    const users = await packed.createProject(`fastify-ioredis-5-${resolution}`, [
      'ioredis=ioredis5',
      '@types/node',
      'fastify',
      '@fastify/redis',
    ]);
    await users.write(
      'redis.ts',
      `import fastifyRedis from 'ioredis-coalesce/fastify';
       import { fastify } from 'fastify';
       const app = fastify();
       app.register(fastifyRedis, { url: 'redis://127.0.0.1', coalesce: { maxBatchSize: 5 } });
       export const batches: number | undefined = app.redis.sessions?.coalescer.stats().batches;`,
    );
    await typecheck(users, ['redis.ts'], options);
  },
  TIMEOUT,
);

test(
  'TypeScript also finds the types with ioredis 5, whose classes are not generic',
  async () => {
    const withIoredis5 = await packed.createProject('with-ioredis-5', ['ioredis=ioredis5', '@types/node']);
    await withIoredis5.write(
      'drop-in.mts',
      `import { Redis as Plain } from 'ioredis';
       import Redis, { Cluster, coalesce, type ScanStreamOptions } from 'ioredis-coalesce';
       const redis: Redis = new Redis({ lazyConnect: true, coalesce: { maxBatchSize: 100 } });
       const copy: Redis = redis.duplicate({ db: 1, coalesce: false });
       const plain: Plain = copy;
       const value: Promise<string | null> = copy.get('k');
       const cluster: Cluster = new Redis.Cluster([{ host: '127.0.0.1', port: 1 }], { coalesce: {} }).duplicate();
       const members: Promise<string[]> = cluster.smembers('k');
       const scan: ScanStreamOptions = { match: 'a*' };
       // @ts-expect-error no such option
       new Redis({ coalesce: { maxBatchSise: 1 } });
       // @ts-expect-error no such method
       redis.gett('k');
       export const all = [plain, value, members, redis.scanStream(scan), coalesce(plain).coalescer.enabled];`,
    );
    await typecheck(withIoredis5, ['drop-in.mts']);
  },
  TIMEOUT,
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
    await withoutIoredis.write('wrap.mjs', source.replace(' as string', ''));
    expect(await withoutIoredis.run('wrap.mjs')).toEqual({ value: 'v', batches: true });

    await withoutIoredis.write('wrap.mts', source.replace('import Valkey', 'import { Redis as Valkey }'));
    await typecheck(withoutIoredis, ['wrap.mts']);
  },
  TIMEOUT,
);

test.each([
  ['missing.mjs', "import 'ioredis-coalesce';"],
  ['missing.cjs', "require('ioredis-coalesce');"],
])('the drop-in classes without ioredis are an error that says what to do (%s)', async (file, source) => {
  await withoutIoredis.write(file, source);
  await expect(withoutIoredis.run(file)).rejects.toThrow(
    'ioredis-coalesce: the drop-in classes need the package "ioredis" (version 5 or 6), which is not installed: ' +
      'run "npm install ioredis", or import { coalesce } from "ioredis-coalesce/coalesce"',
  );
});

test.each([
  ['metrics.mjs', "import 'ioredis-coalesce/prometheus';"],
  ['metrics.cjs', "require('ioredis-coalesce/prometheus');"],
])('the metrics without prom-client are an error that says what to do (%s)', async (file, source) => {
  await withoutIoredis.write(file, source);
  await expect(withoutIoredis.run(file)).rejects.toThrow(
    'ioredis-coalesce: ioredis-coalesce/prometheus needs the package "prom-client" (version 15), which is not installed: ' +
      'run "npm install prom-client"',
  );
});

test.each([
  ['ioredis-coalesce', 'ioredis', '4.28.5', 'the drop-in classes need the package "ioredis" (version 5 or 6)', 6],
  ['ioredis-coalesce/prometheus', 'prom-client', '14.2.0', 'needs the package "prom-client" (version 15)', 15],
  ['ioredis-coalesce/fastify', '@fastify/redis', '7.2.0', 'needs the package "@fastify/redis" (version 9)', 9],
  ['ioredis-coalesce/fastify', 'ioredis', '4.28.5', 'needs the package "ioredis" (version 5 or 6)', 6],
])(
  '%s beside %s %s says which version it needs and which one is installed',
  async (entry, peer, found, needed, good) => {
    const old = await packed.createProject(`old-${peer.replace('/', '-')}-${entry.replace('/', '-')}`, []);
    for (const name of new Set(['ioredis', '@fastify/redis', peer])) {
      const version = name === peer ? found : '9.0.0';
      await mkdir(join(old.folder, 'node_modules', name), { recursive: true });
      await old.write(`node_modules/${name}/package.json`, JSON.stringify({ name, version }));
      await old.write(`node_modules/${name}/index.js`, 'module.exports = class Redis {};');
    }
    await old.write('old.mjs', `import '${entry}';`);
    await old.write('old.cjs', `require('${entry}');`);
    const advice = `${needed}, but version ${found} is installed: run "npm install ${peer}@${good}"`;
    for (const file of ['old.mjs', 'old.cjs']) await expect(old.run(file)).rejects.toThrow(advice);
  },
);

test.each([
  ['ioredis-coalesce', 'MODULE_NOT_FOUND'],
  ['ioredis-coalesce/prometheus', 'MODULE_NOT_FOUND'],
  ['ioredis-coalesce/fastify', 'MODULE_NOT_FOUND'],
])('a caught import() of %s without its peer is not an unhandled rejection too', async (entry, code) => {
  const file = `optional-${entry.replace('/', '-')}.mjs`;
  await withoutIoredis.write(
    file,
    `const found = { unhandled: 0 };
     process.on('unhandledRejection', () => (found.unhandled += 1));
     try { await import('${entry}'); } catch (error) { found.code = error.code; }
     await new Promise((resolve) => setTimeout(resolve, 50));
     console.log(JSON.stringify(found));`,
  );
  expect(await withoutIoredis.run(file)).toEqual({ unhandled: 0, code });
});

async function typecheck({ folder, write }: Project, files: readonly string[], more: object = {}): Promise<void> {
  const options = { module: 'NodeNext', target: 'ES2022', strict: true, noEmit: true, types: ['node'], ...more };
  await write('tsconfig.json', JSON.stringify({ compilerOptions: options, files }));
  try {
    await run(process.execPath, [TSC, '-p', '.'], { cwd: folder });
  } catch (error) {
    throw new Error(`tsc found errors:\n${(error as { stdout: string }).stdout}`);
  }
}
