/**
 * Hooks that run while a promise or a timer is made, such as those of tracers: what they send does not take the
 * caller's place.
 */
import { createHook } from 'node:async_hooks';
import { describe, expect, it } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { cold } from '../helpers/cold.js';
import { HOSTS, LONG_ENOUGH, outcomesWithin } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const prefix = uniquePrefix('code-at-promises');

describe.each(HOSTS)('$name: commands sent while another one makes its promises', (host) => {
  it.each([1, 2, 3])('by the hook, at promise %i: each caller gets its own reply', async (nth) => {
    const settled = await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      await client.mset(`${prefix}outer`, 'outer', `${prefix}inner`, 'inner');
      const inner: Promise<unknown>[] = [];
      let promises = 0;
      const hook = createHook({
        init(_id, type) {
          if (type !== 'PROMISE') return;
          promises += 1;
          if (promises === nth) inner.push(client.get(`${prefix}inner`));
        },
      });
      hook.enable();
      const outer = client.get(`${prefix}outer`);
      hook.disable();
      // Clients make different numbers of promises.
      inner.push(client.get(`${prefix}inner`));
      return outcomesWithin(LONG_ENOUGH, [outer, inner[0] as Promise<unknown>]);
    });
    expect(settled).toEqual([{ value: 'outer' }, { value: 'inner' }]);
  });

  it.each([
    ['Immediate', 'of the host'],
    ['Timeout', 'of the host'],
    ['Immediate', 'fast'],
    ['Timeout', 'fast'],
  ])('by the hook of an %s, the first command is %s: each caller gets its own reply', async (type, first) => {
    await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl(), { socketTimeout: 60_000 }, { maxInFlight: 2 });
      await client.mset(`${prefix}outer`, 'outer', `${prefix}inner`, 'inner');
      const inner: Promise<unknown>[] = [];
      let isSent = false;
      const sendInner = () => {
        if (isSent) return;
        isSent = true;
        for (let count = 0; count < 3; count += 1) inner.push(client.get(`${prefix}inner`));
      };
      const hook = createHook({ init: (_id, made) => made === type && sendInner() });
      hook.enable();
      const get = (how: string) =>
        how === 'fast' ? client.get(`${prefix}outer`) : cold(client, 'get', `${prefix}outer`);
      const outer = [get(first), get('fast')];
      hook.disable();
      sendInner();
      return outcomesWithin(LONG_ENOUGH, [...outer, ...inner]);
    });
  });
});

describe.each(HOSTS)('$name: an HSET sent while one that falls back makes its promise', (host) => {
  it.each([{ x: 1 }, { x: true }])('of %j: each writes its own fields', async (fields) => {
    const settled = await expectAsPlain(async (kind) => {
      const client = await connectAs(kind, host, redisUrl());
      const [outer, inner] = [`${prefix}outer:hash`, `${prefix}inner:hash`];
      await client.del(outer, inner);
      // Its method is compared once, which makes promises, too.
      await client.hset(outer, { warm: true } as never);
      let sent: Promise<unknown> | undefined;
      let isInside = false;
      const hook = createHook({
        init(_id, type) {
          if (type !== 'PROMISE' || isInside) return;
          isInside = true;
          sent = client.hset(inner, fields as never);
        },
      });
      hook.enable();
      const replies = [client.hset(outer, { flag: true } as never)];
      hook.disable();
      replies.push(sent as Promise<never>);
      const results = await outcomesWithin(LONG_ENOUGH, replies);
      return [results, await client.hgetall(outer), await client.hgetall(inner)];
    });
    expect(settled).toMatchObject([{}, { warm: 'true', flag: 'true' }, { x: String(fields.x) }]);
  });
});
