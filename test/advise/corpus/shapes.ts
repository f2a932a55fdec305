/**
 * Programs of other shapes: short ids and flags, JSON, loops of several reads, nested loops, generators, streams,
 * recursion and several clients. Each runs by itself, with no framework around it.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Given, type Pattern, RUNS } from './patterns.js';

const ITEMS = [0, 1, 2, 3];

function patterns({ redis, other, prefix }: Given): Pattern[] {
  const key = (name: string, run: number | string) => `${prefix}${name}:${run}`;
  const value = async (name: string, run: number | string) => (await redis.get(key(name, run))) ?? '';
  return [
    async function shortMembers(run) {
      const ids = await redis.smembers(key('ids', run));
      // advice: argument; loop: together
      for (const id of ids) await redis.get(key('word', id));
    },
    async function membersAtOnce(run) {
      const ids = await redis.smembers(key('ids', run));
      // advice: argument
      await redis.mget(ids.map((id) => key('word', id)));
    },
    async function shortField(run) {
      const plan = await redis.hget(key('account', run), 'plan');
      // advice: argument
      await redis.get(key('limits', String(plan)));
    },
    async function shortFieldOfAll(run) {
      const { level } = await redis.hgetall(key('account', run));
      // advice: argument
      await redis.smembers(key('perks', String(level)));
    },
    async function shortIdInToken(run) {
      const products = await redis.hgetall(key('basket', `k3v9x${1 + (Number(run) % 4)}`));
      // advice: argument
      await redis.hget(key('product', String(Object.keys(products)[0])), 'name');
    },
    async function shortIdOfJson(run) {
      const { next } = JSON.parse(await value('doc', run)) as { next: number };
      // advice: argument
      await redis.strlen(key('word', next));
    },
    async function truth(run) {
      const { dark } = JSON.parse(await value('doc', run)) as { dark: boolean };
      // advice: argument
      await redis.get(key('theme', String(dark)));
    },
    async function flag(run) {
      if ((await value('on', run)) !== '1') return;
      // advice: leave
      await redis.llen(key('cart', run));
    },
    async function variant(run) {
      const name = await value('variant', run);
      // advice: argument
      await redis.get(key('texts', name));
    },
    async function allowed(run) {
      if (!(await redis.sismember(`${prefix}allowed`, run))) return;
      // advice: leave
      await redis.hgetall(key('user', run));
    },
    async function byDefault(run) {
      const language = (await redis.get(key('language', run))) ?? 'en';
      // advice: argument
      await redis.get(key('texts', language));
    },
    async function hashed(run) {
      const token = await value('session', run);
      // advice: leave
      await redis.get(key('token', createHash('sha1').update(token).digest('hex')));
    },
    async function following(run) {
      const current = Number(await value('current', run));
      // advice: argument
      await redis.get(key('word', current + 1));
    },
    async function twoIdsOfJson(run) {
      const { next, author } = JSON.parse(await value('doc', run)) as { next: number; author: string };
      // advice: argument
      await redis.get(key('word', next));
      // advice: together
      await redis.hget(key('author', author), 'name');
    },
    async function userOfSession(run) {
      const user = await value('session', run);
      // advice: argument
      await redis.hgetall(prefix + user);
      // advice: together
      await redis.exists(key('orders', user));
    },
    async function loopOfThree() {
      for (const item of ITEMS) {
        // advice: loop: together
        await redis.get(key('item', item));
        // advice: together
        await redis.hgetall(key('user', item));
        // advice: together
        await redis.llen(key('cart', item));
      }
    },
    async function loopOfOwners() {
      for (const item of ITEMS) {
        // advice: loop: together
        const owner = await redis.hget(key('shop', item), 'owner');
        // advice: argument
        await redis.hget(`${prefix}${owner}`, 'name');
      }
    },
    async function loopWithCondition(run) {
      for (const item of ITEMS) {
        // advice: loop: together
        const word = await redis.get(key('word', 1 + ((item + run) % 9)));
        // advice: argument
        if (word === 'lemon' || word === 'fig') await redis.get(key('recipe', word));
      }
    },
    async function listOfUsers(run) {
      const ids = await redis.lrange(key('list', run), 0, -1);
      for (const id of ids) {
        // advice: argument; loop: together
        await redis.hgetall(key('account', id));
        // advice: together
        await redis.get(key('word', id));
      }
    },
    async function nested() {
      for (const shop of [4, 5, 6]) {
        // advice: loop: together
        await redis.hgetall(key('shop', shop));
        for (const item of [0, 1]) {
          // advice: together; loop: together
          await redis.get(key('item', shop + item));
        }
      }
    },
    async function thenOneMore(run) {
      // advice: loop: together
      for (const item of ITEMS) await redis.get(key('item', item));
      // advice: together
      await redis.scard(key('tags', run));
    },
    async function sums() {
      let total = 0;
      // advice: loop: together
      for (const item of [1, 2, 3, 4, 5, 6, 7, 8]) total += Number(await redis.get(key('amount', item)));
      return total;
    },
    async function sometimesEmpty(run) {
      await redis.hgetall(key('user', run));
      // advice: together; loop: together
      for (let item = 0; item < run % 4; item += 1) await redis.strlen(key('item', item));
    },
    async function generated(run) {
      async function* words() {
        for (const id of [run + 1, run + 2, run + 3]) {
          // advice: loop: together
          yield await redis.get(key('item', id));
        }
      }
      for await (const _ of words());
    },
    async function streamed() {
      for await (const item of Readable.from(ITEMS)) {
        // advice: loop: together
        await redis.get(key('item', item as number));
      }
    },
    async function throughStream() {
      await pipeline(
        Readable.from(ITEMS),
        async function* (items: AsyncIterable<number>) {
          for await (const item of items) {
            // advice: loop: together
            yield await redis.hgetall(key('user', item));
          }
        },
        async (users: AsyncIterable<object>) => {
          for await (const _ of users);
        },
      );
    },
    async function chain(run) {
      const follow = async (id: string): Promise<unknown> => {
        // advice: loop: argument
        const next = await redis.get(key('node', id));
        return next === null ? id : follow(next);
      };
      await follow(`${run % 3}`);
    },
    async function tree() {
      const walk = async (id: number): Promise<void> => {
        // advice: loop: argument
        const { children } = JSON.parse(String(await redis.get(key('tree', id)))) as { children: number[] };
        for (const child of children) await walk(child);
      };
      await walk(1);
    },
    async function recursionOverItems() {
      const readAll = async ([first, ...others]: number[]): Promise<void> => {
        if (first === undefined) return;
        // advice: loop: together
        await redis.get(key('item', first));
        await readAll(others);
      };
      await readAll(ITEMS);
    },
    async function chainWithData(run) {
      for (let id: string | null = `${run % 3}`; id !== null; ) {
        // advice: loop: argument
        const next: string | null = await redis.get(key('node', id));
        // advice: together
        await redis.strlen(key('word', id));
        id = next;
      }
    },
    async function twoClients(run) {
      await redis.hgetall(key('user', run));
      // advice: together
      await other.llen(key('cart', run));
    },
    async function loopOverTwoClients() {
      for (const item of ITEMS) {
        // advice: loop: together
        await redis.get(key('item', item));
        // advice: together
        await other.hgetall(key('user', item));
      }
    },
    async function countedElsewhere(run) {
      await redis.incr(key('opened', run % 3));
      // advice: leave
      await other.get(key('opened', run % 3));
    },
    async function scanned() {
      let cursor = '0';
      do {
        // advice: loop: argument
        [cursor] = await redis.hscan(`${prefix}large`, cursor, 'COUNT', 50);
      } while (cursor !== '0');
    },
    async function pairsAtOnce() {
      for (const item of ITEMS) {
        // advice: loop: together
        await Promise.all([redis.get(key('item', item)), redis.strlen(key('session', item))]);
      }
    },
    async function batches() {
      for (const item of [0, 2, 4]) {
        const batch = redis.pipeline().get(key('item', item));
        // advice: loop: together
        await batch.strlen(key('item', item)).exec();
      }
    },
    async function fields(run) {
      const names = await redis.hkeys(key('shelf', run));
      // advice: argument; loop: together
      for (const name of names) await redis.hget(key('shelf', run), name);
    },
    async function until(run) {
      // advice: loop: leave
      while ((await redis.incr(key('turns', run))) < 4);
    },
  ];
}

export async function shapes(given: Given): Promise<void> {
  for (const pattern of patterns(given)) {
    for (let run = 0; run < RUNS; run += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      await pattern(run);
    }
  }
}
