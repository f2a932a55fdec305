/** The forms in which a checked client reads and increments the numbers that keys hold. */
import type { Random } from '../hostile/random.js';
import type { Client } from '../hosts.js';

/** HINCRBY of one field and two copies of it, in one step. */
const BUMP = "local n = redis.call('HINCRBY', KEYS[1], 'a', 1) redis.call('HSET', KEYS[1], 'b', n, 'c', n) return n";

export interface Read {
  readonly name: string;
  readonly reply: Promise<number | undefined>;
}

function numberOf(value: unknown): number | undefined {
  if (value === null || value === undefined) return undefined;
  const number = Number(String(value));
  // Another command's reply, such as OK or QUEUED.
  if (Number.isNaN(number)) throw new StrangeReply(JSON.stringify(value));
  return number;
}

export class StrangeReply extends Error {}

export function readCounter(client: Client, key: string, random: Random): Read {
  switch (random.below(10)) {
    case 0:
      return { name: 'getBuffer', reply: client.getBuffer(key).then(numberOf) };
    case 1:
      return { name: 'mget', reply: client.mget(key).then(([value]) => numberOf(value)) };
    case 2:
      return { name: 'getrange', reply: client.getrange(key, 0, -1).then((text) => numberOf(text || null)) };
    default:
      return { name: 'get', reply: client.get(key).then(numberOf) };
  }
}

export function readHash(client: Client, key: string, random: Random): Read {
  switch (random.below(8)) {
    case 0:
      return {
        name: 'hgetall',
        reply: client.hgetall(key).then((hash) => numberOf(typeof hash === 'object' ? hash.a : hash)),
      };
    case 1:
      return { name: 'hmget', reply: client.hmget(key, 'b', 'c').then(([value]) => numberOf(value)) };
    case 2:
      return {
        name: 'pipeline',
        reply: client
          .pipeline()
          .hget(key, 'a')
          .exec()
          .then((replies) => {
            const [error, value] = replies?.[0] ?? [];
            if (error) throw error;
            return numberOf(value);
          }),
      };
    default: {
      const field = random.of(['a', 'b', 'c']);
      return { name: `hget ${field}`, reply: client.hget(key, field).then(numberOf) };
    }
  }
}

/** A read of one form: of a counter, or of a field of a hash. */
export function readField(client: Client, key: string, field: string | undefined): Read {
  if (field === undefined) return { name: 'get', reply: client.get(key).then(numberOf) };
  return { name: `hget ${field}`, reply: client.hget(key, field).then(numberOf) };
}

export async function bumpCounter(client: Client, key: string, random: Random): Promise<number> {
  switch (random.below(7)) {
    case 6:
      return Number(await (client as Client & { bump(key: string): Promise<number> }).bump(key));
    case 0: {
      const replies = await client.pipeline().ping().incr(key).exec();
      return Number(replies?.[1]?.[1]);
    }
    case 1: {
      const replies = await client.multi().incr(key).exec();
      return Number(replies?.[0]?.[1]);
    }
    case 2:
      return Number(await client.eval("return redis.call('INCR', KEYS[1])", 1, key));
    case 3:
      return Number(await client.call('INCRBY', key, '1'));
    case 4:
      return Number(await client.incr(Buffer.from(key)));
    default:
      return Number(await client.incr(key));
  }
}

export async function bumpHash(client: Client, key: string, random: Random): Promise<number> {
  if (random.oneIn(2)) return Number(await client.eval(BUMP, 1, key));
  const replies = await client.multi().hincrby(key, 'a', 1).hincrby(key, 'b', 1).hincrby(key, 'c', 1).exec();
  const value = replies?.[0]?.[1];
  if (value === undefined) throw new Error('the transaction was not carried out');
  return Number(value);
}

/** An increment within an open transaction, beside reads, and now and then another MULTI, which the server refuses. */
export function bumpInTransaction(
  client: Client,
  key: string,
  random: Random,
): { queued: Promise<unknown>[]; reply: Promise<number> } {
  const begun: Promise<unknown> = client.multi({ pipeline: false });
  const queued: Promise<unknown>[] = [];
  const nested: Promise<unknown>[] = [];
  const something = () => {
    for (let left = random.below(4); left > 0; left -= 1) {
      if (random.oneIn(4)) nested.push(client.call('multi'));
      queued.push(random.oneIn(2) ? client.get(key) : client.call('GET', key));
    }
  };
  something();
  const index = queued.length;
  queued.push(client.incr(key));
  something();
  const executed: Promise<unknown> = client.exec();
  const reply = (async () => {
    const [results] = await Promise.all([executed, begun, Promise.allSettled([...queued, ...nested])]);
    const value = (results as [unknown, unknown][] | null)?.[index]?.[1];
    if (value === undefined) throw new Error('the transaction was not carried out');
    return Number(value);
  })();
  return { queued, reply };
}
