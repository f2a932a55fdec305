import 'reflect-metadata';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ThrottlerStorageRedisService } from '@nest-lab/throttler-storage-redis';
import { Controller, Get } from '@nestjs/common';
import { APP_GUARD, NestFactory } from '@nestjs/core';
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Client, ready } from '../helpers/hosts.js';
import { uniquePrefix } from '../helpers/redis.js';
import { CLIENT_KINDS, COALESCED_5, expectTookPart } from './helpers/clients.js';

const LIMIT = 10;
const REQUESTS = 30;
const MINUTE = 60_000;

/** The package asks `instanceof`, and its ioredis is the 6. */
const KINDS = CLIENT_KINDS.filter((kind) => kind !== COALESCED_5);

describe.each(KINDS)('@nest-lab/throttler-storage-redis with $name', (kind) => {
  it('lets exactly `limit` of a burst through two instances of a Nest app', async () => {
    const keyPrefix = uniquePrefix('nest');
    const clients = [await ready(kind.create({ keyPrefix })), await ready(kind.create({ keyPrefix }))] as const;
    const urls = await Promise.all(clients.map(startApp));
    const replies = await Promise.all(
      Array.from({ length: REQUESTS }, async (_, index) => fetch(urls[index % urls.length]!)),
    );
    const passed = replies.filter(({ status }) => status === 200);
    expect([passed.length, replies.filter(({ status }) => status === 429).length]).toEqual([LIMIT, REQUESTS - LIMIT]);
    const remaining = passed.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')));
    expect(remaining.sort((a, b) => a - b)).toEqual(Array.from({ length: LIMIT }, (_, index) => index));
    for (const reply of replies)
      if (reply.status === 429) expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
    for (const client of clients) expectTookPart(kind, client, { batched: false, fast: false });
  });

  it('counts concurrent hits of the storage itself exactly, and blocks beyond the limit', async () => {
    const client = await ready(kind.create({ keyPrefix: uniquePrefix('nest') }));
    const storage = new ThrottlerStorageRedisService(client);
    expect(storage.redis).toBe(client);
    const hits = await Promise.all(
      Array.from({ length: REQUESTS }, () => storage.increment('ann', MINUTE, LIMIT, MINUTE, 'default')),
    );
    expect(hits.map(({ totalHits }) => totalHits)).toEqual(Array.from({ length: REQUESTS }, (_, index) => index + 1));
    expect(hits.map(({ isBlocked }) => isBlocked)).toEqual(
      Array.from({ length: REQUESTS }, (_, index) => index >= LIMIT),
    );
    expectTookPart(kind, client, { batched: true, fast: false });
  });
});

class HelloController {
  hello(): string {
    return 'through';
  }
}
// As decorators would do it: the compiler that runs the tests has them in another dialect than Nest.
Controller()(HelloController);
const hello = Object.getOwnPropertyDescriptor(HelloController.prototype, 'hello')!;
Get()(HelloController.prototype, 'hello', hello);

/** An app of one route on loopback; its address. */
async function startApp(client: Client): Promise<string> {
  const storage = new ThrottlerStorageRedisService(client);
  const app = await NestFactory.create(
    {
      module: class AppModule {},
      imports: [ThrottlerModule.forRoot({ throttlers: [{ ttl: MINUTE, limit: LIMIT }], storage })],
      controllers: [HelloController],
      providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
    },
    { logger: ['error'] },
  );
  onTestFinished(() => app.close());
  await app.listen(0, '127.0.0.1');
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  return `http://127.0.0.1:${port}/`;
}
