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
  app.register(fastifyCoalesce, { url: process.argv[2] }).ready().then(
    async () => {
      const reply = await app.redis.echo('found');
      const { clientInfoTag: tag } = app.redis.options;
      console.log(JSON.stringify({ reply, tag, enabled: app.redis.coalescer.enabled }));
      await app.close();
    },
    ({ code, message }) => console.log(JSON.stringify({ code, message })),
  );`;
const PROGRAMS = {
  'app.mjs': `import { fastify } from 'fastify'; import fastifyCoalesce from 'ioredis-coalesce/fastify'; ${PROGRAM}`,
  'app.cjs': `const { fastify } = require('fastify'); const fastifyCoalesce = require('ioredis-coalesce/fastify'); ${PROGRAM}`,
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

it('says what to install where @fastify/redis is missing, by import and by require()', async () => {
  const missing = {
    code: 'MODULE_NOT_FOUND',
    message:
      'ioredis-coalesce/fastify needs the package "@fastify/redis" (version 9), which is not installed: ' +
      'run "npm install @fastify/redis"',
  };
  expect(await runBoth('without-fastify-redis', ['ioredis'])).toEqual([missing, missing]);
});

it('takes the ioredis that came with @fastify/redis if the project has none', async () => {
  const found = { reply: 'found', tag: expect.stringMatching(/fastify-redis_v9/), enabled: true };
  expect(await runBoth('without-ioredis', ['@fastify/redis'])).toEqual([found, found]);
});

it('takes the ioredis of the project if it has one', async () => {
  const found = { reply: 'found', tag: expect.stringMatching(/fastify-redis_v9/), enabled: true };
  expect(await runBoth('with-both', ['@fastify/redis', 'ioredis'])).toEqual([found, found]);
});
