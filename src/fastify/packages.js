/**
 * The packages that the plugin loads when it is registered, by `import()` of their names, which bundlers follow; the
 * CommonJS build has `require()` instead, which Jest can do.
 *
 * In JavaScript, since TypeScript would read the types of @fastify/redis: they give `fastify.redis` another type than
 * this package does, and TypeScript allows one.
 */
import { createRequire } from 'node:module';

export const FASTIFY_REDIS = '@fastify/redis';

export async function loadFastifyRedis() {
  return (await import('@fastify/redis')).default;
}

/** The project's own ioredis; without one, the ioredis that came with @fastify/redis. */
export async function loadIoredis() {
  try {
    return (await import('ioredis')).default;
  } catch (error) {
    if (!isMissing(error, 'ioredis')) throw error;
    return createRequire(createRequire(import.meta.url).resolve(FASTIFY_REDIS))('ioredis');
  }
}

/** The version of @fastify/redis; undefined in a bundle. */
export function versionOfFastifyRedis() {
  try {
    return createRequire(import.meta.url)(`${FASTIFY_REDIS}/package.json`).version;
  } catch {
    return undefined;
  }
}

/** Whether `error` says that this package is not installed, by `require()` or by `import()`. */
export function isMissing(error, name) {
  const { code, message } = error;
  return (
    (code === 'MODULE_NOT_FOUND' && message.startsWith(`Cannot find module '${name}'`)) ||
    (code === 'ERR_MODULE_NOT_FOUND' && message.startsWith(`Cannot find package '${name}'`))
  );
}
