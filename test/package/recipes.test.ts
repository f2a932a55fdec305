/** The recipes of docs/recipes.md, as they are written there, in a project that installed the packed package. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recipeOf } from '../../tools/recipe.js';
import { startCluster } from '../../tools/redis-cluster.js';
import { headings, section } from '../helpers/markdown.js';
import { type PackedPackage, type Project, packPackage, ROOT } from '../helpers/packed.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const run = promisify(execFile);
const DOCUMENT = readFileSync(join(ROOT, 'docs/recipes.md'), 'utf8');
/** The client of an application. */
const CLIENT = `new Redis({ retryStrategy: () => null, lazyConnect: true })`;
const EXPECTATIONS = `
  const sockets = [];
  const { connect } = Socket.prototype;
  Socket.prototype.connect = function (...args) {
    sockets.push(args);
    return connect.apply(this, args);
  };
  test('the application is answered from memory', async () => {
    expect(await redis.set('a', '2')).toBe('OK');
    expect(await redis.get('a')).toBe('2');
    expect(redis.coalescer.enabled).toBe(false);
    expect(sockets).toEqual([]);
  });`;

let packed: PackedPackage;

beforeAll(async () => {
  packed = await packPackage();
}, 300_000);

afterAll(() => packed?.remove());

/** What each recipe is asked, in the same module; it prints one line of JSON. `name` is of this run alone. */
const PROGRAMS: Readonly<Record<string, { packages: readonly string[]; asked: string; answer: unknown }>> = {
  'NestJS: a module': {
    packages: ['@nestjs/common', '@nestjs/core', '@nestjs/platform-express', 'ioredis', 'reflect-metadata', 'rxjs'],
    asked: `
      const { NestFactory } = await import('@nestjs/core');
      const app = await NestFactory.createApplicationContext(RedisModule, { logger: false });
      await app.get(Redis).set(name, 'kept');
      print([await app.get(Redis).get(name), redis.coalescer.stats().mode]);
      await app.close();`,
    answer: ['kept', 'MODE'],
  },
  BullMQ: {
    packages: ['bullmq', 'ioredis'],
    asked: `
      const job = await new Promise((resolve) => void worker.once('completed', resolve));
      print([job.returnvalue, connection.coalescer.stats().mode]);
      process.kill(process.pid, 'SIGTERM');`,
    answer: ['sent to ada@example.com', 'MODE'],
  },
  'Next.js: a cache handler': {
    packages: ['ioredis'],
    asked: `
      const [one, other] = [new CacheHandler(), new CacheHandler()];
      const page = { kind: 'APP_PAGE', html: '<p>', rscData: Buffer.from([0, 255]), segmentData: new Map([['/', Buffer.from('a')]]) };
      await Promise.all([one.set(name, page, { tags: [name] }), one.set(name + 2, page, {})]);
      one.resetRequestCache();
      const { value, lastModified, tags } = await other.get(name);
      const { isDeepStrictEqual } = await import('node:util');
      const found = [isDeepStrictEqual(value, page), lastModified <= Date.now(), tags[0] === name];
      await other.revalidateTag(name);
      print([...found, await one.get(name), (await one.get(name + 2)) !== null, await redis.ttl('next:' + name + 2)]);
      await redis.quit();`,
    answer: [true, true, true, null, true, 86_400],
  },
  'AWS Lambda': {
    packages: ['ioredis'],
    asked: `
      await redis.mset('user:' + name, 'Ada', 'visits', 0);
      await redis.hset('cart:' + name, 'apples', 2);
      const answer = await handler({ user: name });
      const { bytesWritten } = redis.coalescer.stats();
      await new Promise((done) => setImmediate(done));
      print([answer, redis.coalescer.stats().bytesWritten - bytesWritten, await redis.get('visits')]);
      await redis.quit();`,
    answer: [{ name: 'Ada', cart: { apples: '2' } }, 0, '1'],
  },
  Cluster: {
    packages: ['ioredis'],
    asked: `print([users, cluster.coalescer.stats().mode]); await cluster.quit();`,
    answer: [['1', '2', '3', '4', '5', '6'], 'MODE'],
  },
  'OpenTelemetry, New Relic': {
    packages: [
      ...['@opentelemetry/api', '@opentelemetry/instrumentation', '@opentelemetry/instrumentation-ioredis'],
      ...['@opentelemetry/sdk-trace-node', 'ioredis'],
    ],
    asked: `
      const { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } = await import('@opentelemetry/sdk-trace-node');
      const { trace } = await import('@opentelemetry/api');
      const exporter = new InMemorySpanExporter();
      const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
      provider.register();
      await redis.ping();
      await trace.getTracer('test').startActiveSpan('request', async (span) => {
        await Promise.all(Array.from({ length: 20 }, () => redis.get(name)));
        span.end();
      });
      const seen = exporter.getFinishedSpans().filter((span) => span.name === 'get').length;
      print([seen, redis.coalescer.stats().mode]);
      await redis.quit();`,
    answer: [20, 'MODE'],
  },
};
/** Their packages are not those of this repository: tools/known-applications.ts. */
const NIGHTLY = ['Express with connect-redis', 'NestJS: a microservice'];

