import { describe, expect, it } from 'vitest';
import { cold } from '../helpers/cold.js';
import { type CoalescedClient, HOSTS, ioredis6, outcomes, ready } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

/** One command whose right answer is known from its number. */
type Ask = (client: CoalescedClient, number: number) => Promise<[got: unknown, expected: unknown]>;

const prefix = uniquePrefix('ordering');
const key = (number: number): string => `${prefix}${number}`;

const ASKS: readonly Ask[] = [
  async (client, n) => [await client.get(key(n)), `value ${n}`],
  async (client, n) => [await client.echo(`echo ${n}`), `echo ${n}`],
  async (client, n) => [await client.getBuffer(key(n)), Buffer.from(`value ${n}`)],
  async (client, n) => [await cold(client, 'ECHO', `call ${n}`), `call ${n}`],
  async (client, n) => [await client.echo(`multi-byte ${n} é€😀`), `multi-byte ${n} é€😀`],
  async (client, n) => [await client.mget(key(n), key(n + 1), `${prefix}none`), [`value ${n}`, `value ${n + 1}`, null]],
  async (client, n) => [await client.strlen(key(n)), `value ${n}`.length],
  async (client, n) => [
    await client.multi().get(key(n)).echo(`multi ${n}`).exec(),
    [
      [null, `value ${n}`],
      [null, `multi ${n}`],
    ],
  ],
  async (client, n) => [await client.pipeline().echo(`pipeline ${n}`).exec(), [[null, `pipeline ${n}`]]],
  async (client, n) => [await client.eval('return ARGV[1]', 0, `eval ${n}`), `eval ${n}`],
  async (client, n) => [
    await client.incr(key(n)).catch((error: Error) => error.message),
    expect.stringMatching(/^ERR/),
  ],
  async (client, n) => [(await client.echo(`large ${n}`.repeat(2_000))).length, `large ${n}`.length * 2_000],
];

const KEYS = 500;

async function fill(client: CoalescedClient): Promise<void> {
  await client.mset(Object.fromEntries(Array.from({ length: KEYS + 1 }, (_, n) => [key(n), `value ${n}`])));
}

/** `callers` callers, each of which asks one thing after the other, in an order of its own. */
async function askFromManyCallers(client: CoalescedClient, callers: number, each: number): Promise<void> {
  const wrong: unknown[] = [];
  const caller = async (number: number): Promise<void> => {
    for (let round = 0; round < each; round += 1) {
      const ask = ASKS[(number * 7 + round * 5) % ASKS.length] as Ask;
      const [got, expected] = await ask(client, (number * 31 + round * 17) % KEYS);
      try {
        expect(got).toEqual(expected);
      } catch {
        wrong.push({ got, expected });
      }
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
  expect(wrong).toEqual([]);
}

describe.each(HOSTS)('$name: thousands of mixed commands from many callers', (host) => {
  it('each caller gets the reply to its own command', async () => {
    const client = await ready(host.createCoalesced(redisUrl()));
    await fill(client);
    await askFromManyCallers(client, 300, 24);
  });

  it('each caller gets the reply to its own command with small maxBatchSize and maxInFlight', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxBatchSize: 7, maxInFlight: 20 }));
    await fill(client);
    await askFromManyCallers(client, 100, 24);
  });

  it('each caller gets the reply to its own command when replies come in packets of a few bytes', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(host.createCoalesced(proxy.url));
    await fill(client);
    proxy.cutRepliesInto(1_021);
    await askFromManyCallers(client, 60, 12);
    proxy.cutRepliesInto(7);
    const numbers = Array.from({ length: 300 }, (_, index) => index);
    expect(await Promise.all(numbers.map((n) => client.get(key(n))))).toEqual(numbers.map((n) => `value ${n}`));
  });
});

describe('program order', () => {
  it('a write is seen by every later read of the same tick, and by no earlier one', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { shareReads: true }));
    const k = `${prefix}program`;
    const writes = [
      (value: string) => client.set(k, value),
      (value: string) => cold(client, 'SET', k, value),
      (value: string) => client.multi().set(k, value).exec(),
      (value: string) => client.pipeline().set(k, value).exec(),
      (value: string) => client.eval("return redis.call('SET', KEYS[1], ARGV[1])", 1, k, value),
      (value: string) => client.mset({ [k]: value }),
      (value: string) => client.set(k, Buffer.from(value)),
    ];
    const reads = [
      () => client.get(k),
      () => cold(client, 'GET', k),
      () => client.mget([k]),
      () => client.multi().get(k).exec(),
      () => client.pipeline([['get', k]]).exec(),
      () => client.getBuffer(k),
      () => client.eval("return redis.call('GET', KEYS[1])", 1, k),
    ];
    const promises: Promise<unknown>[] = [];
    const expected: string[] = [];
    for (const [w, write] of writes.entries()) {
      for (const [r, read] of reads.entries()) {
        void write(`${w}/${r}`);
        promises.push(read());
        expected.push(`${w}/${r}`);
      }
    }
    const found = (await outcomes(promises)).map((outcome) => {
      const { value } = outcome as { value: unknown };
      const flat = [value].flat(3).filter((element) => element !== null);
      return String(flat[0]);
    });
    expect(found).toEqual(expected);
    await client.del(k);
  });

  it.each(HOSTS.map((host) => [host.name, host] as const))('callers settle in their order: %s', async (_, host) => {
    const client = await ready(host.createCoalesced(redisUrl()));
    const order: number[] = [];
    const asks = [() => cold(client, 'ECHO', 'x'), () => client.echo('y'), () => client.echo('é')];
    const asked = Array.from({ length: 600 }, (_, number) => asks[number % 3]?.().then(() => void order.push(number)));
    await Promise.all(asked);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });
});
