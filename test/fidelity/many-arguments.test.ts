/**
 * Arguments that callers spread onto the stack fit there once: 123,000 of them with Node's default stack. A method that
 * spreads them a second time fails at half of that.
 */
import { describe, expect, it } from 'vitest';
import { connectAs, createAs, expectAsPlain, type Kind } from '../helpers/beside.js';
import { SEED } from '../helpers/hostile/random.js';
import { type Client, HOSTS, type Host, ioredis6, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { share } from '../helpers/share.js';

const prefix = uniquePrefix('many-arguments');
const url = redisUrl();

type Send = (client: Client, key: string, members: string[]) => Promise<unknown>;
type Method = (...args: unknown[]) => Promise<unknown>;

interface Transforming {
  setArgumentTransformer(name: string, transform: (args: unknown[]) => unknown[]): void;
  _transformer: { argument: Record<string, unknown> };
}

/** Each gives the number of its arguments. */
function scripts(client: Client): Record<'count' | 'countAny', Method> {
  client.defineCommand('count', { numberOfKeys: 1, lua: 'return #ARGV' });
  client.defineCommand('countAny', { lua: 'return #ARGV' });
  return client as unknown as Record<'count' | 'countAny', Method>;
}

const WAYS: Readonly<Record<string, Send>> = {
  sadd: (c, key, members) => c.sadd(key, ...members),
  saddBuffer: (c, key, members) => (c as unknown as { saddBuffer: Method }).saddBuffer(key, ...members),
  'sadd with a callback': (c, key, members) =>
    new Promise((resolve, reject) => {
      const callback = (error: unknown, count: unknown) => (error ? reject(error) : resolve(count));
      (c.sadd as Method)(key, ...members, callback).catch(() => {});
    }),
  'sadd with null and a Buffer': (c, key, members) => (c.sadd as Method)(key, null, Buffer.from('bytes'), ...members),
  'sadd with arrays': (c, key, members) => (c.sadd as Method)([key], ...members, [['of', 'arrays'], 'b'], undefined),
  call: (c, key, members) => c.call('SADD', key, ...members),
  'call with null': (c, key, members) => (c.call as Method)('sadd', key, null, ...members),
  callBuffer: (c, key, members) => c.callBuffer('sadd', key, ...members),
  'call of a cold command': (c, key, members) => c.call('PFADD', key, ...members),
  'a cold method': (c, key, members) => c.pfadd(key, ...members),
  'a blocking method': async (c, key, members) => {
    await c.rpush(`${key}list`, 'first');
    return (c.blpop as Method)(`${key}list`, ...members, 0);
  },
  'a script': (c, key, members) => scripts(c).count(key, ...members),
  'a script with null': (c, key, members) => scripts(c).count(key, null, ...members),
  'a script without a number of keys': (c, key, members) => scripts(c).countAny(1, key, ...members),
};

const SITUATIONS: Readonly<Record<string, (kind: Kind, host: Host) => Promise<Client> | Client>> = {
  ready: (kind, host) => connectAs(kind, host, url),
  connecting: (kind, host) => createAs(kind, host, url),
  'keyPrefix set': (kind, host) => connectAs(kind, host, url, { keyPrefix: prefix }),
  'fastPath: false': (kind, host) => connectAs(kind, host, url, {}, { fastPath: false }),
  'sendCommand wrapped by a tracer': async (kind, host) => {
    const client = await connectAs(kind, host, url);
    const { sendCommand } = client;
    client.sendCommand = function (this: Client, ...args) {
      return sendCommand.apply(this, args);
    };
    return client;
  },
  reconnecting: async (kind, host) => {
    const client = await connectAs(kind, host, url, { retryStrategy: () => 1 });
    client.disconnect(true);
    return client;
  },
  'detached, the overlay behind another prototype': async (kind, host) => {
    const client = await connectAs(kind, host, url);
    Object.setPrototypeOf(client, Object.create(Object.getPrototypeOf(client) as object) as object);
    (client as { coalescer?: { detach(): void } }).coalescer?.detach();
    return client;
  },
};

const membersOf = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));

/** What the call came to; an error that it throws is told from one that it rejects with. */
async function outcome(send: () => Promise<unknown>): Promise<unknown> {
  let promise: Promise<unknown>;
  try {
    promise = send();
  } catch (error) {
    return `throws ${error}`;
  }
  return promise.catch((error: unknown) => `rejects ${error}`);
}

