/** Only clients whose code was read are coalesced: `src/host/recognize.ts`. */
import { execFile } from 'node:child_process';
import { appendFileSync, cpSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type BuildOptions, build } from 'esbuild';
import type { Redis } from 'ioredis';
import { CODES, type CoalesceOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, describe, expect, it } from 'vitest';
import { type Change, type CopiedHost, copyHost } from '../helpers/changed-hosts.js';
import { endWithTest, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';
import { instrument } from '../observability/helpers/open-telemetry.js';

expectWarnings(CODES.UNKNOWN_CLIENT);

const CHANGED = 'ioredis 6.0.0, it or a dependency changed';
const REWRITTEN = 'ioredis 6.0.0, rewritten as it was loaded';
const SRC = fileURLToPath(new URL('../../src', import.meta.url));
const run = promisify(execFile);
const key = uniquePrefix('known-releases');
const copies: CopiedHost[] = [];
afterAll(() => {
  for (const { remove } of copies) remove();
});

function copy(...args: Parameters<typeof copyHost>): CopiedHost {
  const host = copyHost(...args);
  copies.push(host);
  return host;
}

/**
 * What became of a client of this copy: what it was taken for if it has the cork, else how many of its commands were
 * fast.
 */
async function use(host: CopiedHost, change?: Change, options?: CoalesceOptions): Promise<string | number> {
  const client = coalesce(await ready(endWithTest(new (host.load(change).Redis)(redisUrl()))), options);
  const prototype = Object.getPrototypeOf(client) as object;
  await client.set(key, 'value');
  expect(await Promise.all([client.get(key), client.getBuffer(key)])).toEqual(['value', Buffer.from('value')]);
  const { fastCommands, unknownClient, ground } = client.coalescer.stats();
  expect(ground).toBe(unknownClient === undefined ? 'fast' : 'cork');
  if (unknownClient !== undefined) expect(Object.hasOwn(prototype, 'setStatus')).toBe(true);
  return unknownClient ?? fastCommands;
}

const ioredis6 = copy('ioredis');

describe('a client of a release that is known', () => {
  it.each(['ioredis', 'ioredis5', 'iovalkey'])('is coalesced, wherever the package is: %s', async (name) => {
    expect(await use(copy(name))).toBeGreaterThan(1);
  });

  // Host: require-in-the-middle answers `require` from a cache of its own, past Node's lists of who requires whom.
  it('is coalesced below an APM, where another package has required what it requires', async () => {
    const { restore } = instrument();
    try {
      for (const name of ['ioredis', 'ioredis5', 'iovalkey']) {
        const host = copy(name);
        for (const required of ['denque', 'redis-parser', 'standard-as-callback']) createRequire(host.folder)(required);
        expect(await use(host)).toBeGreaterThan(1);
      }
    } finally {
      restore();
    }
  });

  it('is coalesced, should its files be gone by now', async () => {
    const host = copy('ioredis');
    const { Redis } = host.load();
    rmSync(host.folder, { recursive: true });
    const client = coalesce(endWithTest(new Redis(redisUrl())));
    await client.set(key, 'value');
    expect([await client.get(key), client.coalescer.enabled]).toEqual(['value', true]);
  });

  it('is coalesced if its class was extended, and layers have replaced methods before', async () => {
    const { Redis, Command } = ioredis6.load();
    const redis = Redis.prototype as unknown as Record<string, (...args: unknown[]) => unknown>;
    for (const prototype of [redis, Command.prototype]) {
      for (const name of ['sendCommand', 'connect', 'toWritable', 'stringifyArguments', 'transformReply']) {
        const original = prototype[name];
        if (original === undefined) continue;
        prototype[name] = function traced(...args) {
          return original.apply(this, args);
        };
      }
    }
    class Extended extends Redis {}
    const client = coalesce(endWithTest(new Extended(redisUrl())));
    await client.set(key, 'layered');
    expect([await client.get(key), client.coalescer.enabled]).toEqual(['layered', true]);
  });
});

describe('a client whose text was changed as it was loaded gets the cork', () => {
  // One in each file that matters, most of them in functions that cannot be reached from outside.
  const CHANGES: readonly (readonly [file: string, text: string | RegExp, by: string])[] = [
    ['Redis.js', 'flushQueue(error, options) {', 'flushQueue(error, options) { if (this.neverSet) return;'],
    ['Command.js', 'initPromise() {', 'initPromise() { this.made = true;'],
    ['DataHandler.js', 'returnReply(reply) {', 'returnReply(reply) { this.replies = (this.replies || 0) + 1;'],
    ['Pipeline.js', 'function generateMultiWithNodes', 'const added = 1; function generateMultiWithNodes'],
    ['Script.js', '"evalsha"', '"EVALSHA"'],
    ['autoPipelining.js', 'function executeAutoPipeline', 'const added = 1; function executeAutoPipeline'],
    ['transaction.js', '"use strict";', '"use strict"; const added = 1;'],
    ['tracing.js', 'function shouldTrace(channel) {', 'function shouldTrace(channel) { if (!channel) return false;'],
    ['replyTransformers.js', 'return result;', 'return (result);'],
    ['redis/event_handler.js', 'function abortError', 'const added = 1; function abortError'],
    ['resp/decoder.js', '"use strict";', '"use strict"; const added = 1;'],
    ['utils/Commander.js', 'function generateFunction', 'const added = 1; function generateFunction'],
    ['utils/index.js', '"use strict";', '"use strict"; const added = 1;'],
    ['SubscriptionSet.js', '"use strict";', '"use strict"; const added = 1;'],
    ['himport/HimportCoordinator.js', '"use strict";', '"use strict"; const added = 1;'],
    ['utils/argumentParsers.js', '"use strict";', '"use strict"; const added = 1;'],
    ['utils/debug.js', '"use strict";', '"use strict"; const added = 1;'],
    ['connectors/StandaloneConnector.js', '"use strict";', '"use strict"; const added = 1;'],
  ];

  it.each(CHANGES)('%s', async (file, text, by) => {
    expect(await use(ioredis6, { file, text, by })).toBe(REWRITTEN);
  });

  it.each(['index', 'ConnectionPool', 'DelayQueue', 'util'])(
    'a Cluster and its nodes, by cluster/%s.js, but not a client that is coalesced before',
    async (name) => {
      const file = `cluster/${name}.js`;
      const { Redis, Cluster } = ioredis6.load({ file, text: '"use strict";', by: '"use strict"; const added = 1;' });
      const lone = coalesce(endWithTest(new Redis(redisUrl())));
      const cluster = coalesce(new Cluster([], { lazyConnect: true }), { splitKeys: true });
      const node = coalesce(new Redis(redisUrl(), { lazyConnect: true }));
      expect(lone.coalescer.enabled).toBe(true);
      for (const plain of [cluster, node]) {
        expect(plain.coalescer.stats().unknownClient).toBe(REWRITTEN);
        expect(Object.hasOwn(Object.getPrototypeOf(plain), 'setStatus')).toBe(true);
      }
    },
  );

  it.each(['connectors/SentinelConnector/index.js', 'errors/index.js', 'utils/lodash.js'])(
    'but not by %s',
    async (file) => {
      const change = { file, text: '"use strict";', by: '"use strict"; const added = 1;' };
      expect(await use(ioredis6, change)).toBeGreaterThan(1);
    },
  );

  it.each([
    ['ioredis', 'denque', 'index.js'],
    ['ioredis5', 'redis-parser', 'lib/parser.js'],
    ['iovalkey', 'standard-as-callback', 'built/index.js'],
  ])('one of %s, by another %s', async (name, dependency, file) => {
    const host = copy(name);
    const folder = join(host.folder, 'node_modules', dependency);
    const { resolve } = createRequire(import.meta.url);
    cpSync(dirname(resolve(`${dependency}/package.json`)), folder, { recursive: true, dereference: true });
    expect(await use(host)).toBeGreaterThan(1);
    appendFileSync(join(folder, file), '// changed');
    expect(await use(host)).toMatch(/, it or a dependency changed$/);
  });

  it('of ioredis 5, too, whose decoder is a package of its own', async () => {
    const change = { file: 'DataHandler.js', text: 'returnReply(reply) {', by: 'returnReply(reply) { void 0;' };
    expect(await use(copy('ioredis5'), change)).toMatch(/^ioredis 5\.\d+\.\d+, rewritten as it was loaded$/);
  });
});

describe('an unknown client', () => {
  const change: Change = {
    file: 'DataHandler.js',
    text: 'shiftCommand(reply) {',
    by: 'shiftCommand(reply) { this.shifted = true;',
  };
  const future = copy('ioredis', '6.1.0', change);

  it('of a future release gets the cork; a Cluster as well', async () => {
    expect(await use(future)).toBe('ioredis 6.1.0');
    const cluster = coalesce(new (future.load().Cluster)([], { lazyConnect: true }) as Redis);
    expect(cluster.coalescer.stats().unknownClient).toBe('ioredis 6.1.0');
  });

  it('that is a Cluster splits keys, since the option changes what a call means, and has the cork', async () => {
    const { Cluster } = future.load();
    const cluster = coalesce(new Cluster([], { lazyConnect: true }) as Redis, { splitKeys: true });
    expect(Object.getPrototypeOf(cluster)).toBe(Cluster.prototype);
    cluster.sendCommand = async (command) => (command as unknown as { args: string[] }).args.map((key) => `of ${key}`);
    expect(await cluster.mget('a', 'b', 'a')).toEqual(['of a', 'of b', 'of a']);
    cluster.sendCommand = async (command) => (command as unknown as { args: string[] }).args.length;
    expect(await cluster.exists('a', 'b', 'a')).toBe(3);
  });

  it('whose file was patched gets the cork', async () => {
    expect(await use(copy('ioredis', undefined, change))).toBe(CHANGED);
  });

  it('loses the options that need the fast path, and the warning says so', async () => {
    const { stderr } = await program('on', ', { cache: true, maxPending: 5 }');
    expect(stderr).toMatch(/; ignored: maxPending, cache\n/);
  });

  it('causes one warning, in which it is named, and a line at exit', async () => {
    const { stderr } = await program('stats');
    expect(stderr.match(/COALESCE_WARN_UNKNOWN_CLIENT/g)).toHaveLength(1);
    expect(stderr).toContain(
      'ioredis-coalesce: ioredis 6.1.0 is not a release that this version of ioredis-coalesce knows',
    );
    expect(stderr).toMatch(
      /^ioredis-coalesce: 127\.0\.0\.1:\d+\/0, corked since ioredis 6\.1\.0 is not a release .*, 2 clients that have ended: /m,
    );
  });

  const patched = copy('ioredis', undefined, change);
  it.each<[string, CopiedHost, string[], string]>([
    ['a later release', future, [], ': update ioredis-coalesce, '],
    ['a patched copy', patched, [], ': its files, or those of a dependency, were patched; '],
    [
      'rewritten as it is loaded',
      ioredis6,
      ['--require', loader(ioredis6)],
      ', a patch or a loader has rewritten more ',
    ],
  ])('%s: the warning says what to do', async (_, { folder }, flags, cure) => {
    const file = await bundle(folder, [`${folder}/built/index.js`]);
    const { stdout, stderr } = await run(process.execPath, [...flags, file, redisUrl()]);
    expect([stdout, stderr]).toEqual(['cork\n', expect.stringContaining(cure)]);
  });

  /** A file that makes `change` to what is loaded. */
  function loader({ folder }: CopiedHost): string {
    const file = join(folder, 'loader.cjs');
    const { text, by } = change;
    writeFileSync(
      file,
      `const { prototype } = require('node:module');
       const { _compile } = prototype;
       prototype._compile = function compile(text, file) {
         return _compile.call(this, text.replace(${JSON.stringify(text)}, ${JSON.stringify(by)}), file);
       };`,
    );
    return file;
  }

  /** Uses two clients of the future release. */
  async function program(value: string, options?: string): Promise<{ stdout: string; stderr: string }> {
    const file = await bundle(future.folder, [`${future.folder}/built/index.js`], {}, twoClients(options));
    return run(process.execPath, [file, redisUrl()], { env: { ...process.env, IOREDIS_COALESCE: value } });
  }
});

describe('in a bundle, where no file of the client can be found', () => {
  it.each([true, false])('a release that is known is coalesced (minified: %s)', async (minify) => {
    const file = await bundle(ioredis6.folder, [], { minify });
    expect(await run(process.execPath, [file, redisUrl()])).toEqual({ stdout: 'fast\n', stderr: '' });
  });

  it.each<Change>([
    {
      file: 'Redis.js',
      text: 'flushQueue(error, options) {',
      by: 'flushQueue(error, options) { if (this.never) return;',
    },
    { file: 'Command.js', text: 'initPromise() {', by: 'async initPromise() {' },
    { file: 'Pipeline.js', text: 'sendCommand(command) {', by: 'sendCommand(command, stream) {' },
    { file: 'Pipeline.js', text: 'let pipelineSlot;', by: 'let pipelineSlot; this.ended = true;' },
    { file: 'utils/Commander.js', text: 'this.options.keyPrefix', by: 'this.options.keyPrefixes' },
    {
      file: 'Redis.js',
      text: 'resetCommandQueue() {',
      by: '#queue = []; resetCommandQueue() { this.#queue.length = 0;',
    },
  ])('one that was changed gets the cork: $file, $by', async (change) => {
    const file = await bundle(copy('ioredis', undefined, change).folder, []);
    const { stdout, stderr } = await run(process.execPath, [file, redisUrl()]);
    expect(stdout).toBe('cork\n');
    expect(stderr).toMatch(/COALESCE_WARN_UNKNOWN_CLIENT.*: it is part of a bundle, or came by a loader; /);
  });
});

const twoClients = (options = '') => `
  const clients = [new Redis(process.argv[2]), new Redis(process.argv[2])].map((client) => coalesce(client${options}));
  Promise.all(clients.map((client) => client.get('key'))).then(() => {
    console.log(...new Set(clients.map(({ coalescer }) => coalescer.stats().ground)));
    for (const client of clients) client.disconnect();
  });`;

/** A program with the package in `host`: by default it uses two clients, and prints the ground that they stand on. */
async function bundle(
  host: string,
  external: string[],
  options: BuildOptions = {},
  code = twoClients(),
): Promise<string> {
  const entry = join(host, 'program.ts');
  writeFileSync(
    entry,
    `import { coalesce } from 'ioredis-coalesce/coalesce';
     import { Cluster, Redis } from ${JSON.stringify(`${host}/built/index.js`)};
     ${code}`,
  );
  const outfile = join(host, `program${options.minify ? '.min' : ''}.cjs`);
  const alias = { 'ioredis-coalesce': SRC };
  await build({ ...options, entryPoints: [entry], outfile, alias, external, bundle: true, platform: 'node' });
  return outfile;
}
