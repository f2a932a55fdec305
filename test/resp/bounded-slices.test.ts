/** Buffer's `utf8Slice()` and `latin1Slice()` are undocumented; on workerd they want both of their bounds. */
import { afterAll, beforeAll, it } from 'vitest';
import { expectAsPlain } from '../helpers/beside.js';
import { ioredis6, ready } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const { utf8Slice, latin1Slice } = Buffer.prototype;

/** Of the messages that workerd throws with. */
const UNBOUNDED = 'The "start" and "end" arguments must be of type number';

function bounded(slice: typeof utf8Slice): typeof utf8Slice {
  return function (this: Buffer, start: number, end: number) {
    if (typeof start !== 'number' || typeof end !== 'number') throw new TypeError(UNBOUNDED);
    return slice.call(this, start, end);
  };
}

let coalesce: typeof import('../../src/coalesce.js').coalesce;

beforeAll(async () => {
  // Before the package is loaded: it takes them from the prototype then.
  Object.assign(Buffer.prototype, { utf8Slice: bounded(utf8Slice), latin1Slice: bounded(latin1Slice) });
  ({ coalesce } = await import('../../src/coalesce.js'));
});

afterAll(() => {
  Object.assign(Buffer.prototype, { utf8Slice, latin1Slice });
});

it('all slices of Buffers are given their bounds', async () => {
  const proxy = await startProxy(redisUrl());
  const prefix = uniquePrefix('slices');
  await expectAsPlain(async (kind) => {
    const plain = ioredis6.create(proxy.url);
    const client = await ready(kind === 'plain' ? plain : coalesce(plain, { cache: true }));
    const key = Buffer.from(`${prefix}é`);
    const long = 'é'.repeat(40_000);
    const ascii = 'a'.repeat(40_000);
    await Promise.all([
      client.set(key, Buffer.from([97, 255, 98])),
      client.set(`${prefix}long`, long),
      client.set(`${prefix}ascii`, ascii),
      client.set(`${prefix}\ud800`, Buffer.from('é')),
      client.hset(`${prefix}hash`, { é: 'ü', a: 'b' }),
    ]);
    const seen: unknown[] = [];
    for (let round = 0; round < 3; round += 1) {
      seen.push(
        await Promise.all([
          client.getBuffer(key),
          client.get(key),
          client.get(`${prefix}long`),
          client.get(`${prefix}ascii`),
          client.getBuffer(`${prefix}long`),
          client.get(`${prefix}\ud800`),
          client.hgetall(`${prefix}hash`),
          client.incr(`${prefix}ascii`).catch(String),
          client.eval('return redis.call("get", KEYS[1])', 1, key),
        ]),
      );
      await client.pipeline().set(key, Buffer.from('é')).get(key).exec();
      await client.multi().set(`${prefix}long`, Buffer.from(long)).get(`${prefix}long`).exec();
    }
    return seen;
  });
});