const PAIRS = Object.keys(WAYS).flatMap((way) => Object.keys(SITUATIONS).map((situation) => [way, situation] as const));
const READY = PAIRS.filter(([, situation]) => situation === 'ready');

// Twice as many do not fit.
describe.each(HOSTS)('$name: 70,000 arguments', (host) => {
  // By shares, each way on a ready client of a host, and in each other situation on one host in turn.
  const others = PAIRS.filter(([, situation], index) => situation !== 'ready' && HOSTS[index % HOSTS.length] === host);
  const own = [...share(READY, HOSTS.length, SEED + HOSTS.indexOf(host)), ...share(others, 6)];
  it.each(own)('%s, %s: as on a plain client', async (way, situation) => {
    const members = membersOf(70_000);
    const plain = await expectAsPlain(async (kind) => {
      const client = await (SITUATIONS[situation] as (typeof SITUATIONS)[string])(kind, host);
      const key = `${prefix}${kind}`;
      const reply = await outcome(() => (WAYS[way] as Send)(client, key, members));
      await client.unlink(key);
      // The name of the list that had an element differs.
      return way === 'a blocking method' ? Array.isArray(reply) : reply;
    });
    expect(String(plain)).not.toMatch(/^(throws|rejects)/);
  });
});

describe.each(HOSTS)('$name: any number of arguments that a plain client takes', (host) => {
  // What cuts arguments into pieces is this package's, the same for each host.
  it.each(host === ioredis6 ? [999, 4_097, ...share([65_536, 115_000], 2)] : share([115_000], 2))(
    '%i',
    async (count) => {
      const members = membersOf(count);
      for (const situation of ['ready', 'connecting']) {
        for (const way of ['sadd', 'sadd with null and a Buffer', 'call', 'a script']) {
          await expectAsPlain(async (kind) => {
            const client = await (SITUATIONS[situation] as (typeof SITUATIONS)[string])(kind, host);
            const key = `${prefix}${kind}`;
            const reply = await outcome(() => (WAYS[way] as Send)(client, key, members));
            await client.unlink(key);
            return reply;
          });
        }
      }
    },
  );

  it.each(['pipeline', 'multi', 'client'] as const)('a transformer gives what the host encodes: %s', async (way) => {
    const { Command } = host.Redis as unknown as { Command: Transforming };
    const members = membersOf(110_000);
    Command.setArgumentTransformer('sadd', (args) => args.map((value) => (value === '0' ? null : value)));
    try {
      const replies = await expectAsPlain(async (kind) => {
        const client = await connectAs(kind, host, url);
        const key = `${prefix}${kind}`;
        const reply = await outcome(async () =>
          way === 'client'
            ? client.sadd(key, ...members)
            : client[way]()
                .sadd(key, ...members)
                .exec(),
        );
        await client.unlink(key);
        return reply;
      });
      expect(JSON.stringify(replies)).toContain('110000');
    } finally {
      delete Command._transformer.argument.sadd;
    }
  });

  it('a method that a user has replaced gets its arguments one by one', async () => {
    const client = await connectAs('coalesced', host, url);
    const prototype = Object.getPrototypeOf(Object.getPrototypeOf(client)) as Record<string, unknown>;
    const { sadd } = prototype;
    prototype.sadd = (...args: unknown[]) => args.length;
    try {
      expect((client.sadd as (...args: unknown[]) => unknown)('key', ...membersOf(10_000))).toBe(10_001);
    } finally {
      prototype.sadd = sadd;
    }
  });
});

describe('a command of more parts than the stack holds that waits for room', () => {
  it('is sent once, and its caller gets the reply', async () => {
    const client = await ready(ioredis6.createCoalesced(url, {}, { maxInFlight: 2 }));
    const key = `${prefix}list`;
    const inFront = [client.echo('a'), client.echo('b'), client.echo('c')];
    // An argument of more than 4,096 bytes is a part of its own, and so is the text between two of them.
    const elements = new Array<string>(63_000).fill('x'.repeat(4_100));
    const many = client.rpush(key, elements as never);
    expect(client.coalescer.stats().queued).toBeGreaterThan(0);
    expect(await Promise.all([...inFront, many, client.llen(key)])).toEqual(['a', 'b', 'c', 63_000, 63_000]);
    await client.unlink(key);
  });
});
