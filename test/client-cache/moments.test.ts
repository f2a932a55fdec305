/** When an answer from memory is given, and what it must not be older than. */
import { setImmediate as turn } from 'node:timers/promises';
import { Command } from 'ioredis';
import { type CacheOptions, coalesce } from 'ioredis-coalesce/coalesce';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { block, cached, elsewhere, fromMemory, hitsOf, keep } from '../helpers/client-cache/cached.js';
import { cold } from '../helpers/cold.js';
import {
  type Client,
  type CoalescedClient,
  ioredis6,
  LONG_ENOUGH,
  outcomesWithin,
  ready,
  sleep,
  until,
} from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { startServer, uniquePrefix } from '../helpers/redis.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

let server: Awaited<ReturnType<typeof startServer>>;
let other: Client;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  other = await ready(ioredis6.create(server.url));
});

/** What a handler of the next message reads, in the midst of the bytes. */
function onMessage<T>(client: Client, read: () => Promise<T>): Promise<T> {
  return new Promise((resolve) => client.once('message', () => resolve(read())));
}

const MODES: readonly (readonly [string, true | CacheOptions])[] = [
  ['every key', true],
  ['keys of a prefix', { prefixes: ['moment:', 'other:'] }],
];

describe.each(MODES)('an answer from memory, %s', (_, cache) => {
  const k = uniquePrefix('moment');
  const start = async (options = {}) => {
    const client = await cached(server.url, cache, options);
    await other.del(k);
    await other.set(k, 'old');
    await keep(client, () => client.get(k));
    return client;
  };

  it('is not given when its change was announced while this process was busy', async () => {
    const client = await start();
    setImmediate(() => {});
    await turn();
    elsewhere(server.url, `await c.set(${JSON.stringify(k)}, 'new')`);
    expect([await client.get(k), await client.get(k)]).toEqual(['new', 'new']);
  });

  it('is not given after its ttl, however long this process was busy', async () => {
    const client = await cached(server.url, { ...(cache === true ? {} : cache), ttl: 300 });
    await keep(client, () => client.get(k));
    await client.get(k);
    block(350);
    expect(await fromMemory(client, () => client.get(k))).toBe(false);
  });

  it('of one turn come together, in the order of their calls, after all that was requested in it', async () => {
    const client = await start();
    const order: string[] = [];
    const asks = [1, 2, 3].map(async (request) => {
      await new Promise<void>((resolve) => process.nextTick(resolve));
      order.push(`asks ${request}`);
      await client.get(k);
      order.push(`answered ${request}`);
    });
    await Promise.all(asks);
    expect(order).toEqual(['asks 1', 'asks 2', 'asks 3', 'answered 1', 'answered 2', 'answered 3']);
  });

  it('that waits is not older than a reply that comes before it', async () => {
    const client = await cached(server.url, cache);
    const h = `${k}hash`;
    await other.hset(h, { a: '0', b: '0' });
    await keep(client, () => client.hget(h, 'b'));
    const log: [string, string | null | undefined][] = [];
    const note = (name: string, value: string | null | undefined) => void log.push([name, value]);
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        // Eight requests of one turn, behind the reply to a ninth.
        for (let request = 0; request < 8; request += 1) {
          setTimeout(() => void client.hget(h, 'b').then((b) => note('hget', b)), 1);
        }
        elsewhere(server.url, `await c.hset(${JSON.stringify(h)}, 'a', '1', 'b', '1')`);
        void client.hgetall(h).then(({ b }) => note('hgetall', b));
        client.coalescer.flush();
        block(20);
        setTimeout(resolve, 50);
      });
    });
    const seen = log.findIndex(([, value]) => value === '1');
    expect(log.slice(seen).map(([, value]) => value)).not.toContain('0');
  });

  it('is not older than the reply to a read of its key that was issued before', async () => {
    const client = await cached(server.url, cache);
    const h = `${k}promises`;
    for (let round = 0; round < 20; round += 1) {
      await other.hset(h, { a: round, b: round });
      await keep(client, () => client.hget(h, 'b'));
      void other.hset(h, { a: round + 0.5, b: round + 0.5 });
      const [all, b] = await Promise.all([client.hgetall(h), client.hget(h, 'b')]);
      expect(Number(b)).toBeGreaterThanOrEqual(Number(all.b));
    }
  });

  it.each<[string, (client: Client, key: string) => Promise<unknown>]>([
    ['mget', (client, key) => client.mget(key).then(([value]) => value)],
    ['a pipeline', async (client, key) => (await client.pipeline().get(key).exec())?.[0]?.[1]],
    ['a transaction', async (client, key) => (await client.multi().get(key).exec())?.[0]?.[1]],
    ['a read of the host’s', (client, key) => cold(client, 'GET', key)],
  ])('is not older than what %s shows that was issued before', async (__, read) => {
    const client = await start();
    for (let round = 0; round < 20; round += 1) {
      await other.set(k, round);
      await keep(client, () => client.get(k));
      void other.set(k, round + 0.5);
      const [first, second] = await Promise.all([read(client, k), client.getBuffer(k)]);
      const [again, third] = await Promise.all([read(client, k), client.get(k)]);
      expect(Number(second)).toBeGreaterThanOrEqual(Number(first));
      expect(Number(third)).toBeGreaterThanOrEqual(Number(again));
    }
  });

  const shown = `${k}shown:`;
  /** What the keys hold: `count` elements, or as many characters. */
  const write = async (count: number) => {
    await other.mset(`${shown}text`, 'x'.repeat(count), `${shown}\ufffd`, 'x'.repeat(count));
    await other.rpush(`${shown}list`, count);
    await other.zadd(`${shown}zset`, count, count);
    await other.geoadd(`${shown}geo`, count, count, count);
    await other.xadd(`${shown}stream`, `${count}-1`, 'field', 'value');
  };
  type Read = (client: Client) => Promise<unknown>;
  const text: Read = (client) => client.strlen(`${shown}text`);
  const list: Read = (client) => client.llen(`${shown}list`);
  const zset: Read = (client) => client.zcard(`${shown}zset`);
  const stream: Read = (client) => client.xlen(`${shown}stream`);
  const script = `return redis.call('STRLEN', '${shown}text')`;

  it.each<[string, Read, Read]>([
    ['GET, of the same bytes', (client) => client.get(`${shown}\ud800`), (client) => client.strlen(`${shown}\ufffd`)],
    ['SORT', (client) => client.sort(`${shown}list`), list],
    ['SORT … STORE', (client) => client.sort(`${shown}list`, 'STORE', `${shown}stored`), list],
    ['SORT … GET', (client) => client.sort(`${shown}names`, 'BY', 'nosort', 'GET', `${shown}*`), text],
    ['SORT_RO … GET', (client) => client.call('SORT_RO', [`${shown}names`, 'BY', 'nosort', 'GET', `${shown}*`]), text],
    ['XREAD', (client) => client.xread('COUNT', 9, 'STREAMS', `${shown}none`, `${shown}stream`, '0', '0'), stream],
    ['XREADGROUP', (client) => client.xreadgroup('GROUP', 'streams', 'c', 'STREAMS', `${shown}stream`, '>'), stream],
    ['KEYS', (client) => client.keys(`${shown}*`), text],
    ['SCAN', (client) => client.scan(0, 'MATCH', `${shown}*`, 'COUNT', 1_000), text],
    ['EVAL_RO, of a key not declared', (client) => client.call('EVAL_RO', script, 0), text],
    ['OBJECT', (client) => client.object('ENCODING', `${shown}text`), text],
    ['MEMORY', (client) => client.memory('USAGE', `${shown}text`), text],
    ['BITOP', (client) => client.bitop('NOT', `${shown}stored`, `${shown}text`), text],
    ['ZUNIONSTORE', (client) => client.zunionstore(`${shown}stored`, 2, `${shown}none`, `${shown}zset`), zset],
    [
      'GEOSEARCHSTORE',
      (client) => client.geosearchstore(`${shown}stored`, `${shown}geo`, 'FROMLONLAT', 1, 1, 'BYRADIUS', 9_000, 'km'),
      (client) => client.zcard(`${shown}geo`),
    ],
  ])('is not older than what %s shows that was issued before, while the invalidation is on its way', async (...row) => {
    const [, show, read] = row;
    await other.flushall();
    await other.rpush(`${shown}names`, 'text');
    await write(1);
    await other.xgroup('CREATE', `${shown}stream`, 'streams', '0');
    const proxy = await startProxy(server.url);
    const client = await cached(proxy.url, cache);
    await keep(client, () => read(client));
    proxy.stall();
    await write(2);
    const reply = show(client);
    const after = read(client);
    // An answer from memory is given by then.
    for (let time = 0; time < 3; time += 1) await turn();
    proxy.resume();
    expect([await reply, await after]).toEqual([expect.anything(), 2]);
  });

  describe('keeps its place before the client’s own later commands:', () => {
    it.each<[string, (client: Client, key: string) => unknown]>([
      ['a write', (client, key) => client.set(key, 'own')],
      ['a write of a Buffer', (client, key) => client.set(Buffer.from(key), 'own')],
      ['a script', (client, key) => client.eval("return redis.call('SET', KEYS[1], 'own')", 1, key)],
      ['a pipeline', (client, key) => client.pipeline().ping().set(key, 'own').exec()],
      ['a transaction', (client, key) => client.multi().set(key, 'own').exec()],
      ['a command of the host’s', (client, key) => cold(client, 'DEL', key)],
      ['a pipeline of the host’s', (client, key) => client.pipeline().select(0).set(key, 'own').exec()],
      [
        'MULTI, and a pipeline of the host’s',
        (client, key) => {
          void client.multi({ pipeline: false });
          void client.set(key, 'own');
          return client.exec();
        },
      ],
      ['SELECT', (client) => client.select(1)],
      ['quit()', (client) => client.quit()],
      ['disconnect()', (client) => client.disconnect()],
      ['detach()', (client) => (client as CoalescedClient).coalescer.detach()],
    ])('%s', async (name, command) => {
      const client = await start({ retryStrategy: null });
      const read = client.get(k);
      await Promise.allSettled([command(client, k)]);
      expect(await read).toBe('old');
      if (!/quit|disconnect|detach/.test(name)) {
        expect(await client.get(k)).not.toBe('old');
      }
      await client.select(0).catch(() => {});
    });

    // The read behind the write is no follower of the one in front of it.
    describe.each([{}, { shareReads: true }])('if it has been revoked, it is sent first, %o:', (shares) => {
      it.each<[string, (client: Client, key: string) => Promise<unknown>]>([
        ['a write', (client, key) => client.set(key, 'own')],
        ['a script', (client, key) => client.eval("return redis.call('SET', KEYS[1], 'own')", 1, key)],
        ['a pipeline', (client, key) => client.pipeline().set(key, 'own').exec()],
        ['a transaction', (client, key) => client.multi().set(key, 'own').exec()],
        ['a command of the host’s', (client, key) => cold(client, 'SET', key, 'own')],
        [
          'a command of the host’s behind a pipeline',
          (client, key) => {
            void client.pipeline().get(`${key}x`).get(`${key}y`).exec();
            return cold(client, 'SET', key, 'own');
          },
        ],
        ['a pipeline of the host’s', (client, key) => client.pipeline().select(0).set(key, 'own').get(key).exec()],
      ])('%s', async (__, write) => {
        const client = await cached(server.url, cache, {}, shares);
        for (let round = 0; round < 5; round += 1) {
          await other.set(k, 'old');
          await keep(client, () => client.get(k));
          const replies = await new Promise<unknown[]>((resolve) => {
            // In a turn in which the invalidation is read: what was asked for before waits for the end of the turn.
            void other.set(k, 'theirs');
            const read = client.get(k);
            client.coalescer.cache?.clear();
            void Promise.all([read, write(client, k), client.get(k)]).then(resolve);
          });
          expect(['old', 'theirs']).toContain(replies[0]);
          expect(replies[2]).toBe('own');
        }
      });
    });
  });

  describe.each(['is too old', 'has been revoked in the turn'])(
    'if it %s, it is sent before what is issued behind it, whatever that is:',
    (why) => {
      it.each<[string, (client: Client) => unknown]>([
        ['set', (client) => client.set(`${k}behind`, 'v')],
        ['mget', (client) => client.mget(`${k}behind`)],
        ['publish', (client) => client.publish(k, 'v')],
        ['zadd', (client) => client.pipeline().zadd(`${k}zset`, 1, 'a').exec()],
        ['config', (client) => client.config('GET', 'port')],
        ['blpop', (client) => client.blpop(`${k}empty`, 0.1)],
        ['xread', (client) => client.xread('BLOCK', 100, 'STREAMS', `${k}stream`, '$')],
        ['wait', (client) => client.wait(1, 100)],
        ['client', (client) => client.client('PAUSE', 1)],
      ])('%s', async (command, issue) => {
        const client = await cached(server.url, { ...(cache === true ? {} : cache), ttl: 300 });
        await keep(client, () => client.get(k));
        if (why === 'is too old') await sleep(350);
        const spy = spyOnSocket(client);
        const read = client.get(k);
        if (why !== 'is too old') client.coalescer.cache?.clear();
        await Promise.all([read, issue(client)]);
        const sent = commandNames(spy.text());
        expect(sent).toContain('get');
        expect(sent.lastIndexOf(command)).toBeGreaterThan(sent.indexOf('get'));
      });
    },
  );

  it.each<[string, (client: Client) => Promise<unknown>]>([
    ['BLPOP', (client) => client.blpop(`${k}empty`, 0.2)],
    ['WAIT', (client) => client.wait(1, 200)],
    ['a pipeline of the host’s with BLPOP', (client) => client.pipeline().blpop(`${k}empty`, 0.2).exec()],
    ['a pipeline with WAIT', (client) => client.pipeline().set(`${k}behind`, 'v').wait(1, 200).exec()],
    ['a pipeline with CLIENT PAUSE', (client) => client.pipeline().client('PAUSE', 200).echo('v').exec()],
  ])('is given before %s, although it is revoked behind that', async (__, issue) => {
    const client = await start();
    const spy = spyOnSocket(client);
    const order: string[] = [];
    const read = client.get(k).then((value) => order.push(`read ${value}`));
    const blocked = issue(client).then(() => order.push('unblocked'));
    client.coalescer.cache?.clear();
    await Promise.all([read, blocked]);
    expect(order).toEqual(['read old', 'unblocked']);
    expect(commandNames(spy.text())).not.toContain('get');
  });

  it('of several reads of one key that have been revoked: they are sent in the order of their calls', async () => {
    const client = await start();
    await keep(client, () => client.strlen(k));
    await keep(client, () => client.type(k));
    const spy = spyOnSocket(client);
    const reads = [client.get(k), client.strlen(k), client.type(k)];
    client.coalescer.cache?.clear();
    expect(await Promise.all(reads)).toEqual(['old', 3, 'string']);
    expect(commandNames(spy.text()).filter((name) => !['client', 'pttl'].includes(name))).toEqual([
      'get',
      'strlen',
      'type',
    ]);
  });

  it('that cannot be sent after all rejects only its caller', async () => {
    const client = await start();
    const reads = [client.get(k), client.get(k)];
    client.coalescer.cache?.clear();
    client.sendCommand = () => {
      throw new Error('by user code');
    };
    expect((await Promise.allSettled(reads)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    Reflect.deleteProperty(client, 'sendCommand');
    await keep(client, () => client.get(k));
  });

  it('is not given after quit(): the connection is closed', async () => {
    const client = await start({ retryStrategy: null });
    const quit = client.quit();
    await expect(client.get(k)).rejects.toThrow('Connection is closed');
    await quit;
  });

  it('lets the event loop turn, also in a loop of reads', async () => {
    const client = await start();
    let turns = 0;
    const count = () => {
      turns += 1;
      if (turns < 1_000) setImmediate(count);
    };
    setImmediate(count);
    for (let read = 0; read < 100; read += 1) await client.get(k);
    expect(turns).toBeGreaterThan(50);
  });

  it('is not given between a message on the same connection and the invalidation that follows it', async () => {
    const client = await start();
    await client.config('SET', 'notify-keyspace-events', 'KEA');
    await client.subscribe('moment:changed', '__keyevent@0__:set', '__keyevent@0__:lpop');
    for (let round = 0; round < 20; round += 1) {
      await keep(client, () => client.get(k));
      const message = onMessage(client, () => client.get(k));
      if (round % 2 === 0) void other.multi().set(k, round).publish('moment:changed', 'x').exec();
      else void other.set(k, round);
      expect(await message).toBe(String(round));
    }
    const list = `${k}list`;
    await client.unsubscribe('__keyevent@0__:set');
    for (let round = 0; round < 20; round += 1) {
      await other.rpush(list, 'a');
      await keep(client, () => client.llen(list));
      const message = onMessage(client, () => client.llen(list));
      void other.lpop(list);
      expect(await message).toBe(0);
    }
    await client.config('SET', 'notify-keyspace-events', '');
  });

  it('is not older, after an awaited PING, than a message on another connection, with io-threads', async () => {
    const threaded = await startServer({ args: ['--io-threads', '4', '--io-threads-do-reads', 'yes'] });
    onTestFinished(() => threaded.stop());
    const [writer, told] = await Promise.all([1, 2].map(() => ready(ioredis6.create(threaded.url))));
    const client = await cached(threaded.url, cache);
    const key = `other:${uniquePrefix('told')}`;
    const hits = hitsOf(client);
    const seen: (readonly [string, string | null])[] = [];
    const checks: Promise<unknown>[] = [];
    told?.on('message', (_, text) => {
      const check = async () => {
        await client.ping();
        seen.push([text, await client.get(key)]);
      };
      checks.push(check());
    });
    await told?.subscribe(key);
    for (let value = 1; value <= 100; value += 1) {
      await client.get(key);
      await client.get(key);
      await writer?.multi().set(key, value).publish(key, `${value}`).exec();
      await until(() => checks.length === value, 'the message');
    }
    await Promise.all(checks);
    expect(seen.filter(([text, read]) => Number(read) < Number(text))).toEqual([]);
    expect(hitsOf(client)).toBeGreaterThan(hits);
  });

  it('of a key that has expired is not given, although thousands of others have a time to live', async () => {
    const pipeline = other.pipeline();
    for (let index = 0; index < 5_000; index += 1) pipeline.set(`filler:${index}`, 'x', 'EX', 3_600);
    await pipeline.exec();
    const client = await cached(server.url, cache);
    const key = `${k}expires`;
    await other.set(key, 'v', 'PX', 400);
    const setAt = performance.now();
    await keep(client, () => client.get(key));
    let last = 0;
    await until(() => {
      const askedAt = performance.now();
      void client.get(key).then((value) => {
        if (value !== null) last = askedAt - setAt;
      });
      return askedAt - setAt > 1_500;
    }, 'it has expired');
    await client.ping();
    // The server counts from when it got the command.
    expect(last).toBeLessThan(600);
  });

  it('of a key that has expired before it was first used is not given', async () => {
    const client = await cached(server.url, cache);
    const key = `${k}first-use`;
    await other.set(key, 'v', 'PX', 300);
    expect(await client.get(key)).toBe('v');
    await sleep(400);
    expect(await client.get(key)).toBeNull();
  });

  it('of a read that many miss at once is requested once', async () => {
    const client = await start();
    await other.set(k, 'new');
    await until(() => client.coalescer.stats().cache?.invalidations !== 0, 'the invalidation has come');
    await turn();
    const spy = spyOnSocket(client);
    expect(new Set(await Promise.all(Array.from({ length: 1_000 }, () => client.get(k))))).toEqual(new Set(['new']));
    expect(commandNames(spy.text()).filter((name) => name === 'get')).toHaveLength(1);
    // A write between two reads: both are sent, and the second sees it.
    const replies = await Promise.all([
      client.hget(`${k}h`, 'f'),
      client.hset(`${k}h`, 'f', 'v'),
      client.hget(`${k}h`, 'f'),
    ]);
    expect(replies).toEqual([null, 1, 'v']);
    expect(hitsOf(client)).toBeGreaterThan(0);
  });

  describe('runs a reply transformer, whatever that does, as the reply of a plain client', () => {
    /**
     * Of a client that has `k` in memory, or a plain one: what becomes of a read of it and of what is issued behind.
     */
    const play = async (kind: 'plain' | 'cached', meddle: Meddle) => {
      const { reply } = (Command as unknown as { _transformer: { reply: Record<string, unknown> } })._transformer;
      await other.mset(k, 'old', `${k}other`, 'other', `${k}third`, 'third', `${k}number`, '0');
      const client = kind === 'cached' ? await start() : await ready(ioredis6.create(server.url));
      const read = client.get(k);
      const { act, issue } = meddle(client, (client as { coalescer?: CoalescedClient['coalescer'] }).coalescer);
      let acted = false;
      Command.setReplyTransformer('get', (value) => {
        if (!acted) {
          acted = true;
          act();
        }
        return value;
      });
      onTestFinished(() => void Reflect.deleteProperty(reply, 'get'));
      const issued = [read, ...issue(), client.get(`${k}other`), client.get(`${k}third`)];
      const settled = await outcomesWithin(LONG_ENOUGH, issued as Promise<unknown>[]);
      return [settled, acted, await outcomesWithin(LONG_ENOUGH, [client.get(`${k}other`)])];
    };

    type Meddle = (client: Client, handle?: CoalescedClient['coalescer']) => { act(): unknown; issue(): unknown[] };
    const MEDDLES: Record<string, Meddle> = {
      'detach(), by a write': (client, handle) => ({
        act: () => handle?.detach(),
        issue: () => [client.set(k, 'new')],
      }),
      'detach(), by a pipeline': (client, handle) => ({
        act: () => handle?.detach(),
        issue: () => [client.pipeline().set(k, 'new').exec()],
      }),
      'coalesce(), by detach()': (client, handle) => ({
        act: () => handle && coalesce(client),
        issue: () => {
          handle?.detach();
          return [];
        },
      }),
      'a command more in the pipeline that is sent, by it': (client) => {
        const pipeline = client.pipeline().set(k, 'new');
        return { act: () => pipeline.incr(`${k}number`), issue: () => [pipeline.exec()] };
      },
      "a read, by a pipeline of the host's": (client) => {
        const inner = deferred();
        return {
          act: () => inner.resolve(client.get(`${k}other`)),
          issue: () => [
            client.pipeline().getdel(`${k}none`).set(`${k}other`, 'changed').select(0).exec(),
            inner.promise,
          ],
        };
      },
      'a read, by MULTI': (client) => {
        const inner = deferred();
        return {
          act: () => inner.resolve(client.get(`${k}other`)),
          issue: () => [
            client.multi({ pipeline: false }),
            client.set(`${k}other`, 'changed'),
            inner.promise,
            inner.promise.then(() => client.exec()),
          ],
        };
      },
      'a write, by a write': (client) => {
        const inner = deferred();
        return {
          act: () => inner.resolve(client.append(`${k}other`, '!')),
          issue: () => [client.set(k, 'new'), inner.promise],
        };
      },
      'disconnect(), by a write': (client) => ({
        act: () => client.disconnect(true),
        issue: () => [client.set(k, 'new')],
      }),
    };

    it.each(Object.entries(MEDDLES))('%s', async (_name, meddle) => {
      expect(await play('cached', meddle)).toEqual(await play('plain', meddle));
    });
  });

  it('comes before the replies to what was issued later, and when the connection ends', async () => {
    const client = await start();
    for (const later of [
      (read: CoalescedClient) => read.set(k, 'new'),
      (read: CoalescedClient) => read.pipeline().set(k, 'newer').exec(),
      (read: CoalescedClient) => read.quit(),
    ]) {
      await keep(client, () => client.get(k));
      const order: string[] = [];
      const read = client.get(k).then(() => order.push('read'));
      const issued = later(client).then(() => order.push('issued later'));
      client.coalescer.flush();
      await Promise.all([read, issued]);
      expect(order).toEqual(['read', 'issued later']);
    }
  });
});

function deferred() {
  let resolve: (value: unknown) => void = () => {};
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