test('every recipe of docs/recipes.md is run', () => {
  const titles = headings(DOCUMENT).filter(({ level }) => level === 2);
  expect(titles.map(({ text }) => text).toSorted()).toEqual(
    [...Object.keys(PROGRAMS), ...NIGHTLY, 'Tests with ioredis-mock'].toSorted(),
  );
  const applications = readFileSync(join(ROOT, 'tools/known-applications.ts'), 'utf8');
  for (const title of NIGHTLY) expect(applications).toContain(`'${title}'`);
});

describe.each(Object.entries(PROGRAMS))('%s', (title, { packages, asked, answer }) => {
  test.each(['fast', 'cork'])('in %s mode', async (mode) => {
    const project = await packed.createProject(`${title.replaceAll(/\W+/g, '-')}-${mode}`, packages);
    const name = JSON.stringify(uniquePrefix('recipe'));
    const print = 'const print = (value) => console.log(JSON.stringify(value));';
    await project.write('program.mjs', `${recipeOf(title)}\nconst name = ${name};\n${print}\n${asked}`);
    const cluster = title === 'Cluster' ? await startCluster() : undefined;
    try {
      const env = {
        ...outside(),
        REDIS_URL: cluster === undefined ? redisUrl() : `redis://${cluster.nodes[0]!.address}`,
        ...(mode === 'cork' ? { IOREDIS_COALESCE: 'cork' } : {}),
      };
      const program = run(process.execPath, ['program.mjs'], { cwd: project.folder, env, timeout: 30_000 });
      const { stdout, stderr } = await program;
      expect(stderr).toBe('');
      expect(stdout).toBe(`${JSON.stringify(answer).replace('MODE', mode)}\n`);
    } finally {
      await cluster?.stop();
    }
  });
});

test.each(['module', 'commonjs'])('Vitest replaces ioredis by ioredis-mock, in a project of type %s', async (type) => {
  const project = await packed.createProject(`vitest-${type}`, ['ioredis', 'ioredis-mock', 'vitest']);
  await project.write('package.json', JSON.stringify({ name: 'vitest-project', private: true, type }));
  const mock = recipes('ts').find((code) => code.includes('vitest'));
  const config = { test: { server: { deps: { inline: ['ioredis-coalesce'] } } } };
  await project.write('vitest.config.mts', `export default ${JSON.stringify(config)};`);
  await project.write('client.ts', `import Redis from 'ioredis-coalesce';\nexport const redis = ${CLIENT};`);
  await project.write(
    'client.test.ts',
    `import { Socket } from 'node:net';
     import { expect, test } from 'vitest';
     import { redis } from './client.js';
     ${mock}
     ${EXPECTATIONS.replace('const sockets', 'const sockets: unknown[]').replace('function (...args)', 'function (this: Socket, ...args: never)')}`,
  );
  await expectToPass(project, 'vitest/vitest.mjs', ['run']);
});

test('Jest replaces ioredis by ioredis-mock', async () => {
  const project = await packed.createProject('jest', ['ioredis', 'ioredis-mock']);
  const [mock] = recipes('js');
  await project.write('client.js', `const Redis = require('ioredis-coalesce');\nmodule.exports = ${CLIENT};`);
  await project.write(
    'client.test.js',
    `${mock}
     const { Socket } = require('node:net');
     const redis = require('./client.js');
     ${EXPECTATIONS}`,
  );
  await expectToPass(project, 'jest/bin/jest.js', ['--rootDir', '.']);
});

/** The code blocks of one language, in the part about ioredis-mock. */
function recipes(language: string): string[] {
  const found = section(DOCUMENT, 'Tests with ioredis-mock').matchAll(
    new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms'),
  );
  return [...found].map(([, code = '']) => code);
}

/** The environment, without what makes a run within a run take itself for this one. */
function outside(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|JEST|TEST$|NODE_ENV)/.test(name)),
  );
}

async function expectToPass({ folder }: Project, program: string, args: readonly string[]): Promise<void> {
  const env = outside();
  const done = run(process.execPath, [join(ROOT, 'node_modules', program), ...args], { cwd: folder, env });
  const { stdout, stderr } = await done.catch((error: { stdout: string; stderr: string }) => {
    throw new Error(`the recipe fails:\n${error.stdout}${error.stderr}`);
  });
  expect(stdout + stderr).toMatch(/1 passed/);
}
