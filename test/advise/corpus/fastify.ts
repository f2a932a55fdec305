import Fastify from 'fastify';
import { type Given, type Pattern, RUNS } from './patterns.js';

function patterns({ redis, prefix }: Given): Record<string, Pattern> {
  const key = (name: string, run: number) => `${prefix}${name}:${run}`;

  async function loadUser(run: number): Promise<unknown> {
    return redis.hgetall(key('user', run));
  }

  async function loadScores(run: number): Promise<unknown> {
    // advice: together
    return redis.zrange(key('scores', run), '0', '-1');
  }

  return {
    async userAndCart(run) {
      await redis.hgetall(key('user', run));
      // advice: together
      await redis.llen(key('cart', run));
    },
    async helpers(run) {
      await loadUser(run);
      await loadScores(run);
      // advice: together
      await redis.scard(key('tags', run));
    },
    async loop() {
      // advice: together
      for (let item = 0; item < 5; item += 1) await redis.get(key('item', item));
    },
    async loopOfTwo() {
      for (let item = 0; item < 4; item += 1) {
        // advice: together
        await redis.hgetall(key('user', item));
        // advice: together
        await redis.llen(key('cart', item));
      }
    },
    async session(run) {
      const user = await redis.get(key('session', run));
      // advice: argument
      await redis.hgetall(`${prefix}${user}`);
    },
    async fieldOfJson(run) {
      const { cart } = JSON.parse((await redis.get(key('json', run))) ?? '{}') as { cart: string };
      // advice: argument
      await redis.lrange(`${prefix}${cart}`, 0, -1);
    },
    async cache(run) {
      const cached = await redis.get(key('cached', run));
      // advice: if
      if (cached === null) await redis.set(key('cached', run), run, 'EX', 60);
    },
    async readModifyWrite(run) {
      const count = Number(await redis.get(key('count', run)));
      // advice: leave
      await redis.set(key('count', run), count * 2 + 7);
    },
    async lock(run) {
      if (!(await redis.set(key('lock', run), '1', 'PX', 60_000, 'NX'))) return;
      // advice: leave
      await redis.hget(key('user', run), 'name');
      // advice: leave
      await redis.set(key('result', run), 'done');
      // advice: leave
      await redis.del(key('lock', run));
    },
    async earlyReturn(run) {
      const user = await redis.hgetall(key(run % 3 ? 'user' : 'nobody', run));
      if (user.name === undefined) return;
      // advice: if
      await redis.llen(key('cart', run));
    },
    async existsThenRead(run) {
      if (!(await redis.exists(key('user', run)))) return;
      // advice: leave
      await redis.hgetall(key('user', run));
    },
    async limiter(run) {
      const calls = await redis.incr(`${prefix}limit`);
      if (calls > 9) return;
      // advice: if
      await redis.hgetall(key('user', run));
    },
    async limiterOfNewKeys(run) {
      const calls = await redis.incr(key('limit', run));
      // advice: leave
      if (calls === 1) await redis.expire(key('limit', run), 60);
    },
    async idempotent(run) {
      if (!(await redis.setnx(key('once', run), 1))) return;
      // advice: leave
      await redis.rpush(`${prefix}orders`, run);
    },
    async writeThenRead(run) {
      await redis.set(key('seen', run), 'now');
      // advice: together
      await redis.hgetall(key('user', run));
    },
    async firstOfTwo(run) {
      const [user] = await Promise.all([redis.get(key('session', run)), redis.strlen(key('item', run))]);
      // advice: argument
      await redis.hgetall(`${prefix}${user}`);
    },
    async readAndWrite(run) {
      const [role] = await Promise.all([redis.get(key('role', run)), redis.set(key('seen', run), 'now')]);
      // advice: leave
      if (role !== 'blocked') await redis.set(key('name', run), 'Ada');
    },
    async allAtOnce(run) {
      await Promise.all([redis.strlen(key('session', run)), redis.getrange(key('session', run), 0, 1)]);
    },
  };
}

export async function fastify(given: Given): Promise<void> {
  const app = Fastify();
  const all = patterns(given);
  for (const [name, pattern] of Object.entries(all)) {
    app.get<{ Params: { run: string } }>(`/${name}/:run`, async ({ params }) => {
      await pattern(Number(params.run));
      return {};
    });
  }
  // The session's time is renewed before each of these routes.
  app.register(async (guarded) => {
    const { redis, prefix } = given;
    guarded.addHook<{ Params: { run: string } }>('preHandler', async ({ params }) => {
      await redis.expire(`${prefix}session:${params.run}`, 1_000);
    });
    guarded.get<{ Params: { run: string } }>('/profile/:run', async ({ params }) => {
      // advice: together
      return redis.hgetall(`${prefix}user:${params.run}`);
    });
  });
  for (const name of [...Object.keys(all), 'profile']) {
    for (let run = 0; run < RUNS; run += 1) {
      const { statusCode } = await app.inject(`/${name}/${run}`);
      if (statusCode !== 200) throw new Error(`${name}: ${statusCode}`);
    }
  }
  await app.close();
}
