/** `--import ioredis-coalesce/register`, from the packed tarball, in their own processes. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type PackedPackage, type Project, packPackage } from '../helpers/packed.js';
import { redisUrl, startServer, uniquePrefix } from '../helpers/redis.js';

const run = promisify(execFile);

interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  /** What the program printed, as JSON. */
  readonly result: unknown;
}

interface How {
  readonly flags?: readonly string[];
  readonly folder?: string;
  readonly nodeOptions?: string;
  readonly environment?: string;
  /** Of the server, unless that of all tests. */
  readonly url?: string;
}

let packed: PackedPackage;
let project: Project;

beforeAll(async () => {
  packed = await packPackage();
  project = await packed.createProject('registered', [
    'ioredis',
    'ioredis5',
    'iovalkey',
    'bullmq',
    'rate-limiter-flexible',
  ]);
}, 300_000);

afterAll(() => packed?.remove());

let programs = 0;

/** Runs a program under the flag. */
async function registered(text: string, how: How = {}, extension = 'mjs'): Promise<Ran> {
  const { flags = ['--import', 'ioredis-coalesce/register'], folder = project.folder, nodeOptions, environment } = how;
  const { url = redisUrl() } = how;
  programs += 1;
  const file = `program-${programs}.${extension}`;
  await project.write(file, text);
  const { IOREDIS_COALESCE: _, NODE_OPTIONS: __, ...env } = process.env;
  if (environment !== undefined) env.IOREDIS_COALESCE = environment;
  if (nodeOptions !== undefined) env.NODE_OPTIONS = nodeOptions;
  const args = [...flags, join(project.folder, file), url, uniquePrefix('register')];
  const { stdout, stderr } = await run(process.execPath, args, { cwd: folder, env, timeout: 30_000 });
  return {
    stdout,
    stderr,
    result: stdout.trim() === '' ? undefined : JSON.parse(stdout.trim().split('\n').at(-1) as string),
  };
}

/** Uses a plain client, and prints what became of it. */
const use = (client: string) => `
  const [url, prefix] = process.argv.slice(2);
  ${client}
  const values = await Promise.all([redis.set(prefix + 'a', '1'), redis.get(prefix + 'a'), redis.del(prefix + 'a')]);
  const { commands, fastCommands } = redis.coalescer?.stats() ?? {};
  console.log(JSON.stringify({ values, enabled: redis.coalescer?.enabled, options: redis.coalescer?.options, fast: fastCommands }));
  await redis.quit();`;

const ESM = `import Redis from 'ioredis'; ${use('const redis = new Redis(url); await redis.ping();')}`;
const CJS = `const Redis = require('ioredis'); (async () => { ${use('const redis = new Redis(url); await redis.ping();')} })();`;

