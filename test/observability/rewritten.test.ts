/**
 * APMs that rewrite the client as it is loaded (`src/host/recognize.ts`): what they put around its methods is a layer.
 */
import { execFile } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { CODES, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { copyOf } from '../../src/host/recognize.js';
import { type Change, type CopiedHost, copyHost } from '../helpers/changed-hosts.js';
import { type Client, endWithTest, outcomes, ready } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { channelOf, type Rewriting, rewrite } from '../helpers/rewriting.js';
import { collectUncaught } from '../helpers/uncaught.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings(CODES.UNKNOWN_CLIENT);

const run = promisify(execFile);
const prefix = uniquePrefix('rewritten');

const rewritten = (rewriting: Rewriting, also = (text: string) => text): Change => ({
  file: 'Redis.js',
  text: /^[\s\S]*$/,
  by: (text) => also(rewrite(text, rewriting)),
});

/** As New Relic does it, and Sentry. */
const FORMS: readonly (readonly [name: string, Rewriting])[] = [
  ['sendCommand', { methods: ['sendCommand'] }],
  ['sendCommand and connect, whose promises are derived', { methods: ['sendCommand', 'connect'], derives: true }],
];

/** The names of the commands that are published on the channel of the rewritten `sendCommand`, from now on. */
function watch(): string[] {
  const seen: string[] = [];
  const listener = (message: unknown) => {
    const [command] = (message as { arguments: [{ name: string; args: unknown[] }] }).arguments;
    seen.push([command.name, ...command.args].join(' ').slice(0, 60));
  };
  subscribe(channelOf('sendCommand'), listener);
  onTestFinished(() => void unsubscribe(channelOf('sendCommand'), listener));
  return seen;
}

describe.each(['ioredis', 'ioredis5', 'iovalkey'])('%s, rewritten as it is loaded', (name) => {
  let host: CopiedHost;
  beforeAll(() => {
    host = copyHost(name);
  });
  afterAll(() => host.remove());

  it.each(FORMS)('%s: a burst is fast, and all of it is seen', async (_, rewriting) => {
    const { Redis } = host.load(rewritten(rewriting));
    const client = coalesce(await ready(endWithTest(new Redis(redisUrl()))));
    await client.set(`${prefix}k`, 'value');
    const seen = watch();
    const { fastCommands } = client.coalescer.stats();
    const values = await Promise.all(Array.from({ length: 5_000 }, () => client.get(`${prefix}k`)));
    expect(values.every((value) => value === 'value')).toBe(true);
    expect(seen).toHaveLength(5_000);
    expect(client.coalescer.stats().fastCommands - fastCommands).toBeGreaterThan(4_950);
    expect(client.coalescer.stats().observedCommands).toBeGreaterThan(4_950);
  });

  it.each(FORMS)('%s: all commands answer as on a plain client, and as many are seen', async (_, rewriting) => {
    const { Redis } = host.load(rewritten(rewriting));
    const found: unknown[] = [];
    // Nobody holds the promises that are derived from those of commands in pipelines.
    const unhandled = collectUncaught('unhandledRejection');
    for (const kind of ['plain', 'coalesced']) {
      const proxy = await startProxy(redisUrl());
      const client = await ready(endWithTest(new Redis(proxy.url, { retryStrategy: () => 5, commandTimeout: 5_000 })));
      if (kind === 'coalesced') coalesce(client);
      await client.del(`${prefix}k`, `${prefix}h`);
      await client.echo('warm');
      const seen = watch();
      const results = [await play(client), await lose(client, proxy), await time(client, proxy)];
      const errors = unhandled.splice(0).map(({ message }) => message);
      found.push({ results, errors, seen: seen.filter((line) => line.includes(prefix)).sort() });
    }
    const [plain, coalesced] = found;
    expect(coalesced).toEqual(plain);
    expect((plain as { seen: string[] }).seen.length).toBeGreaterThan(15);
  });
});

async function play(client: Client): Promise<unknown> {
  const k = `${prefix}k`;
  const called: unknown[] = [];
  const callback = (...args: unknown[]) => void called.push(args.map(String));
  const first = await outcomes([
    client.set(k, 'text', callback),
    client.get(k, callback as never),
    client.getBuffer(k),
    client.incr(k),
    client.incr(k, callback as never).catch((error: Error) => error.message),
    client.hset(`${prefix}h`, { a: 1 }),
    client.hgetall(`${prefix}h`),
    client.call('STRLEN', k),
  ]);
  const piped = await client.pipeline().get(k).incr(k).append(k, 'x').exec();
  const queued = await client.multi().set(k, '1').incr(k).get(k).exec();
  const open = await outcomes([client.multi({ pipeline: false }), client.incr(k), client.get(k), client.exec()]);
  return [first, called, piped?.map(([error, value]) => [String(error), value]), queued, open];
}

/** The connection is lost with commands in flight. */
async function lose(client: Client, proxy: Awaited<ReturnType<typeof startProxy>>): Promise<unknown> {
  proxy.stall();
  const replies = outcomes([client.set(`${prefix}k`, 'resent'), client.get(`${prefix}k`), client.incr(`${prefix}k`)]);
  proxy.reset();
  proxy.resume();
  return replies;
}

async function time(client: Client, proxy: Awaited<ReturnType<typeof startProxy>>): Promise<unknown> {
  await ready(client);
  client.options.commandTimeout = 30;
  proxy.stall();
  const replies = await outcomes([client.get(`${prefix}k`), client.getBuffer(`${prefix}k`)]);
  client.options.commandTimeout = 5_000;
  proxy.resume();
  return [replies, await client.get(`${prefix}k`)];
}

describe('a rewritten client with further changes is unknown', () => {
  const methods = ['sendCommand'];
  const replaced = (text: string | RegExp, by: string) => (code: string) => {
    const result = code.replace(text, by);
    if (result === code) throw new Error(`there is no ${text}`);
    return result;
  };

  it.each<[string, Change]>([
    ['client.resetCommandQueue', rewritten({ methods: ['resetCommandQueue'] })],
    ['client.resetCommandQueue', rewritten({ methods: ['resetCommandQueue', 'sendCommand'] })],
    [
      'client.setSocketTimeout',
      rewritten(
        { methods },
        replaced(/(clearTimeout\(this\.socketTimeoutTimer\);)\s*(this\.\w+ = undefined;)/, '$2 $1'),
      ),
    ],
    ['client.sendCommand', rewritten({ methods }, replaced('this.commandQueue.push(', 'this.commandQueue.unshift('))],
    [
      'client.sendCommand',
      {
        file: 'Redis.js',
        text: 'sendCommand(command, stream) {',
        by: 'sendCommand(command, stream) { globalThis.sent = 1;',
      },
    ],
  ])('%s', (differs, change) => {
    const host = copyHost('ioredis');
    onTestFinished(host.remove);
    const client = endWithTest(new (host.load(change).Redis)(redisUrl(), { lazyConnect: true }));
    const unknown = `ioredis 6.0.0, of which ${differs} was changed`;
    expect(copyOf(client)).toEqual({ unknown, differs: `${differs} differs`, by: undefined });
  });

  it('by New Relic, as its marks show', () => {
    const host = copyHost('ioredis');
    onTestFinished(host.remove);
    const marked = rewritten({ methods: ['resetCommandQueue'] }, (code) =>
      code.replaceAll('tr_ch_apm$', 'tr_ch_apm$nr_'),
    );
    const client = endWithTest(new (host.load(marked).Redis)(redisUrl(), { lazyConnect: true }));
    expect(copyOf(client)).toMatchObject({ by: 'New Relic' });
  });
});

describe('rewritten by the plugin of a bundler', () => {
  const SRC = join(import.meta.dirname, '../../src');

  it.each([
    ['fast through the layer', true, (text: string) => text],
    [
      'plain, with a change within the wrapped method',
      false,
      (text: string) => text.replace('this.commandQueue.push(', 'this.sent = this.commandQueue.push('),
    ],
  ])('%s', async (_, isKnown, also) => {
    const host = copyHost('ioredis', undefined, rewritten({ methods: ['sendCommand'] }, also));
    onTestFinished(host.remove);
    const entry = join(host.folder, 'program.mjs');
    writeFileSync(
      entry,
      `import { subscribe } from 'node:diagnostics_channel';
       import { coalesce } from 'ioredis-coalesce/coalesce';
       import { Redis } from ${JSON.stringify(`${host.folder}/built/index.js`)};
       const client = coalesce(new Redis(process.argv[2]));
       await client.set(process.argv[3], 'value');
       let seen = 0;
       subscribe('${channelOf('sendCommand')}', () => { seen += 1; });
       const before = client.coalescer.stats().fastCommands;
       const values = await Promise.all(Array.from({ length: 100 }, () => client.get(process.argv[3])));
       const fast = client.coalescer.stats().fastCommands - before;
       console.log(JSON.stringify({ seen, fast, right: values.every((value) => value === 'value') }));
       client.disconnect();`,
    );
    const outfile = join(host.folder, 'program.min.mjs');
    const banner = {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    };
    const alias = { 'ioredis-coalesce': SRC };
    await build({
      entryPoints: [entry],
      outfile,
      alias,
      banner,
      bundle: true,
      minify: true,
      platform: 'node',
      format: 'esm',
    });
    const { stdout } = await run(process.execPath, [outfile, redisUrl(), `${prefix}bundled`]);
    expect(JSON.parse(stdout)).toEqual({ seen: 100, fast: isKnown ? 100 : 0, right: true });
  });
});
