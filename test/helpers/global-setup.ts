import type { TestProject } from 'vitest/node';
import { startRedis } from '../../tools/redis-server.js';

declare module 'vitest' {
  export interface ProvidedContext {
    redisUrl: string;
  }
}

/** One server for the whole run. `REDIS_URL` is not looked at: tests touch no server that they did not start. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startRedis();
  project.provide('redisUrl', server.url);
  return () => server.stop();
}