describe('every client of the process', () => {
  it.each(['ioredis', 'ioredis5', 'iovalkey'])('of %s is coalesced as it is constructed', async (host) => {
    const { result } = await registered(ESM.replace("'ioredis'", `'${host}'`));
    expect(result).toMatchObject({ values: ['OK', '1', 1], enabled: true });
    expect((result as { fast: number }).fast).toBeGreaterThanOrEqual(3);
  });

  it.each([
    ['an ES module under --import', ESM, 'mjs', ['--import', 'ioredis-coalesce/register']],
    ['an ES module under --require', ESM, 'mjs', ['--require', 'ioredis-coalesce/register']],
    ['CommonJS under --import', CJS, 'cjs', ['--import', 'ioredis-coalesce/register']],
    ['CommonJS under --require', CJS, 'cjs', ['--require', 'ioredis-coalesce/register']],
    [
      'under both flags',
      ESM,
      'mjs',
      ['--require', 'ioredis-coalesce/register', '--import', 'ioredis-coalesce/register'],
    ],
  ] as const)('of %s', async (_, text, extension, flags) => {
    const { result } = await registered(text, { flags }, extension);
    expect(result).toMatchObject({ values: ['OK', '1', 1], enabled: true });
  });

  it.each([
    ['--import', 'register.js'],
    ['--require', 'register.cjs'],
  ])('of a process in another folder, by NODE_OPTIONS=%s=/…/%s', async (flag, file) => {
    const nodeOptions = `${flag}=${join(project.folder, 'node_modules/ioredis-coalesce/dist', file)}`;
    const { result } = await registered(ESM, { flags: [], folder: '/', nodeOptions });
    expect(result).toMatchObject({ values: ['OK', '1', 1], enabled: true });
  });

  it.each([
    ['before', ['ioredis-coalesce/register', './hooked.mjs']],
    ['after', ['./hooked.mjs', 'ioredis-coalesce/register']],
  ])('whose sources a loader hook returns, registered %s it', async (_, [first = '', second = '']) => {
    // As in Node's own documents: with a source, Node loads CommonJS without `Module#_compile`.
    const hook = `
      import { readFile } from 'node:fs/promises';
      export async function load(url, context, next) {
        const loaded = await next(url, context);
        if (loaded.format === 'commonjs') loaded.source ??= await readFile(new URL(loaded.responseURL ?? url));
        return loaded;
      }`;
    await project.write('hook.mjs', hook);
    await project.write(
      'hooked.mjs',
      `import { register } from 'node:module'; register('./hook.mjs', import.meta.url);`,
    );
    const { result } = await registered(ESM, { flags: ['--import', first, '--import', second] });
    expect(result).toMatchObject({ values: ['OK', '1', 1], enabled: true });
  });

  /** A class of the host's shape. */
  const shaped = (emit: string) => `
    class Base {}
    class Host extends Base {
      options = {};
      isCluster = false;
      constructor() { super(); EventEmitter.call(this); this.setStatus('wait'); }
      setStatus(status) { this.status = status; }
      sendCommand() {}
    }
    Object.assign(${emit}.prototype, { emit: EventEmitter.prototype.emit, on: EventEmitter.prototype.on });`;

  it('of ioredis 4 stays plain: its classes inherit the methods of EventEmitter', async () => {
    const { result, stderr } = await registered(`
      import { EventEmitter } from 'node:events';
      ${shaped('Base')}
      console.log(JSON.stringify(new Host().coalescer ?? null));`);
    expect(result).toBe(null);
    expect(stderr).toBe('');
  });

  it('is corked if it is of another realm', async () => {
    const { result, stderr } = await registered(`
      import { EventEmitter } from 'node:events';
      import { createContext, runInContext } from 'node:vm';
      const context = createContext({ EventEmitter });
      const clients = [0, 1].map(() => runInContext(${JSON.stringify(`(() => { ${shaped('Host')} return new Host(); })()`)}, context));
      console.log(JSON.stringify(clients.map(({ status, coalescer }) => [status, coalescer.stats().mode])));`);
    expect(result).toEqual([
      ['wait', 'cork'],
      ['wait', 'cork'],
    ]);
    expect(stderr).toBe('');
  });

  it('keeps its class: instanceof, statics, subclasses, stubs on the prototype', async () => {
    const { result } = await registered(`
      import Redis, { Cluster } from 'ioredis';
      class Own extends Redis { own() { return 'own'; } }
      const own = new Own(process.argv[2]);
      Redis.prototype.strlen = () => 'stubbed';
      const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
      console.log(JSON.stringify([
        own instanceof Redis, own instanceof Own, own.own(), Redis.Cluster === Cluster, Redis.name, own.coalescer.enabled,
        await own.strlen('k'), cluster instanceof Cluster, cluster.coalescer.enabled,
      ]));
      own.disconnect(); cluster.disconnect();`);
    expect(result).toEqual([true, true, 'own', true, 'Redis', true, 'stubbed', true, true]);
  });

  it.each(['ioredis', 'ioredis5', 'iovalkey'])('of %s, of a subclass whose on() uses its own fields', async (host) => {
    const { result, stderr } = await registered(`
      import { Redis } from '${host}';
      class Counted extends Redis {
        #events = [];
        on(event, listener) { this.#events.push(event); return super.on(event, listener); }
        get events() { return this.#events; }
      }
      const made = [{}, { lazyConnect: true }].map((options) => new Counted(process.argv[2], options));
      const pongs = await Promise.all(made.map((redis) => redis.ping()));
      console.log(JSON.stringify([pongs, made.map(({ coalescer, events }) => [coalescer.enabled, events.includes('connect')])]));
      for (const redis of made) redis.disconnect();`);
    expect(result).toEqual([
      ['PONG', 'PONG'],
      [
        [true, false],
        [true, false],
      ],
    ]);
    expect(stderr).toBe('');
  });

  it('stays plain, with a warning, if a subclass does not let it be attached to', async () => {
    const { result, stderr } = await registered(`
      import Redis from 'ioredis';
      class Own extends Redis {
        #send = super.sendCommand;
        get sendCommand() { return this.#send; }
      }
      const own = new Own(process.argv[2]);
      console.log(JSON.stringify([await own.ping(), own.coalescer ?? null]));
      own.disconnect();`);
    expect(result).toEqual(['PONG', null]);
    expect(stderr).toContain(
      '[COALESCE_ERR_CLIENT] CoalesceWarning: ioredis-coalesce: a client stays plain: TypeError: ',
    );
  });

  it('and no other emitter is touched: a getter that is not ready when EventEmitter is called', async () => {
    const { result } = await registered(`
      import { EventEmitter } from 'node:events';
      class Own extends EventEmitter { #own = 1; get setStatus() { return this.#own; } }
      console.log(JSON.stringify(new Own().setStatus));`);
    expect(result).toBe(1);
  });

  it('that packages make is fast: BullMQ and rate-limiter-flexible, unchanged', async () => {
    const { result, stderr } = await registered(
      `
      import { Queue, Worker, QueueEvents } from 'bullmq';
      import Redis from 'ioredis';
      import { RateLimiterRedis } from 'rate-limiter-flexible';
      const [url, prefix] = process.argv.slice(2);
      const connection = { url, maxRetriesPerRequest: null };
      const queue = new Queue('jobs', { connection, prefix });
      // From the first event on: BullMQ reads from the moment on at which its XREAD arrives, and a job may be done by
      // then.
      const events = new QueueEvents('jobs', { connection, prefix, lastEventId: '0' });
      const worker = new Worker('jobs', async ({ data }) => data.n * 2, { connection, prefix });
      await events.waitUntilReady();
      const jobs = await Promise.all([1, 2, 3].map((n) => queue.add('double', { n })));
      const doubled = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
      const limiter = new RateLimiterRedis({ storeClient: new Redis(url), points: 2, duration: 60, keyPrefix: prefix });
      const left = [];
      for (let n = 0; n < 2; n += 1) left.push((await limiter.consume('user')).remainingPoints);
      console.log(JSON.stringify({ doubled, left }));
      await worker.close(); await queue.obliterate({ force: true }); await queue.close(); await events.close();
      process.exit(0);`,
      { environment: 'stats' },
    );
    expect(result).toEqual({ doubled: [2, 4, 6], left: [1, 0] });
    const lines = stderr
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('ioredis-coalesce: '));
    // The limiter, and one line for those of BullMQ that have ended.
    expect(lines.length).toBeGreaterThanOrEqual(2);
    expect(lines.some((line) => /, [2-9] clients that have ended: /.test(line))).toBe(true);
    expect(
      lines.some((line) => /: \d+ commands, \d+ batches, [\d.]+ per batch, (?:[5-9]\d|100) % fast/.test(line)),
    ).toBe(true);
  });

  it('of a worker thread', async () => {
    const { result } = await registered(`
      import { Worker, isMainThread, parentPort } from 'node:worker_threads';
      import Redis from 'ioredis';
      if (isMainThread) {
        const worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2) });
        worker.on('message', (message) => console.log(JSON.stringify(message)));
      } else {
        const redis = new Redis(process.argv[2]);
        parentPort.postMessage([redis.coalescer?.enabled, await redis.ping()]);
        redis.disconnect();
      }`);
    expect(result).toEqual([true, 'PONG']);
  });

  it.each([
    ['the package', 'ioredis-coalesce'],
    ['another copy of it, as in a bundle', './node_modules/ioredis-coalesce/dist/bundler/index.js'],
  ])('stays as code has made it, where code decides by %s', async (_, from) => {
    // Host: a plain monitor is upset by lines of others that come too early.
    const server = await startServer();
    onTestFinished(() => server.stop());
    const { result } = await registered(
      `
      import Plain from 'ioredis';
      import Redis, { coalesce } from '${from}';
      const url = process.argv[2];
      const clients = [
        new Redis(url, { coalesce: { maxInFlight: 7 } }),
        new Redis(url, { coalesce: false }),
        coalesce(new Plain(url), { maxInFlight: 8 }),
        coalesce(new Plain(url), false),
        coalesce(new Plain(url)),
        new Plain(url),
      ];
      const monitor = await clients[5].monitor();
      const copy = clients[2].duplicate();
      const shown = [...clients, monitor, copy].map(({ coalescer }) => coalescer && [coalescer.enabled, coalescer.options.maxInFlight]);
      console.log(JSON.stringify(shown));
      for (const client of [...clients, monitor, copy]) client.disconnect();`,
      { environment: '{"maxInFlight":5}', url: server.url },
    );
    expect(result).toEqual([[true, 7], [false, 5], [true, 8], [false, 5], [true, 5], [true, 5], null, [true, 8]]);
  });
});

