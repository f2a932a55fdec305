import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAdapter } from '@socket.io/redis-adapter';
import { type PubSubRedisOptions, RedisPubSub } from 'graphql-redis-subscriptions';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import { Server } from 'socket.io';
import { io } from 'socket.io-client';
import { callers } from '../variants/timing.js';
import type { OpenPackage } from './package.js';

// Its `exports` name no types, so an import by name would have none.
type RedlockModule = typeof import('../../node_modules/redlock/dist/index.js');
const { default: Redlock } = createRequire(import.meta.url)('redlock') as RedlockModule;

const MINUTE = 60_000;
const RATE_LIMITED = 100;

export const rateLimiterFlexible: OpenPackage = async ({ open, prefix, concurrency }) => {
  const limiter = new RateLimiterRedis({
    storeClient: await open(),
    keyPrefix: `${prefix}flexible`,
    points: Number.MAX_SAFE_INTEGER,
    duration: 60,
  });
  return { run: callers(concurrency, (caller) => limiter.consume(`caller${caller % RATE_LIMITED}`)) };
};

/** Locks of their own: how fast they are taken and given back, not how long callers wait for each other. */
export const redlock: OpenPackage = async ({ open, prefix, concurrency }) => {
  const locks = new Redlock([await open()], { retryCount: 0 });
  return {
    run: callers(concurrency, async (caller) => (await locks.acquire([`${prefix}lock:${caller}`], MINUTE)).release()),
    close: () => locks.quit().catch(() => {}),
  };
};

/** Broadcasts by one server, until a client of the other one has them. */
export const socketIoBroadcasts: OpenPackage = async ({ open, prefix, concurrency }) => {
  const opening = Promise.all([open(), open(), open(), open()]);
  const [publisher, subscriber, otherPublisher, otherSubscriber] = await opening;
  const key = `${prefix}socket.io`;
  const from = new Server(createServer(), { adapter: createAdapter(publisher, subscriber, { key }) });
  const http = createServer();
  const to = new Server(http, { adapter: createAdapter(otherPublisher, otherSubscriber, { key }) });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const socket = io(`http://127.0.0.1:${(http.address() as AddressInfo).port}`, { transports: ['websocket'] });
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  const arrivals = new Arrivals();
  socket.on('news', (id: number) => arrivals.arrived(id));
  const broadcast = () => arrivals.of((id) => from.emit('news', id));
  // Nothing tells when the adapters have subscribed: broadcasts that arrive do.
  for (let arrived = false; !arrived; ) {
    arrived = await Promise.race([broadcast().then(() => true), sleep(100, false)]);
  }
  return {
    run: callers(concurrency, broadcast),
    async close() {
      socket.disconnect();
      await Promise.all([from.close(), to.close()]);
    },
  };
};

/** Publications until the subscriber has them. */
export const graphqlSubscriptions: OpenPackage = async ({ open, prefix, concurrency }) => {
  const [publisher, subscriber] = await Promise.all([open(), open()]);
  // Its types are those of the copy of ioredis that it brings, an older one.
  const pubsub = new RedisPubSub({ publisher, subscriber } as unknown as PubSubRedisOptions);
  const channel = `${prefix}graphql`;
  const arrivals = new Arrivals();
  await pubsub.subscribe(channel, ({ id }: { id: number }) => arrivals.arrived(id));
  return {
    run: callers(concurrency, () => arrivals.of((id) => pubsub.publish(channel, { id }))),
    close: () => pubsub.close(),
  };
};

/** Messages on their way, by number. */
class Arrivals {
  readonly #awaited = new Map<number, () => void>();
  #next = 0;

  /** Sends a message, and resolves when it has arrived. */
  of(send: (id: number) => unknown): Promise<void> {
    const id = this.#next;
    this.#next += 1;
    return new Promise((resolve, reject) => {
      this.#awaited.set(id, resolve);
      Promise.resolve(send(id)).catch(reject);
    });
  }

  arrived(id: number): void {
    this.#awaited.get(id)?.();
    this.#awaited.delete(id);
  }
}
