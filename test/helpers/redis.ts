import { randomBytes } from 'node:crypto';
import { inject } from 'vitest';
import type {} from './global-setup.js';

/** A server of one's own, for tests that stop, kill or reconfigure it. */
export { type RedisServer, type StartOptions, startRedis as startServer } from '../../tools/redis-server.js';

/** The server that all test files of this run share. */
export const redisUrl = (): string => inject('redisUrl');

/** A key prefix that no other test, file or run uses. */
export const uniquePrefix = (name: string): string => `${name}:${randomBytes(6).toString('hex')}:`;
