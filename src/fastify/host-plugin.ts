import { createRequire } from 'node:module';
import type { FastifyInstance } from 'fastify';
import { withCode } from '../errors.js';

export const FASTIFY_REDIS = '@fastify/redis';

/** The options as they come from JavaScript. */
export interface GivenOptions {
  namespace?: string | undefined;
  client?: object | null;
  nodes?: unknown;
  closeClient?: boolean;
  [hostOption: string]: unknown;
}

type HostPlugin = (fastify: FastifyInstance, options: GivenOptions, next: (error?: Error) => void) => void;

/**
 * Loads @fastify/redis when it is first needed. Not imported, since its types give `fastify.redis` another type than
 * this package does, and TypeScript allows one.
 */
export function loadFastifyRedis(): HostPlugin {
  try {
    return createRequire(import.meta.url)(FASTIFY_REDIS) as HostPlugin;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== 'MODULE_NOT_FOUND' || !message.startsWith(`Cannot find module '${FASTIFY_REDIS}'`)) throw error;
    const missing = new Error(
      `ioredis-coalesce/fastify needs the package "${FASTIFY_REDIS}" (version 9), which is not installed: ` +
        `run "npm install ${FASTIFY_REDIS}"`,
      { cause: error },
    );
    throw withCode(missing, code);
  }
}
