import Module from 'node:module';
import { fastify } from 'fastify';
import fastifyCoalesce from 'ioredis-coalesce/fastify';
import { expect, it, onTestFinished, vi } from 'vitest';
import { redisUrl } from '../helpers/redis.js';

interface Resolver {
  _resolveFilename(request: string, parent?: { filename?: string | null }, ...rest: unknown[]): string;
}

it('says what to install where @fastify/redis is missing', async () => {
  hide('@fastify/redis', () => true);
  const app = fastify();
  app.register(fastifyCoalesce, { url: redisUrl() });
  await expect(app.ready()).rejects.toMatchObject({
    code: 'MODULE_NOT_FOUND',
    message:
      'ioredis-coalesce/fastify needs the package "@fastify/redis" (version 9), which is not installed: ' +
      'run "npm install @fastify/redis"',
  });
});

it('takes the ioredis that came with @fastify/redis where the project has none of its own', async () => {
  const refused: string[] = [];
  hide('ioredis', (from) => {
    if (from.includes('@fastify')) return false;
    refused.push(from);
    return true;
  });
  const app = fastify();
  onTestFinished(() => app.close());
  await app.register(fastifyCoalesce, { url: redisUrl() });
  expect(await app.redis.ping()).toBe('PONG');
  expect(app.redis.coalescer.stats().commands).toBeGreaterThan(0);
  expect(refused).toHaveLength(1);
});

/** Makes a package unresolvable for the modules for which `isHidden` holds. */
function hide(name: string, isHidden: (from: string) => boolean): void {
  const resolver = Module as unknown as Resolver;
  const resolve = resolver._resolveFilename;
  const spy = vi.spyOn(resolver, '_resolveFilename').mockImplementation((request, parent, ...rest) => {
    if (request === name && isHidden(parent?.filename ?? '')) {
      throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
    }
    return resolve.call(Module, request, parent, ...rest);
  });
  onTestFinished(() => spy.mockRestore());
}
