/** Run in a worker thread, which prints a report of its own. */
import { type Given, type Pattern, RUNS } from './patterns.js';

function patterns({ redis, other, prefix }: Given): Pattern[] {
  const key = (name: string, run: number) => `${prefix}${name}:${run}`;
  return [
    async () => {
      // advice: together
      for (let item = 0; item < 4; item += 1) await redis.strlen(key('item', item));
    },
    async function counted(run) {
      await redis.scard(key('tags', run));
      // advice: together
      await redis.zcard(key('scores', run));
    },
    async function locked(run) {
      await redis.setnx(key('thread-lock', run), 1);
      // advice: leave
      await redis.get(key('session', run));
      // advice: leave
      await redis.get(key('item', run % 5));
      // advice: leave
      await redis.unlink(key('thread-lock', run));
      // advice: together
      await redis.llen(key('cart', run));
    },
    async function polled(run) {
      // advice: leave
      for (let times = 0; times < 3 && (await redis.get(key('session', run))) !== 'done'; times += 1);
    },
    async function token(run) {
      await redis.set(key('token', run), 'secret');
      await new Promise((resolve) => setTimeout(resolve, 2));
      const found = await redis.getdel(key('token', run));
      // advice: leave
      if (found !== null) await redis.set(key('used', run), 'yes');
    },
    async function replaced(run) {
      await redis.set(key('draft', run), 'text');
      // advice: together
      await redis.rename(key('draft', run), key('final', run));
    },
    async function otherConnection(run) {
      await redis.set(key('flag', run), 'on');
      // advice: leave
      await other.get(key('flag', run));
    },
    async function failing(run) {
      try {
        await redis.lpush(key('session', run), 'x');
      } catch {
        // advice: leave
        await redis.get(key('session', run));
      }
    },
    async function timed(run) {
      await redis.get(key('session', run));
      await new Promise((resolve) => setTimeout(resolve, 2));
      await redis.hgetall(key('user', run));
    },
  ];
}

export async function threads(given: Given): Promise<void> {
  for (const pattern of patterns(given)) {
    for (let run = 0; run < RUNS; run += 1) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      await pattern(run);
    }
  }
}
