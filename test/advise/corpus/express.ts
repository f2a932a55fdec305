import { once } from 'node:events';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { type Given, type Pattern, RUNS } from './patterns.js';

interface Express {
  get(
    path: string,
    handler: (request: { params: { run: string } }, response: { end(): void }) => Promise<void>,
  ): unknown;
  listen(port: number, host: string): Server;
}

function patterns({ redis, other, prefix }: Given): Record<string, Pattern> {
  const key = (name: string, run: number) => `${prefix}${name}:${run}`;
  return {
    callbacks: (run) =>
      new Promise((resolve) => {
        redis.get(key('item', run), () => {
          // advice: together
          redis.hgetall(key('user', run), resolve);
        });
      }),
    callbackWithCondition: (run) =>
      new Promise<void>((resolve) => {
        redis.get(key(run % 2 ? 'session' : 'none', run), (_, session) => {
          if (!session) return resolve();
          // advice: if
          redis.llen(key('cart', run), () => resolve());
        });
      }),
    async typeThenRead(run) {
      const type = await redis.type(key('cart', run));
      // advice: leave
      if (type === 'list') await redis.lrange(key('cart', run), 0, -1);
    },
    async timeToLive(run) {
      const seconds = await redis.ttl(key('cart', run));
      // advice: leave
      if (seconds < 60) await redis.pexpireat(key('cart', run), Date.now() + 600_000);
    },
    async firstThatIsThere(run) {
      for (let level = 0; level < 4; level += 1) {
        // advice: if
        const found = await redis.get(key(level === run % 4 ? 'item' : 'none', level));
        if (found !== null) break;
      }
    },
    async untilMissing(run) {
      for (let part = 0; part < 9; part += 1) {
        // advice: if
        const found = await redis.get(key(part < 2 + (run % 3) ? 'item' : 'none', part));
        if (found === null) break;
      }
    },
    chained: () =>
      [0, 1, 2, 3].reduce<Promise<unknown>>(
        // advice: together
        (before, item) => before.then(() => redis.hget(key('user', item), 'name')),
        Promise.resolve(),
      ),
    async drained(run) {
      await other.rpush(key('queue', run), 'a', 'b', 'c');
      await new Promise((resolve) => setTimeout(resolve, 2));
      let next: string | null;
      do {
        // advice: if
        next = await redis.lpop(key('queue', run));
      } while (next !== null);
    },
    async twoWrites(run) {
      await redis.set(key('name', run), 'Ada');
      // advice: together
      await redis.set(key('mail', run), 'ada@example.org');
    },
    async loopOfWrites(run) {
      // advice: together
      for (let part = 0; part < 3; part += 1) await redis.setex(key(`part-${part}`, run), 60, 'x');
    },
    async watched(run) {
      await redis.watch(key('count', run));
      // advice: leave
      const count = Number(await redis.get(key('count', run)));
      const next = count * 3 + 5;
      // advice: leave
      await redis.multi().set(key('count', run), next).exec();
    },
    async members(run) {
      const tags = await redis.smembers(key('tags', run));
      // advice: argument
      await redis.mget(tags.map((tag) => `${prefix}${tag}`));
    },
    async seenOnce(run) {
      const isNew = await redis.sadd(`${prefix}seen`, run % 7);
      // advice: if
      if (isNew) await redis.rpush(`${prefix}new`, run);
    },
    async kept(run) {
      await redis.sadd(`${prefix}kept`, run % 5);
      // advice: together
      await redis.expire(`${prefix}kept`, 600);
    },
    async otherConnection(run) {
      await redis.set(key('written', run), 'x');
      // advice: leave
      await other.publish(`${prefix}changed`, `${run}`);
    },
    async page(run) {
      const page = Number(await redis.get(key('page', run)));
      // advice: argument
      await redis.lrange(`${prefix}list`, page * 10, page * 10 + 9);
    },
    async twoParameters(run) {
      await redis.hgetall(key('user', run));
      // advice: together
      await redis.hgetall(key('shop', (run * 5) % 12));
    },
    async role(run) {
      const role = await redis.get(key('role', run));
      if (role === 'blocked') return;
      // advice: leave
      await redis.rpush(`${prefix}posts`, run);
    },
  };
}

export async function onExpress(given: Given): Promise<void> {
  // It comes with Nest, and has no types.
  const app = (createRequire(import.meta.url)('express') as () => Express)();
  const all = patterns(given);
  for (const [name, pattern] of Object.entries(all)) {
    app.get(`/${name}/:run`, async (request, response) => {
      await pattern(Number(request.params.run));
      response.end();
    });
  }
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  for (const name of Object.keys(all)) {
    for (let run = 0; run < RUNS; run += 1) {
      const { status } = await fetch(`http://127.0.0.1:${port}/${name}/${run}`);
      if (status !== 200) throw new Error(`${name}: ${status}`);
    }
  }
  server.close();
}
