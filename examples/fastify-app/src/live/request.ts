import { randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { CoalesceSetting } from 'ioredis-coalesce';
import { connectRedis } from '../redis.js';
import { Distance } from './distance.js';

/** The clients under comparison, and how they coalesce. */
const CLIENTS = {
  plain: false,
  corked: { fastPath: false },
  coalesced: true,
  prefetch: { cache: { prefetch: true } },
} as const satisfies Record<string, CoalesceSetting>;
type Client = keyof typeof CLIENTS;

const ROUND_TRIP_MS = 1;
/** What a request reads of its user, one after the other, once its session has given the id. */
const OF_USER = ['profile', 'settings', 'cart', 'flags', 'plan', 'quota', 'inbox'] as const;
/** Requests of other users that each client has served before. */
const BEFORE = 300;
const BEFORE_AT_ONCE = 10;
const ROUNDS = 15;
const KEY_LIFE_SECONDS = 60;

/** One of the awaits of a request. */
interface Await {
  what: string;
  /** In milliseconds since the request began. */
  askedMs: number;
  answeredMs: number;
  /** Whether it sent something; if not, its answer had been requested before. */
  sent: boolean;
}

export interface RequestComparison {
  distanceMs: number;
  before: number;
  rounds: number;
  /** The median request of each client. */
  requests: Record<Client, Await[]>;
}

export interface RequestOptions {
  /** Without the delay. */
  writer: Redis;
  redisUrl: string;
  prefix: string;
  /** Aborted when the service closes. */
  signal: AbortSignal;
}

/** A request of eight awaits on each client in turn, each time for a user that none of them has read before. */
export async function measureRequest({ writer, redisUrl, prefix, signal }: RequestOptions): Promise<RequestComparison> {
  const own = `${prefix}request:${randomBytes(4).toString('hex')}:`;
  const users = Array.from({ length: BEFORE + ROUNDS }, (_, user) => user);
  const distance = await Distance.open({ redisUrl, roundTripMs: ROUND_TRIP_MS });
  const opened: [Client, Redis][] = [];
  try {
    for (const client of Object.keys(CLIENTS) as Client[]) {
      const redis = await connectRedis(distance.url, CLIENTS[client]);
      // Callers get the error; without a listener, ioredis would print it.
      redis.on('error', () => {});
      opened.push([client, redis]);
    }
    await write(writer, own, users);
    for (const [, redis] of opened) await serveBefore(redis, own, users.slice(0, BEFORE), signal);
    const requests: Record<Client, Await[][]> = { plain: [], corked: [], coalesced: [], prefetch: [] };
    for (const user of users.slice(BEFORE)) {
      signal.throwIfAborted();
      for (const [client, redis] of opened) requests[client].push(await serve(redis, own, user));
    }
    return {
      distanceMs: ROUND_TRIP_MS,
      before: BEFORE,
      rounds: ROUNDS,
      requests: {
        plain: medianOf(requests.plain),
        corked: medianOf(requests.corked),
        coalesced: medianOf(requests.coalesced),
        prefetch: medianOf(requests.prefetch),
      },
    };
  } finally {
    for (const [, redis] of opened) redis.disconnect();
    distance.close();
    await writer.unlink(users.flatMap((user) => Object.keys(keysOf(own, user)))).catch(() => {});
  }
}

/** The keys that a user's request reads, with values. */
function keysOf(own: string, user: number): Record<string, string> {
  const keys = OF_USER.map((what) => [`${own}user:${user}:${what}`, `${what} of ${user}`]);
  return { [`${own}session:s${user}`]: String(user), ...Object.fromEntries(keys) };
}

async function write(writer: Redis, own: string, users: readonly number[]): Promise<void> {
  const pipeline = writer.pipeline();
  for (const user of users) {
    for (const [key, value] of Object.entries(keysOf(own, user))) pipeline.set(key, value, 'EX', KEY_LIFE_SECONDS);
  }
  for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error;
}

async function serveBefore(redis: Redis, own: string, users: readonly number[], signal: AbortSignal): Promise<void> {
  const queue = users.values();
  const serveAll = async (): Promise<void> => {
    for (const user of queue) {
      signal.throwIfAborted();
      await serve(redis, own, user);
    }
  };
  await Promise.all(Array.from({ length: BEFORE_AT_ONCE }, serveAll));
}

/** The request itself, written as in services. */
async function serve(redis: Redis, own: string, user: number): Promise<Await[]> {
  const expected = keysOf(own, user);
  const awaits: Await[] = [];
  const start = performance.now();
  const read = async (what: string, key: string): Promise<string | null> => {
    const { bytesWritten } = redis.stream;
    const askedMs = performance.now() - start;
    const value = await redis.get(key);
    const answeredMs = performance.now() - start;
    awaits.push({ what, askedMs, answeredMs, sent: redis.stream.bytesWritten > bytesWritten });
    if (value !== expected[key]) throw new Error(`expected "${expected[key]}" at ${key}, got "${value}"`);
    return value;
  };
  const id = await read('session', `${own}session:s${user}`);
  for (const what of OF_USER) await read(what, `${own}user:${id}:${what}`);
  return awaits;
}

function medianOf(requests: Await[][]): Await[] {
  const totalMs = (request: Await[]): number => request.at(-1)!.answeredMs;
  return requests.toSorted((a, b) => totalMs(a) - totalMs(b))[requests.length >> 1]!;
}
