/** Programs that are odd about stacks, callbacks, values and ends. Each prints what it found as JSON. */
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Script } from 'node:vm';
import { parentPort, Worker } from 'node:worker_threads';
import { Command, Redis } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';

const [scene = '', url = '', prefix = ''] = process.argv.slice(2);
const redis = coalesce(new Redis(url));
const KEY = `${prefix}key`;
await redis.set(KEY, 'value');
const show = (value: unknown) => console.log(JSON.stringify(value));

/** A call in a file of this name. */
const callIn = (filename: string): Promise<unknown> =>
  new Script('(redis, key) => redis.get(key)', { filename }).runInThisContext()(redis, KEY) as Promise<unknown>;

const twice = async () => [await redis.get(KEY), await redis.exists(KEY), await redis.incr(KEY).catch(String)];

const SCENES: Record<string, () => unknown> = {
  async callbacks() {
    const called: unknown[] = [];
    const note = (...args: unknown[]) => void called.push([args.length, args.map(String)]);
    await redis.get(KEY, note);
    redis.incr(KEY, note as never).catch(() => {});
    redis
      .pipeline()
      .get(KEY)
      .incr(KEY)
      .exec(note as never);
    redis.sendCommand(new Command('incr', [KEY], {}, note as never));
    await redis.echo('then');
    await sleep(5);
    return called;
  },
  async 'callbacks that throw'() {
    const caught: string[] = [];
    process.on('uncaughtException', (error) => void caught.push(error.message));
    for (const name of ['a', 'b']) {
      redis.get(KEY, () => {
        throw new Error(`in ${name}`);
      });
      await sleep(5);
    }
    return [caught, await twice()];
  },
  async 'unhandled rejections'() {
    const caught: string[] = [];
    process.on('unhandledRejection', (error) => void caught.push(String(error)));
    void redis.incr(KEY);
    redis.incr(KEY, () => {});
    redis.incr(KEY).catch(() => {});
    void redis.pipeline().incr(KEY).exec();
    await redis.echo('answered');
    await sleep(1);
    return caught;
  },
  async 'no stack traces'() {
    Error.stackTraceLimit = 0;
    const found = [await twice(), Error.stackTraceLimit];
    Reflect.deleteProperty(Error, 'stackTraceLimit');
    return [...found, await twice(), 'stackTraceLimit' in Error];
  },
  async 'stack traces prepared otherwise'() {
    const found: unknown[] = [];
    const prepare = (how: (error: Error, sites: NodeJS.CallSite[]) => unknown) => {
      Error.prepareStackTrace = how;
    };
    prepare((_, sites) => sites);
    found.push(await twice());
    prepare(() => {
      throw new Error('never');
    });
    found.push(await twice());
    prepare((error, sites) => `${error}\n${sites.map((site) => `    at ${String(site.getFileName())}`).join('\n')}`);
    found.push(await twice());
    prepare(() => `    at ${'('.repeat(50_000)}`);
    found.push(await twice());
    const asked: Promise<unknown>[] = [];
    prepare((error) => {
      if (asked.length < 3) asked.push(redis.get(KEY));
      return String(error);
    });
    found.push(await twice());
    Reflect.deleteProperty(Error, 'prepareStackTrace');
    return found;
  },
  async 'frozen Error'() {
    Object.freeze(Error);
    return twice();
  },
  async 'files of odd names'() {
    const names = [
      'file://host/share/file.js',
      'file:///a%2Fb.js',
      'file:///%E0%A4%A',
      'data:text/javascript,x',
      '',
      ' ',
      '(',
    ];
    const found: unknown[] = [];
    for (const name of names) {
      try {
        found.push(await callIn(name));
      } catch (error) {
        found.push(String(error));
      }
    }
    return found;
  },
  async 'no working directory'() {
    const folder = mkdtempSync(join(tmpdir(), 'gone-'));
    process.chdir(folder);
    rmdirSync(folder);
    return twice();
  },
  async 'thousands of places'() {
    const before = await heap();
    for (let place = 0; place < 1_000; place += 1) await callIn(`/place/${place}/${'x'.repeat(200)}.js`);
    const grown = (await heap()) - before;
    return grown < 30_000_000;
  },
  async 'an endless loop'() {
    for (let round = 0; round < 2_000; round += 1) await redis.set(KEY, `${round}${'x'.repeat(700)}`);
    const before = await heap();
    for (let round = 0; round < 1_000; round += 1) await redis.set(KEY, `${round}${'x'.repeat(700)}`);
    return (await heap()) - before < 5_000_000;
  },
  async 'arguments that count'() {
    let reads = 0;
    const countRead = () => {
      reads += 1;
      return `read ${reads}`;
    };
    const seen = <T extends object>(target: T) =>
      new Proxy(target, {
        get(of, name) {
          reads += 1;
          return Reflect.get(of, name);
        },
        getPrototypeOf(of) {
          reads += 1;
          return Reflect.getPrototypeOf(of);
        },
      });
    const found = [
      await redis.mget(seen([KEY, `${prefix}none`])),
      await redis.set(KEY, { toString: countRead } as never),
      await redis.mset(seen({ [KEY]: 'x' })),
      await redis.mset(new Map([[KEY, 'y']])),
    ];
    return [found, reads];
  },
  async 'values that count'() {
    let reads = 0;
    Command.setReplyTransformer('hgetall', (reply) =>
      Object.defineProperty({ reply: String(reply) }, 'lazy', {
        enumerable: true,
        get() {
          reads += 1;
          return 'read';
        },
      }),
    );
    await redis.hset(`${KEY}:hash`, 'a', 1);
    await redis.hgetall(`${KEY}:hash`);
    return reads;
  },
  async 'values without an end'() {
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    Command.setReplyTransformer('get', () => cyclic);
    return [(await redis.get(KEY)) === (cyclic as unknown), await redis.exists(KEY)];
  },
  async 'large values'() {
    await redis.set(KEY, `[${'['.repeat(8_000)}${']'.repeat(8_000)}]`);
    const deep = (await redis.get(KEY))?.length;
    await redis.set(KEY, 'é'.repeat(5_000_000));
    return [deep, (await redis.get(KEY))?.length, (await redis.getBuffer(KEY))?.length];
  },
  async 'a worker that is terminated'() {
    const worker = new Worker(process.argv[1] as string, { argv: ['without an end', url, prefix] });
    await new Promise((go) => worker.once('message', go));
    return [await worker.terminate(), await twice()];
  },
  async 'without an end'() {
    for (;;) {
      await redis.get(KEY);
      parentPort?.postMessage('answered');
    }
  },
  async 'ends amid commands'() {
    for (let round = 0; round < 100; round += 1) void redis.set(KEY, 'x');
    process.exit(3);
  },
  async 'ends by a signal'() {
    void redis.get(KEY).then(() => process.kill(process.pid, 'SIGTERM'));
    await sleep(10_000);
  },
  async 'ends by an error'() {
    await redis.get(KEY);
    process.nextTick(() => {
      throw new Error('the end');
    });
    await redis.get(KEY);
    await sleep(10_000);
  },
  async 'ends by itself'() {
    redis.on('end', () => show('end'));
    process.on('beforeExit', () => show('beforeExit'));
    return twice();
  },
};

async function heap(): Promise<number> {
  await sleep(1);
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

show(await SCENES[scene]?.());
redis.disconnect();
