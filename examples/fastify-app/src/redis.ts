import { Redis } from 'ioredis';
import { coalesce } from 'ioredis-coalesce';
import type { Config } from './config.js';

/** A connected client, coalesced or plain: the one line in which the two services differ. */
export async function connectRedis(config: Pick<Config, 'redisUrl' | 'coalesce'>): Promise<Redis> {
  const client = new Redis(config.redisUrl, {
    lazyConnect: true,
    // While Redis is away, a caller of this service would rather have a 503 soon than wait for twenty reconnects.
    maxRetriesPerRequest: 1,
    retryStrategy: (attempt) => Math.min(attempt * 50, 1000),
  });
  const redis = config.coalesce ? coalesce(client) : client;

  let failure: Error | undefined;
  const onError = (error: Error): void => {
    failure = error;
  };
  redis.on('error', onError);
  try {
    await redis.connect();
  } catch (error) {
    redis.disconnect();
    const cause = failure ?? error;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `Redis at ${withoutPassword(config.redisUrl)} is not reachable (${reason}): start one, or set REDIS_URL`,
      { cause },
    );
  }
  redis.off('error', onError);
  return redis;
}

function withoutPassword(text: string): string {
  const url = new URL(text);
  url.password = '';
  return url.href;
}
