import { Redis, type RedisOptions } from 'ioredis';
import { type CoalesceSetting, coalesce } from 'ioredis-coalesce';
import { productPrefixes } from './product.js';

/** Options for every client. */
export const CLIENT_OPTIONS = {
  // While Redis is down, a caller of this service prefers an early 503 to a wait for twenty reconnects.
  maxRetriesPerRequest: 1,
  retryStrategy: (attempt: number) => Math.min(attempt * 50, 1000),
} satisfies RedisOptions;

/** Kinds of client; the routes do not depend on which it is. */
export const CLIENT_KINDS = ['coalesced', 'cached', 'prefetch', 'plain', 'auto-pipelining'] as const;
export type ClientKind = (typeof CLIENT_KINDS)[number];

/** How a client of this kind coalesces; every key of the shop begins with `prefix`. */
export function settingOf(kind: ClientKind, prefix: string): CoalesceSetting {
  const prefixes = productPrefixes(prefix);
  if (kind === 'cached') return { cache: { prefixes } };
  if (kind === 'prefetch') return { cache: { prefixes, prefetch: true } };
  return kind === 'coalesced';
}

/** A connected client for a separate task, outside Fastify; one clear error if Redis is not there. */
export async function connectRedis(redisUrl: string, setting: CoalesceSetting): Promise<Redis> {
  const client = new Redis(redisUrl, { ...CLIENT_OPTIONS, lazyConnect: true });
  const redis = setting === false ? client : coalesce(client, setting);

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

/** Sends `quit` if there is a connection. */
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
