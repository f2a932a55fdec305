/** Only clients whose code was read are coalesced: `src/host/recognize.ts`. */
import { execFile } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

const changedIn = (differs: string) => `ioredis 6.0.0, of which ${differs} was changed`;
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
  const { fastCommands, unknownClient, mode } = client.coalescer.stats();
  expect(mode).toBe(unknownClient === undefined ? 'fast' : 'cork');
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

  it('is coalesced even if its files are gone by now', async () => {
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

describe('a client that was changed as it was loaded gets the cork', () => {
  const CHANGES: readonly (readonly [differs: string, file: string, text: string, by: string])[] = [
    [
      'client.flushQueue',
      'Redis.js',
      'flushQueue(error, options) {',
      'flushQueue(error, options) { if (this.never) return;',
    ],
    [
      'command.constructor',
      'Command.js',
      'this.args = args.flat();',
      'this.args = name === "append" ? [] : args.flat();',
    ],
    ['pipeline.constructor', 'Pipeline.js', 'return _this._queue.length;', 'return _this._queue.length + 1;'],
    ['command.initPromise', 'Command.js', 'initPromise() {', 'initPromise() { this.made = true;'],
    ['handler.returnReply', 'DataHandler.js', 'returnReply(reply) {', 'returnReply(reply) { this.replies = 1;'],
    [
      'pipeline.fillResult',
      'Pipeline.js',
      'fillResult(value, position) {',
      'fillResult(value, position) { this.filled = 1;',
    ],
    ['script.execute', 'Script.js', 'args.unshift(this.numberOfKeys);', 'args.unshift(String(this.numberOfKeys));'],
    ['scriptCommand.toWritable', 'Script.js', 'this.name = "evalsha";', 'this.name = "EVALSHA";'],
    ['client.multi', 'transaction.js', 'pipeline.multi();', 'pipeline.multi("here");'],
    [
      'listeners.close',
      'redis/event_handler.js',
      'const prevStatus = self.status;',
      'const prevStatus = self.status; self.lost = 1;',
    ],
    [
      'listeners.connect',
      'redis/event_handler.js',
      'self.resetCommandQueue();',
      'self.resetCommandQueue(); self.begun = 1;',
    ],
    ['listeners.data', 'DataHandler.js', 'decoder.write(data);', 'decoder.write(Buffer.from(data));'],
    ['decoder.write', 'resp/decoder.js', 'write(chunk) {', 'write(chunk) { this.chunks = 1;'],
    ['commander.echo', 'utils/Commander.js', 'replyEncoding: _encoding,', 'replyEncoding: _encoding, fast: true,'],
    ['helpers.toArg', 'utils/index.js', 'return String(arg);', 'return String(arg).trim();'],
  ];

  it.each(CHANGES)('%s', async (differs, file, text, by) => {
    expect(await use(ioredis6, { file, text, by })).toBe(changedIn(differs));
  });

  // In functions that cannot be reached from outside.
  it.each([
    ['resp/decoder.js', '? -number', '? number'],
    ['resp/decoder.js', 'boolean ? 1 : 0', 'boolean ? 1 : 2'],
    ['DataHandler.js', '[decoder_1.RESP_TYPES.DOUBLE]: Buffer,', ''],
    ['redis/event_handler.js', 'command.pipelineIndex;', 'command.placeInPipeline;'],
    ['redis/event_handler.js', 'if (command.inTransaction) {', 'if (command.isQueued) {'],
    ['utils/index.js', 'return "";', 'return " ";'],
    ['Command.js', 'this.length += Buffer.byteLength(x);', 'this.length += x.length;'],
    ['Command.js', 'const length = Buffer.byteLength(item);', 'const length = item.length;'],
  ])('by what it does: %s, %s', async (file, text, by) => {
    expect(await use(ioredis6, { file, text, by })).toMatch(/^ioredis 6\.0\.0, changed: it .* otherwise$/);
  });

  it('a Cluster, but not a client that was coalesced before', async () => {
    const text = 'let to = this.options.scaleReads;';
    const { Redis, Cluster } = ioredis6.load({ file: 'cluster/index.js', text, by: `this.sent = 1; ${text}` });
    const lone = coalesce(endWithTest(new Redis(redisUrl())));
    const cluster = coalesce(new Cluster([], { lazyConnect: true }), { splitKeys: true });
    expect(lone.coalescer.stats()).toMatchObject({ mode: 'fast' });
    expect(cluster.coalescer.stats().unknownClient).toBe(changedIn('cluster.sendCommand'));
  });

  it.each(['connectors/SentinelConnector/index.js', 'errors/index.js', 'utils/lodash.js'])(
    'but not by %s',
    async (file) => {
      const change = { file, text: '"use strict";', by: '"use strict"; const added = 1;' };
      expect(await use(ioredis6, change)).toBeGreaterThan(1);
    },
  );

  it('one of ioredis 5, by its parser', async () => {
    const host = copy('ioredis5');
    const folder = join(host.folder, 'node_modules/redis-parser');
    const { resolve } = createRequire(import.meta.url);
    cpSync(dirname(resolve('redis-parser/package.json')), folder, { recursive: true, dereference: true });
    expect(await use(host)).toBeGreaterThan(1);
    const file = join(folder, 'lib/parser.js');
    writeFileSync(file, readFileSync(file, 'utf8').replace('return sign * number', 'return number'));
    const { cache } = createRequire(import.meta.url);
    for (const path of Object.keys(cache)) if (path.startsWith(folder)) delete cache[path];
    expect(await use(host)).toMatch(/, changed: it decodes ":-42.* otherwise$/);
  });
});

it('the peer dependency refuses no release: the entries say what they need', async () => {
  const { peerDependencies } = JSON.parse(readFileSync(join(SRC, '../package.json'), 'utf8'));
  expect(peerDependencies.ioredis).toBe('*');
});

describe('an unknown client', () => {
  const change: Change = {
    file: 'Command.js',
    text: 'transformReply(result) {',
    by: 'transformReply(result) { this.read = true;',
  };
  const future = copy('ioredis', '6.1.0', change);

  it('of a future release gets the cork; a Cluster as well', async () => {
    expect(await use(future)).toBe('ioredis 6.1.0');
    const cluster = coalesce(new (future.load().Cluster)([], { lazyConnect: true }) as Redis);
    expect(cluster.coalescer.stats().unknownClient).toBe('ioredis 6.1.0');
  });

  it('that is a Cluster splits keys, since the option changes what a call means, and is corked', async () => {
    const { Cluster } = future.load();
    const cluster = coalesce(new Cluster([], { lazyConnect: true }) as Redis, { splitKeys: true });
    expect(Object.getPrototypeOf(cluster)).toBe(Cluster.prototype);
    cluster.sendCommand = async (command) => (command as unknown as { args: string[] }).args.map((key) => `of ${key}`);
    expect(await cluster.mget('a', 'b', 'a')).toEqual(['of a', 'of b', 'of a']);
    cluster.sendCommand = async (command) => (command as unknown as { args: string[] }).args.length;
    expect(await cluster.exists('a', 'b', 'a')).toBe(3);
  });

  it('whose file was patched gets the cork', async () => {
    expect(await use(copy('ioredis', undefined, change))).toBe(changedIn('command.transformReply'));
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
    ['a later release', future, [], 'ioredis 6.1.0 is not a release that this'],
    ['a patched copy', patched, [], 'ioredis 6.0.0, of which command.transformReply was changed is not'],
    [
      'rewritten as it is loaded',
      ioredis6,
      ['--require', loader(ioredis6)],
      '(command.transformReply differs): update ioredis-coalesce, or use the client as published ',
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
    expect(stderr).toMatch(/COALESCE_WARN_UNKNOWN_CLIENT.*: a bundled or otherwise loaded client is not /);
  });
});

const twoClients = (options = '') => `
  const clients = [new Redis(process.argv[2]), new Redis(process.argv[2])].map((client) => coalesce(client${options}));
  Promise.all(clients.map((client) => client.get('key'))).then(() => {
    console.log(...new Set(clients.map(({ coalescer }) => coalescer.stats().mode)));
    for (const client of clients) client.disconnect();
  });`;

/** A program with the package in `host`: by default it uses two clients, and prints the mode that they run in. */
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
