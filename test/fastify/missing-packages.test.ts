import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PackedPackage, packPackage } from '../helpers/packed.js';

let packed: PackedPackage;

beforeAll(async () => {
  packed = await packPackage();
}, 180_000);

afterAll(() => packed?.remove());

/** Registers the plugin, and prints what came of it. */
const PROGRAM = `
  const app = fastify();
  await app.register(fastifyCoalesce, { url: process.argv[2] });
  const reply = await app.redis.echo('found');
  const { clientInfoTag: tag } = app.redis.options;
  console.log(JSON.stringify({ reply, tag, enabled: app.redis.coalescer.enabled }));
  await app.close();`;
const inAsync = (program: string) => `
  (async () => {${program}})().catch(({ code, message }) => console.log(JSON.stringify({ code, message })));`;
const PROGRAMS = {
  'app.mjs': inAsync(`
    const { fastify } = await import('fastify');
    const { default: fastifyCoalesce } = await import('ioredis-coalesce/fastify');
    ${PROGRAM}`),
  'app.cjs': inAsync(`
    const { fastify } = require('fastify');
    const fastifyCoalesce = require('ioredis-coalesce/fastify');
    ${PROGRAM}`),
};

async function runBoth(name: string, dependencies: readonly string[]): Promise<unknown[]> {
  const project = await packed.createProject(name, ['fastify', ...dependencies]);
  return Promise.all(
    Object.entries(PROGRAMS).map(async ([file, program]) => {
      await project.write(file, program);
      return project.run(file);
    }),
  );
}

it.each([
  ['@fastify/redis', 'the package "@fastify/redis" (version 9)', ['ioredis']],
  ['ioredis', 'the package "ioredis" (version 5 or 6)', ['@fastify/redis']],
])('says what to install where %s is missing, by import and by require()', async (name, needed, dependencies) => {
  const missing = {
    code: 'MODULE_NOT_FOUND',
    message:
      `ioredis-coalesce: ioredis-coalesce/fastify needs ${needed}, which is not installed: ` +
      `run "npm install ${name}"`,
  };
  expect(await runBoth(`without-${name.replace('/', '-')}`, dependencies)).toEqual([missing, missing]);
});

it('starts where both are installed', async () => {
  const found = { reply: 'found', tag: expect.stringMatching(/fastify-redis_v9/), enabled: true };
  expect(await runBoth('with-both', ['@fastify/redis', 'ioredis'])).toEqual([found, found]);
});
