/** Callers of one shared read may change what they get. */
import { setImmediate as turn } from 'node:timers/promises';
import { Command } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectAs, expectAsPlain } from '../helpers/beside.js';
import { coalescedFake } from '../helpers/fake-connection.js';
import { ioredis6, sleep } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

const REPLIES: Record<string, { mapping: 'legacy' | 'resp3'; bytes: string; gives: unknown }> = {
  'an object of the resp3 mapping': {
    mapping: 'resp3',
    bytes: '%2\r\n$1\r\nf\r\n$1\r\nv\r\n$1\r\ng\r\n$1\r\nw\r\n',
    gives: { f: Buffer.from('v'), g: Buffer.from('w') },
  },
  'an object whose keys are those of Object.prototype': {
    mapping: 'resp3',
    bytes: '%2\r\n$9\r\n__proto__\r\n$1\r\nv\r\n$11\r\nconstructor\r\n$1\r\nw\r\n',
    gives: JSON.parse('{"__proto__": 0, "constructor": 0}', (name, value) =>
      name === '__proto__' ? Buffer.from('v') : name === 'constructor' ? Buffer.from('w') : value,
    ),
  },
  'an object of arrays and objects': {
    mapping: 'resp3',
    bytes: '%1\r\n$1\r\nf\r\n*2\r\n$1\r\nv\r\n%1\r\n$1\r\ng\r\n$1\r\nw\r\n',
    gives: { f: [Buffer.from('v'), { g: Buffer.from('w') }] },
  },
  'a flat array of the legacy mapping': {
    mapping: 'legacy',
    bytes: '*2\r\n$1\r\nf\r\n$1\r\nv\r\n',
    gives: { f: Buffer.from('v') },
  },
};

/** Ruins a value, its memory included. */
function spoil(value: unknown): void {
  if (Buffer.isBuffer(value)) value.fill('!');
  else if (Array.isArray(value)) value.forEach(spoil);
  else if (typeof value === 'object' && value !== null) {
    for (const name of Object.getOwnPropertyNames(value)) {
      spoil(Reflect.getOwnPropertyDescriptor(value, name)?.value);
      Reflect.deleteProperty(value, name);
    }
  }
}

describe.each(Object.keys(REPLIES))('%s, shared by three callers of hgetallBuffer', (title) => {
  const { mapping, bytes, gives } = REPLIES[title] as (typeof REPLIES)[string];

  it.each(['whole', 'cut in two', 'byte by byte'])('%s: each caller gets its own', async (way) => {
    const { client, socket } = await coalescedFake({ shareReads: true }, {
      protocol: 3,
      replyMapping: mapping,
    } as object);
    const reads = [client.hgetallBuffer('h'), client.hgetallBuffer('h'), client.hgetallBuffer('h')];
    await turn();
    const reply = Buffer.from(bytes);
    const step = { whole: reply.length, 'cut in two': Math.ceil(reply.length / 2), 'byte by byte': 1 }[way] as number;
    for (let start = 0; start < reply.length; start += step)
      socket.feed(Buffer.from(reply.subarray(start, start + step)));
    for (const read of reads) {
      const value = await read;
      expect(value).toEqual(gives);
      spoil(value);
    }
    client.disconnect();
  });
});

describe('a reply transformer that empties what it is given', () => {
  it.each(['as it comes', 'by the host, over a lost connection'])('decoded %s: each gets all of it', async (how) => {
    const { reply } = (Command as unknown as { _transformer: { reply: Record<string, unknown> } })._transformer;
    const before = reply.hgetall;
    Command.setReplyTransformer('hgetall', (given: unknown[]) => given.splice(0));
    onTestFinished(() => {
      reply.hgetall = before;
    });
    const key = uniquePrefix('own');
    await expectAsPlain(async (kind) => {
      const proxy = await startProxy(redisUrl());
      const client = await connectAs(kind, ioredis6, proxy.url, { retryStrategy: () => 1 }, { shareReads: true });
      await client.del(key);
      await client.hset(key, 'f', 'v');
      if (how !== 'as it comes') proxy.stall();
      const reads = [client.hgetallBuffer(key), client.hgetallBuffer(key), client.hgetallBuffer(key)];
      await sleep(20);
      if (how !== 'as it comes') proxy.reset();
      proxy.resume();
      const values = await Promise.all(reads);
      await client.del(key);
      return values;
    });
  });
});