describe('IOREDIS_COALESCE', () => {
  it('off: nothing is coalesced, by no entry', async () => {
    const { result } = await registered(
      `
      import Plain from 'ioredis';
      import Redis, { Cluster } from 'ioredis-coalesce';
      import { coalesce } from 'ioredis-coalesce/coalesce';
      const url = process.argv[2];
      const clients = [
        new Plain(url), new Redis(url), new Redis(url, { coalesce: { maxInFlight: 7 } }), coalesce(new Plain(url)),
        new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true }),
      ];
      console.log(JSON.stringify(clients.map(({ coalescer }) => coalescer?.enabled ?? null)));
      for (const client of clients) client.disconnect();`,
      { environment: 'off' },
    );
    expect(result).toEqual([null, false, false, false, false]);
  });

  it('JSON: the options of the clients that are coalesced by the flag', async () => {
    const { result } = await registered(ESM, { environment: '{"maxInFlight":123,"busyPoll":false}' });
    expect(result).toMatchObject({ enabled: true, options: { maxInFlight: 123, busyPoll: false } });
  });

  it('JSON: options that do not fit a client are left out for it', async () => {
    const environment = '{"splitKeys":true,"cache":true}';
    const { result } = await registered(ESM.replace("'ioredis'", "'ioredis5'"), { environment });
    expect(result).toMatchObject({ enabled: true, options: { splitKeys: false, cache: false } });
  });

  it('JSON: a Cluster that code leaves plain does not split keys', async () => {
    const { result } = await registered(
      `
      import { Cluster as Plain } from 'ioredis';
      import { Cluster, coalesce } from 'ioredis-coalesce';
      const lazy = { lazyConnect: true };
      const clusters = [
        new Plain([], lazy),
        coalesce(new Plain([], lazy)),
        coalesce(new Plain([], lazy), {}),
        coalesce(new Plain([], lazy), false),
        new Cluster([], { ...lazy, coalesce: { splitKeys: true } }),
        new Cluster([], { ...lazy, coalesce: false }),
      ];
      console.log(JSON.stringify(clusters.map((cluster) => Object.hasOwn(cluster, 'mget'))));`,
      { environment: '{"splitKeys":true}' },
    );
    expect(result).toEqual([true, true, false, false, true, false]);
  });

  const enabledHere = `
    import Plain from 'ioredis';
    import { coalesce } from 'ioredis-coalesce/coalesce';
    const clients = [new Plain({ lazyConnect: true }), coalesce(new Plain({ lazyConnect: true }), true)];
    console.log(JSON.stringify(clients.map(({ coalescer }) => coalescer?.enabled ?? null)));`;

  it.each(['OFF', ' off ', '0', 'false', 'False', 'no'])('%j is off', async (environment) => {
    const { result, stderr } = await registered(enabledHere, { environment });
    expect(result).toEqual([null, false]);
    expect(stderr).toBe('');
  });

  it.each(['', 'on', 'ON', '1', 'true', ' yes '])('%j is as if it were not set', async (environment) => {
    const { result, stderr } = await registered(enabledHere, { environment });
    expect(result).toEqual([true, true]);
    expect(stderr).toBe('');
  });

  const expected =
    'the environment variable IOREDIS_COALESCE must be off, cork, on, stats, advise, or a JSON object of options';

  it.each([
    ['of', expected, [null, false]],
    ['{"maxInFlight":', expected, [null, false]],
    ['[1]', expected, [null, false]],
    ['{"maxInFlight":-1}', 'IOREDIS_COALESCE.maxInFlight must be a positive integer, got -1 (number)', [null, true]],
    ['{"maxInflight":5}', 'IOREDIS_COALESCE.maxInflight is not an option', [null, true]],
  ])('%s warns, leaves clients plain, and never ends the process', async (environment, message, enabled) => {
    const { result, stderr } = await registered(enabledHere, { environment });
    expect(result).toEqual(enabled);
    expect(stderr).toContain(`[COALESCE_WARN_ENVIRONMENT] CoalesceWarning: ioredis-coalesce: ${message}`);
    expect(stderr).toContain('; clients stay plain');
  });

  it('stats: a line per client at exit, and on SIGUSR2', async () => {
    const { stderr } = await registered(
      `
      import Redis from 'ioredis';
      const redis = new Redis(process.argv[2], { connectionName: 'sessions' });
      await redis.ping();
      await Promise.all(Array.from({ length: 10 }, () => redis.get('none')));
      process.kill(process.pid, 'SIGUSR2');
      await new Promise((resolve) => setTimeout(resolve, 100));
      redis.disconnect();`,
      { environment: 'stats' },
    );
    const lines = stderr
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('ioredis-coalesce: '));
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(
      /^ioredis-coalesce: sessions 127\.0\.0\.1:\d+\/0: \d+ commands, \d+ batches, \d+\.\d per batch, \d+ % fast/,
    );
  });

  it.each([
    ['stats', 'SIGTERM'],
    ['advise,cork', 'SIGINT'],
    ['stats,cork', 'SIGTERM'],
  ] as const)('%s: before %s ends the process, with what was issued in its turn', async (environment, signal) => {
    const key = uniquePrefix('signal');
    const program = registered(
      `
      import Redis from 'ioredis';
      const redis = new Redis(process.argv[2]);
      await redis.get('none');
      for (let n = 0; n < 4; n += 1) {
        await redis.get('first');
        await redis.llen('second');
      }
      redis.set('${key}', 'written');
      process.kill(process.pid, '${signal}');
      await new Promise((resolve) => setTimeout(resolve, 20_000));`,
      { environment },
    );
    const { signal: by, stderr } = (await program.catch((error) => error)) as { signal: string; stderr: string };
    expect(by).toBe(signal);
    expect(stderr).toMatch(/^ioredis-coalesce: 127.*: \d+ commands, \d+ batches/m);
    expect(stderr.includes('corked since IOREDIS_COALESCE is cork')).toBe(environment.endsWith('cork'));
    expect(stderr.includes('get, llen ×4 in a row, 1 time')).toBe(environment.startsWith('advise'));
    const reader = new Redis(redisUrl());
    expect(await reader.get(key)).toBe('written');
    reader.disconnect();
  });

  it('stats: a listener of the program takes the place of ours, whenever it comes', async () => {
    const { stdout, stderr } = await registered(
      `
      import Redis from 'ioredis';
      const redis = new Redis(process.argv[2]);
      await redis.ping();
      process.once('SIGTERM', async () => {
        const listeners = process.listenerCount('SIGTERM');
        await new Promise((resolve) => setTimeout(resolve, 50));
        console.log(JSON.stringify([listeners, await redis.ping()]));
        process.exit();
      });
      await redis.ping();
      process.kill(process.pid, 'SIGTERM');
      await new Promise((resolve) => setTimeout(resolve, 20_000));`,
      { environment: 'stats' },
    );
    expect(JSON.parse(stdout)).toEqual([0, 'PONG']);
    expect(stderr.match(/^ioredis-coalesce: /gm)).toHaveLength(1);
  });

  it('stats: of duplicates, too, and not of clients that were made plain before their first command', async () => {
    const { stderr } = await registered(
      `
      import Redis from 'ioredis';
      import { coalesce } from 'ioredis-coalesce';
      const redis = coalesce(new Redis(process.argv[2]));
      const copy = redis.duplicate({ connectionName: 'copy' });
      redis.duplicate({ connectionName: 'plain', lazyConnect: true }).coalescer.detach();
      await Promise.all([redis.get('none'), copy.get('none')]);
      redis.disconnect();
      copy.disconnect();`,
      { environment: 'stats', flags: [] },
    );
    const clients = stderr.match(/(?<=^ioredis-coalesce: ).*?(?=127)/gm);
    expect(clients).toEqual(['', 'copy ']);
  });

  it('stats: keeps no client in memory, and counts those that have ended in one line', async () => {
    const { stderr, result } = await registered(
      `
      import Redis from 'ioredis';
      import { coalesce } from 'ioredis-coalesce/coalesce';
      const redis = coalesce(new Redis(process.argv[2]));
      const use = async (client) => {
        await client.get('none');
        await client.quit();
        return new WeakRef(client);
      };
      const clients = [];
      for (let n = 0; n < 20; n += 1) {
        clients.push(await use(n % 2 ? redis.duplicate() : coalesce(new Redis(process.argv[2]))));
      }
      for (let n = 0; n < 50 && clients.some((client) => client.deref()); n += 1) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        gc();
      }
      await redis.get('none');
      console.log(JSON.stringify(clients.filter((client) => client.deref()).length));
      process.exit();`,
      { environment: 'stats', flags: ['--expose-gc'] },
    );
    expect(result).toBe(0);
    expect(stderr.replace(/(?<=127.0.0.1:)\d+/g, 'port').split('\n')).toEqual([
      expect.stringMatching(/^ioredis-coalesce: 127.0.0.1:port\/0: 1 commands, /),
      expect.stringMatching(/^ioredis-coalesce: 127.0.0.1:port\/0, 20 clients that have ended: [24]0 commands, /),
      '',
    ]);
  });

  it('stats: of clients whose fields were changed, too', async () => {
    const { stderr, result } = await registered(
      `
      import Redis, { Cluster } from 'ioredis';
      const cluster = new Cluster(['redis://127.0.0.1:1'], { lazyConnect: true });
      cluster.startupNodes = undefined;
      const redis = new Redis({ lazyConnect: true });
      redis.options = undefined;
      console.log(JSON.stringify('ended'));`,
      { environment: 'stats' },
    );
    expect(result).toBe('ended');
    expect(stderr.trim().split('\n').sort()).toEqual([
      'ioredis-coalesce: Cluster of 1 startup nodes: no commands',
      'ioredis-coalesce: localhost:6379/0: no commands',
    ]);
  });
});
