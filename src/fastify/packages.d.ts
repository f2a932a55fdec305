import type { HostPlugin } from './host-plugin.js';

export const FASTIFY_REDIS: '@fastify/redis';
export function loadFastifyRedis(): Promise<HostPlugin>;
/** The class, with the other exports of ioredis on it. */
export function loadIoredis(): Promise<unknown>;
export function versionOfFastifyRedis(): string | undefined;
export function isMissing(error: unknown, name: string): boolean;
