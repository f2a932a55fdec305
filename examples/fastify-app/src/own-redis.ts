import { existsSync } from 'node:fs';

/** What we need from the repository's own tool; the example itself depends only on packages. */
interface Tool {
  startRedis(): Promise<OwnRedis>;
}

export interface OwnRedis {
  url: string;
  binary: string;
  version: string;
  stop(): Promise<void>;
}

/** For users who have just cloned the repository: a server of our own that ends with this process. */
export async function startOwnRedis(): Promise<OwnRedis> {
  const tool = new URL('../../../tools/redis-server.ts', import.meta.url);
  if (!existsSync(tool)) {
    throw new Error('REDIS_URL is not set: expected something like redis://127.0.0.1:6379');
  }
  const { startRedis } = (await import(tool.href)) as Tool;
  return startRedis();
}
