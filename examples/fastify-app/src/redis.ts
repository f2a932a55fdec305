import { Redis } from 'ioredis';
import { coalesce } from 'ioredis-coalesce';

export interface ConnectOptions {
  redisUrl: string;
  /** The one thing in which a plain and a coalesced service differ. */
  coalesce: boolean;
  /** Sees the client before it connects. */
  prepare?: (redis: Redis) => void;
}

/** A connected client, coalesced or plain. */
export async function connectRedis({ redisUrl, coalesce: wanted, prepare }: ConnectOptions): Promise<Redis> {
  const client = new Redis(redisUrl, {
    lazyConnect: true,
    // While Redis is away, a caller of this service would rather have a 503 soon than wait for twenty reconnects.
    maxRetriesPerRequest: 1,
    retryStrategy: (attempt) => Math.min(attempt * 50, 1000),
  });
  const redis = wanted ? coalesce(client) : client;
  prepare?.(redis);

  let failure: Error | undefined;
  const onError = (error: Error): void => {
    failure ??= error;
  };
  redis.on('error', onError);
  try {
    await redis.connect();
  } catch (error) {
    redis.disconnect();
    throw new Error(`Redis at ${addressOf(redisUrl)} is not reachable (${reasonOf(failure ?? error)})`, {
      cause: failure ?? error,
    });
  }
  redis.off('error', onError);
  return redis;
}

/** `quit` where there is someone to say it to. */
export async function closeRedis(redis: Redis): Promise<void> {
  if (redis.status === 'ready') {
    await redis.quit().catch(() => redis.disconnect());
  } else {
    redis.disconnect();
  }
}

/** Host and port, without user or password. */
export function addressOf(redisUrl: string): string {
  const { hostname, port } = new URL(redisUrl);
  return `${hostname}:${port || 6379}`;
}

// A refused connection to a name with several addresses is an AggregateError, whose message is empty.
function reasonOf(error: unknown): string {
  const { message, code } = error as { message?: string; code?: string };
  return message || code || String(error);
}
