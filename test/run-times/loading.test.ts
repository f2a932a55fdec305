/**
 * The package is loaded where a global of Node is replaced or missing: by fake timers, a browser's globals, a test of
 * the user.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PackedPackage, type Project, packPackage } from '../helpers/packed.js';

let packed: PackedPackage;
let project: Project;

beforeAll(async () => {
  packed = await packPackage();
  project = await packed.createProject('loading', ['ioredis', '@sinonjs/fake-timers']);
}, 300_000);

afterAll(() => packed?.remove());

/** Replaces nothing that plain ioredis and Node's sockets need. */
const FAKE = `toNotFake: ['nextTick', 'queueMicrotask']`;

/** What is run before the package is loaded, and after it. */
const SURROUNDINGS: Record<string, { before: string; after?: string }> = {
  'without `performance`': { before: `delete globalThis.performance;` },
  'with the `performance` of a browser': {
    before: `const now = () => performance.now();
      Object.defineProperty(globalThis, 'performance', { value: { now, mark() {}, measure() {} } });`,
  },
  'without `setImmediate`': { before: `delete globalThis.setImmediate; delete globalThis.clearImmediate;` },
  'with a `setTimeout` that gives numbers': {
    before: `const { setTimeout: own, clearTimeout: clear } = globalThis;
      globalThis.setTimeout = (...args) => own(...args)[Symbol.toPrimitive]();
      globalThis.clearTimeout = (id) => clear(id);`,
  },
  'with a `setTimeout` that gives nothing': { before: `globalThis.setTimeout = () => {};` },
  'while the timers of @sinonjs/fake-timers are on': {
    before: `require('@sinonjs/fake-timers').install({ ${FAKE} });`,
  },
  'while all that they replace is fake, and real again before it is used': {
    before: `const clock = require('@sinonjs/fake-timers').install();`,
    after: `clock.uninstall();`,
  },
};

const program = (before: string, after = '') => `
  ${before}
  const { Redis } = require('ioredis');
  const DropIn = require('ioredis-coalesce').default;
  const { coalesce } = require('ioredis-coalesce/coalesce');
  ${after}
  const [url, prefix] = process.argv.slice(2);
  const options = { commandTimeout: 60_000 };
  async function use(client) {
    const key = prefix + 'k';
    const seen = [await client.set(key, 'v')];
    for (let round = 0; round < 5; round += 1) {
      seen.push(String(await Promise.all(Array.from({ length: 20 }, () => client.get(key)))));
    }
    seen.push(await client.multi().append(key, 'w').get(key).exec());
    seen.push(await client.incr(key).catch(String));
    client.disconnect();
    return JSON.stringify(seen);
  }
  async function run() {
    const plain = await use(new Redis(url, options));
    const coalesced = [
      coalesce(new Redis(url, options)),
      coalesce(new Redis(url, options), { schedule: 'immediate' }),
      new DropIn(url, options),
    ];
    const same = [];
    for (const client of coalesced) same.push((await use(client)) === plain && client.coalescer.stats().fastCommands > 100);
    console.log(JSON.stringify({ plain: plain.length > 100, same }));
  }
  run();`;

it.each(Object.entries(SURROUNDINGS))('is loaded: %s, and answers as a plain one', async (_, { before, after }) => {
  await project.write('loading.cjs', program(before, after));
  expect(await project.run('loading.cjs')).toEqual({ plain: true, same: [true, true, true] });
});

it('copies of the package share one listener for `exit`, and are freed when their connections are gone', async () => {
  await project.write(
    'copies.cjs',
    `require('node:v8').setFlagsFromString('--expose-gc');
    const collectGarbage = require('node:vm').runInNewContext('gc');
    const turn = require('node:timers/promises').setImmediate;
    const { Redis } = require('ioredis');
    const [url] = process.argv.slice(2);
    async function useCopy() {
      for (const file of Object.keys(require.cache)) if (file.includes('ioredis-coalesce')) delete require.cache[file];
      const { coalesce } = require('ioredis-coalesce/coalesce');
      const client = coalesce(new Redis(url));
      await Promise.all([client.ping(), client.ping()]);
      return { copy: new WeakRef(coalesce), client };
    }
    async function run() {
      const before = process.listenerCount('exit');
      const used = [];
      for (let copy = 0; copy < 12; copy += 1) used.push(await useCopy());
      const listeners = process.listenerCount('exit') - before;
      for (const { client } of used) await new Promise((ended) => client.once('end', ended).disconnect());
      const left = process.listenerCount('exit') - before;
      // Node's list of the children of a module.
      module.children.length = 0;
      const copies = used.map(({ copy }) => copy);
      used.length = 0;
      for (let round = 0; round < 3; round += 1) {
        await turn();
        collectGarbage();
      }
      console.log(JSON.stringify({ listeners, left, freed: copies.filter((copy) => !copy.deref()).length }));
    }
    run();`,
  );
  const { freed, ...counts } = (await project.run('copies.cjs')) as { freed: number };
  expect(counts).toEqual({ listeners: 1, left: 0 });
  // The last one is in Node's cache of modules, and what V8 knows of the layout of objects may keep another.
  expect(freed).toBeGreaterThanOrEqual(10);
});
