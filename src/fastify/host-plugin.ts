import type { FastifyInstance } from 'fastify';
import { withCode } from '../errors.js';
import { FASTIFY_REDIS, isMissing, loadFastifyRedis } from './packages.js';

/** The options; JavaScript users may have passed values of any type. */
export interface GivenOptions {
  namespace?: string | undefined;
  client?: object | null;
  nodes?: unknown;
  closeClient?: boolean;
  [hostOption: string]: unknown;
}

type HostPlugin = (fastify: FastifyInstance, options: GivenOptions, next: (error?: Error) => void) => void;

export async function loadHostPlugin(): Promise<HostPlugin> {
  try {
    return await loadFastifyRedis();
  } catch (error) {
    if (!isMissing(error, FASTIFY_REDIS)) throw error;
    const missing = new Error(
      `ioredis-coalesce/fastify needs the package "${FASTIFY_REDIS}" (version 9), which is not installed: ` +
        `run "npm install ${FASTIFY_REDIS}"`,
      { cause: error },
    );
    throw withCode(missing, 'MODULE_NOT_FOUND');
  }
}
