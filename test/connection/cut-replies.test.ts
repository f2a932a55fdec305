import { once } from 'node:events';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { Command } from 'ioredis';
import { coalesce } from 'ioredis-coalesce/coalesce';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { ReplyDecoder } from '../../src/resp/decoder.js';
import {
  CUTS,
  EACH_HOST,
  END,
  edgesOf,
  filled,
  HEADER,
  type Interruption,
  LONG,
  lose,
  oursAmong,
  place,
  play,
  playBoth,
  SETTINGS,
  STEPS,
  UNITS,
} from '../helpers/cut-replies.js';
import { coalescedFake, connectFake, type FakeOptions, Witness } from '../helpers/fake-connection.js';
import { SEED } from '../helpers/hostile/random.js';
import { HOSTS, ready } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { REPLY_CASES } from '../helpers/reply-cases.js';
import { issue, PUSH, repliesOf, type Step, SUBSCRIBE } from '../helpers/reply-programs.js';
import { aggregate, bulk, cutAt } from '../helpers/resp.js';
import { share } from '../helpers/share.js';

afterEach(() => {
  vi.restoreAllMocks();
});

const GET = ['get', 'k'] as const;
const FOO = ['call', 'foo'] as const;
const LRANGE = ['lrange', 'l', '0', '-1'] as const;

// Others than in reply-reader.test.ts.
describe.each(share(SETTINGS, 4, SEED + 1))('long replies: $title', ({ protocol, options }) => {
  const pushes = protocol === 3 ? [PUSH] : [];
  const texts = Object.values(UNITS);

  it('have the values of a plain client if they are split at every header and every end', async () => {
    const steps: Step[] = [
      ...(protocol === 3 ? [SUBSCRIBE] : []),
      { command: GET, reply: bulk('small') },
      ...texts.flatMap((unit, index) => [
        { command: GET, reply: bulk(filled(unit, index === 3 ? 40_000 : 8_192 + index)) },
        ...(index % 3 === 1 ? pushes : []),
      ]),
      { command: ['getBuffer', 'k'], reply: bulk(filled(UNITS.broken as Buffer, 9_000)) },
      { command: FOO, reply: bulk(filled('foo', 9_000)) },
      { command: ['hgetall', 'h'], reply: aggregate('*', [bulk('f'), bulk(filled('v', 8_300))]) },
      { command: GET, reply: '-ERR of the server\r\n' },
      { command: ['mget', 'a', 'b'], reply: aggregate('*', [bulk(LONG), bulk('b')]) },
      ...pushes,
      { command: GET, reply: bulk(filled('below ', 8_192 - 1)) },
      { command: GET, reply: '$-1\r\n' },
      { command: GET, reply: bulk(LONG) },
    ];
    const replies = repliesOf(steps);
    const placed = place(steps).filter(({ start, end }) => end - start > 1_000);
    const edges = placed.map(({ start, end }) => {
      const header = (replies.indexOf(10, start) as number) + 1 - start;
      return edgesOf(end - start - header - 2).map((offset) => start + offset);
    });
    const ways = [
      edges.flat(),
      ...Array.from({ length: 18 }, (_, at) => edges.flatMap((own) => own[at] ?? [])),
      // From the middle of one to the middle of the next, and each edge with one in its text.
      placed.map(({ start, end }) => (start + end) >> 1),
      ...Array.from({ length: 18 }, (_, at) => edges.flatMap((own, n) => [own[at] ?? 0, (own[at] ?? 0) + 2_001 + n])),
    ];
    let fast = 0;
    for (const cuts of ways) {
      const chunks = () => cutAt(replies, cuts);
      const { plain, ours } = await playBoth(options, steps, chunks);
      expect(plain.seen.length).toBe(steps.length);
      expect(ours.seen, `cut at ${cuts}`).toStrictEqual(plain.seen);
      expect(ours.fast, `cut at ${cuts}`).toBe(oursAmong(steps, chunks()));
      fast += ours.fast;
    }
    expect(fast).toBeGreaterThan(ways.length * 4);
  });

  it('have the values of a plain client if a chunk takes two reads, and the second one begins anywhere', async () => {
    const steps: Step[] = [
      ...(protocol === 3 ? [SUBSCRIBE] : []),
      { command: LRANGE, reply: aggregate('*', [bulk(filled('of 64 KiB ', 65_000)), bulk(LONG), bulk('a')]) },
      { command: GET, reply: bulk('small') },
      { command: LRANGE, reply: aggregate('*', [bulk('b')]) },
    ];
    const [first] = place(steps).filter(({ command }) => command !== undefined);
    const whole = repliesOf(steps).length;
    for (let second = 1; second <= 60; second += 1) {
      const chunks = () => cutAt(repliesOf(steps), [whole - 64 * 1024 - second]);
      expect(whole - 64 * 1024 - second).toBeGreaterThan(first!.start);
      const { plain, ours } = await playBoth(options, steps, chunks);
      expect(ours.seen, `${second} bytes`).toStrictEqual(plain.seen);
      expect(ours.fast, `${second} bytes`).toBe(oursAmong(steps, chunks()));
    }
  });

  it('any program gets the values of a plain client, split anywhere', async () => {
    const value = fc
      .tuple(fc.constantFrom(...texts), fc.oneof(fc.nat({ max: 40 }), fc.integer({ min: 8_180, max: 40_000 })))
      .map(([unit, length]) => bulk(filled(unit, length)));
    const list = fc.array(value, { minLength: 1, maxLength: 6 }).map((elements) => aggregate('*', elements));
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ command: fc.constant(GET), reply: value }) },
      { weight: 3, arbitrary: fc.record({ command: fc.constant(LRANGE), reply: list }) },
      fc.record({ command: fc.constantFrom(FOO, ['getBuffer', 'k'] as const), reply: value }),
      fc.record({ command: fc.constant(GET), reply: fc.constantFrom('-ERR no\r\n', '$-1\r\n', ':12\r\n') }),
      ...pushes.map((push) => fc.constant(push)),
    );
    const where = fc.array(fc.tuple(fc.nat({ max: 12 }), fc.nat({ max: 40_000 })), { maxLength: 14 });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), where, async (own, picks) => {
        const steps = protocol === 3 ? [SUBSCRIBE, ...own] : own;
        const starts = place(steps);
        const cuts = picks.map(([at, offset]) => (starts[at % starts.length]?.start ?? 0) + offset);
        const chunks = () => cutAt(repliesOf(steps), cuts);
        const { plain, ours } = await playBoth(options, steps, chunks);
        expect(ours.seen).toStrictEqual(plain.seen);
        expect(ours.fast).toBe(oursAmong(steps, chunks()));
      }),
      { numRuns: 25 },
    );
  });
});

it('a string of more than 2 MiB in short pieces, alone and in a list, has the value of a plain client', async () => {
  const long = bulk(filled('of 3 MiB ', 3 * 1024 * 1024));
  const steps: Step[] = [
    { command: GET, reply: long },
    { command: LRANGE, reply: aggregate('*', [bulk('first'), long]) },
  ];
  const pieces = () => {
    const replies = repliesOf(steps);
    return cutAt(
      replies,
      Array.from({ length: Math.floor(replies.length / 20_000) }, (_, n) => (n + 1) * 20_000),
    );
  };
  const { plain, ours } = await playBoth({}, steps, pieces);
  expect(ours.seen).toStrictEqual(plain.seen);
  expect(ours.fast).toBe(2);
});

describe.each(SETTINGS)('a reply of any kind, split in two: $title', ({ protocol, options }) => {
  const cases = REPLY_CASES.filter(
    ({ resp3, bytes, decodedBy }) => (!resp3 || protocol === 3) && bytes.length < 100 && decodedBy === 'us',
  );

  it.each(share(cases, 4))('$title has the value of a plain client, wherever it is split', async ({ bytes }) => {
    const steps: Step[] = [
      { command: GET, reply: bytes },
      { command: ['getBuffer', 'k'], reply: bytes },
      { command: GET, reply: bulk('behind') },
    ];
    const plain = await play(options, steps, [repliesOf(steps)]);
    const fast: number[] = [];
    for (let cut = 1; cut < bytes.length; cut += 1) {
      const ours = await play({ ...options, coalesce: {} }, steps, cutAt(repliesOf(steps), [cut, bytes.length + cut]));
      expect(ours.seen, `cut at ${cut}`).toStrictEqual(plain.seen);
      fast.push(ours.fast);
    }
    // Of aggregates all are ours but those that are cut in their header or in their last element.
    const elements = '*~%'.includes(String.fromCharCode(bytes[0] as number))
      ? Number(bytes.toString('latin1', 1, 2))
      : 0;
    if (elements > 1) expect(fast.filter((replies) => replies === 3).length).toBeGreaterThan(elements);
  });
});

describe.each(EACH_HOST)('a partial long reply: $hostName, RESP$protocol', (options) => {
  /** Interrupts both clients behind each cut; what they see then must be the same. */
  async function interrupt(does: Interruption['does'], cuts = CUTS, own: FakeOptions = options, steps = STEPS) {
    for (const cut of cuts) {
      const { plain, ours } = await playBoth(own, steps, () => cutAt(repliesOf(steps), [cut]), { after: 1, does });
      expect(ours.seen, `cut at ${cut}`).toStrictEqual(plain.seen);
    }
  }

  it.each<[string, Interruption['does']]>([
    ['detach()', ({ client }) => client.coalescer?.detach()],
    ['disconnect()', ({ client }) => client.disconnect()],
    ['no data listeners any more', ({ socket }) => socket.removeAllListeners('data')],
    ['a lost connection', ({ socket }) => socket.destroy()],
  ])('%s at every byte of a nested reply', async (_title, does) => {
    const nested = aggregate('*', [
      bulk('żółw'),
      aggregate('*', [':1\r\n', bulk('')]),
      '$-1\r\n',
      '+OK\r\n',
      bulk('end'),
    ]);
    const steps: Step[] = [
      { command: LRANGE, reply: nested },
      { command: ['lrangeBuffer', 'l', '0', '-1'], reply: nested },
      { command: GET, reply: bulk('behind') },
    ];
    const cuts = Array.from({ length: nested.length * 2 }, (_, cut) => cut + 1);
    await interrupt(does, cuts, options, steps);
  });

  it('detach(): the plain client decodes the rest', async () => {
    const detaching: Interruption['does'] = ({ client }) => client.coalescer?.detach();
    await interrupt(detaching);
    for (const cut of CUTS) {
      const { client, socket } = await coalescedFake({}, options);
      const witness = new Witness(client);
      issue(client, witness, STEPS);
      await turn();
      const [first = Buffer.alloc(0), ...rest] = cutAt(repliesOf(STEPS), [cut, cut + 3, cut + 100]);
      socket.feed(first);
      client.coalescer.detach();
      issue(client, witness, [{ command: GET, reply: '' }]);
      for (const chunk of [...rest, ...cutAt(bulk(LONG), [HEADER, 4_000])]) socket.feed(chunk);
      await turn();
      expect(witness.seen.map(([, value]) => value)).toStrictEqual([
        LONG.toString(),
        'small',
        'cold',
        filled('other ', 8_500).toString(),
        Buffer.from('last'),
        LONG.toString(),
      ]);
      client.disconnect();
    }
  });

  it('detach() and coalesce() again at once: every caller is answered', async () => {
    await interrupt(({ client }) => {
      if (!client.coalescer?.enabled) return;
      client.coalescer.detach();
      coalesce(client);
    });
  });

  it('coalesce(): joins in the middle of the reply', async () => {
    for (const cut of [1, 3, HEADER - 1, ...CUTS, END]) {
      await interrupt(({ client }) => void coalesce(client), [cut], { ...options, coalesce: undefined });
      const { client, socket } = await connectFake(options);
      const witness = new Witness(client);
      issue(client, witness, STEPS);
      await turn();
      const [first = Buffer.alloc(0), rest = Buffer.alloc(0)] = cutAt(repliesOf(STEPS), [cut]);
      socket.feed(first);
      const { coalescer } = coalesce(client);
      socket.feed(rest);
      const next = client.get('next');
      await turn();
      for (const chunk of cutAt(bulk(LONG), [4_000])) socket.feed(chunk);
      expect(await next).toBe(LONG.toString());
      expect(witness.seen).toHaveLength(STEPS.length);
      expect(coalescer.stats().replies.fast).toBe(1);
      client.disconnect();
    }
  });

  it('disconnect(): the rest that still comes is dropped', async () => {
    await interrupt(({ client }) => client.disconnect());
  });

  it('quit(): a later command has the outcome of a plain client', async () => {
    const steps = [...STEPS, { reply: '+OK\r\n' }];
    await interrupt(
      async ({ client }) => {
        client.quit().catch(() => {});
        client.get('late').catch(() => {});
        await turn();
      },
      CUTS,
      options,
      steps,
    );
  });

  it('the data listeners are removed: the outcome is that of a plain client', async () => {
    await interrupt(({ socket }) => socket.removeAllListeners('data'));
  });

  it('the host flushes its queue: the outcome is that of a plain client', async () => {
    const flushing: Interruption['does'] = ({ client }) =>
      (client as unknown as { flushQueue(error: Error): void }).flushQueue(new Error('flushed'));
    await interrupt(flushing);
  });

  it('other code has changed the queue: the outcome is that of a plain client', async () => {
    const shifting: Interruption['does'] = ({ client }) => {
      const queue = (client as unknown as { commandQueue: { shift(): { command: { reject(error: Error): void } } } })
        .commandQueue;
      queue.shift().command.reject(new Error('taken'));
    };
    await interrupt(shifting);
  });

  it.each([{}, { autoResendUnfulfilledCommands: false }, { maxRetriesPerRequest: 0 }, { maxRetriesPerRequest: null }])(
    'the connection is lost, %j: unanswered commands are sent again, or fail',
    async (own) => {
      for (const error of [undefined, new Error('ECONNRESET')]) {
        await interrupt(lose(error), CUTS, { ...options, ...own, retryStrategy: () => 0 });
      }
    },
  );

  it('commandTimeout: the late reply is dropped, the next caller gets its own', async () => {
    await Promise.all(
      CUTS.map((cut) =>
        interrupt(
          async ({ client, socket }) => {
            await sleep(60);
            const next = client.get('next');
            await turn();
            socket.feed(bulk(LONG).subarray(cut));
            for (const chunk of cutAt(bulk(filled('mine ', 8_400)), [3_000])) socket.feed(chunk);
            expect(await next).toBe(filled('mine ', 8_400).toString());
          },
          [cut],
          { ...options, commandTimeout: 40 },
          [{ command: GET, reply: bulk(LONG) }],
        ),
      ),
    );
  });
});

describe('a long reply', () => {
  it('is dropped with its connection when only half of it has come', async () => {
    const release = vi.spyOn(ReplyDecoder.prototype, 'release');
    const { client, socket } = await coalescedFake({}, { retryStrategy: () => 0 });
    const value = client.get('k');
    await turn();
    socket.feed(bulk(LONG).subarray(0, 4_000));
    const again = once(client, 'ready');
    socket.destroy();
    await again;
    expect(release).not.toHaveBeenCalled();
    client.disconnect();
    await expect(value).rejects.toThrow('Connection is closed.');
  });

  it('is dropped once the data listeners are removed, after detach() too', async () => {
    const { client, socket } = await coalescedFake({});
    const value = client.get('k');
    await turn();
    socket.feed(bulk(LONG).subarray(0, 4_000));
    socket.removeAllListeners('data');
    client.coalescer.detach();
    expect(socket.listenerCount('data')).toBe(0);
    client.disconnect();
    await expect(value).rejects.toThrow('Connection is closed.');
  });

  it.each(EACH_HOST)('that ends in wrong bytes is as for a plain client: $hostName, RESP$protocol', async (options) => {
    for (const end of ['xx', '\rx', 'x\n', '\n\r', '$1', '\r\r']) {
      const reply = Buffer.concat([bulk(LONG).subarray(0, -2), Buffer.from(end)]);
      for (const behind of ['', bulk('next'), bulk(LONG), '-ERR no\r\n', 'not RESP\r\n']) {
        const steps: Step[] = [{ command: GET, reply }, { command: GET, reply: behind }, ...STEPS];
        // Host: ioredis 6 answers at the first byte behind the string.
        for (const cut of [HEADER, HEADER + 40, END - 2]) {
          const { plain, ours } = await playBoth(options, steps, () => cutAt(repliesOf(steps), [cut, END + 3]));
          expect(ours.seen, `${JSON.stringify(end)}, cut at ${cut}`).toStrictEqual(plain.seen);
        }
      }
    }
  });

  it('is counted: later timeouts find their own commands', async () => {
    const { client, socket } = await coalescedFake({}, { commandTimeout: 500 });
    const first = client.get('k');
    await turn();
    for (const chunk of cutAt(bulk(LONG), [4_000])) socket.feed(chunk);
    expect(await first).toBe(LONG.toString());
    await sleep(30);
    const from = performance.now();
    await expect(client.get('unanswered')).rejects.toThrow('Command timed out');
    expect(performance.now() - from).toBeGreaterThan(490);
    client.disconnect();
  });

  it('that is longer than the limit goes to the host from its first byte on', async () => {
    const mebibyte = bulk(filled('long ', 2 ** 20));
    const reply = aggregate('*', Array<Buffer>(70).fill(mebibyte));
    const steps: Step[] = [
      { command: LRANGE, reply },
      { command: GET, reply: bulk('behind') },
    ];
    const chunks = () =>
      cutAt(
        repliesOf(steps),
        Array.from({ length: 80 }, (_, index) => index * 1_000_000),
      );
    const { plain, ours } = await playBoth({}, steps, chunks);
    expect(ours.seen).toStrictEqual(plain.seen);
    expect(ours.fast).toBe(1);
  });

  it('settles all callers who share it', async () => {
    const { client, socket } = await coalescedFake({ shareReads: true });
    const values = [client.get('k'), client.get('other'), client.get('k'), client.get('k'), client.getBuffer('k')];
    await turn();
    const replies = Buffer.concat([bulk(LONG), bulk('other'), bulk(LONG)]);
    for (const chunk of cutAt(replies, [4_000, 9_005])) socket.feed(chunk);
    const text = LONG.toString();
    expect(await Promise.all(values)).toStrictEqual([text, 'other', text, text, LONG]);
    expect(client.coalescer.stats()).toMatchObject({ sharedReads: 2, replies: { fast: 3 }, inFlight: 0 });
    client.disconnect();
  });

  it('settles each caller of a fused read, wherever the reply is cut', async () => {
    const reply = aggregate('*', [bulk('one'), '$-1\r\n', bulk(''), bulk('four')]);
    for (let cut = 1; cut < reply.length; cut += 1) {
      const { client, socket } = await coalescedFake({ fuseReads: true });
      // The first MGET, of one, and the read itself.
      const first = client.get('a');
      await turn();
      socket.feed(Buffer.concat([aggregate('*', [bulk('one')]), bulk('one')]));
      await first;
      const values = ['a', 'b', 'c', 'd'].map((key) => client.get(key));
      const behind = client.strlen('e');
      await turn();
      for (const chunk of cutAt(Buffer.concat([reply, Buffer.from(':7\r\n')]), [cut])) socket.feed(chunk);
      expect(await Promise.all([...values, behind])).toStrictEqual(['one', null, '', 'four', 7]);
      client.disconnect();
    }
  });

  it('gives each caller who shares it its own Buffers, arrays and objects', async () => {
    for (const [replyMapping, type] of [
      ['legacy', '*'],
      ['resp3', '%'],
    ] as const) {
      const { client, socket } = await coalescedFake(
        { shareReads: true },
        { protocol: 3, replyMapping: replyMapping as never },
      );
      const both = [client.hgetallBuffer('h'), client.hgetallBuffer('h')];
      await turn();
      for (const chunk of cutAt(aggregate(type, [bulk('field'), bulk(LONG)]), [4_000])) socket.feed(chunk);
      const [first, second] = (await Promise.all(both)) as [Record<string, Buffer>, Record<string, Buffer>];
      expect(first).toStrictEqual({ field: LONG });
      first.field?.fill('#');
      first.more = Buffer.from('of the first');
      expect(second).toStrictEqual({ field: LONG });
      expect(client.coalescer.stats()).toMatchObject({ sharedReads: 1, replies: { fast: 1 } });
      client.disconnect();
    }
  });

  it('settles all callers who share it when the client is detached in the middle of it', async () => {
    const { client, socket } = await coalescedFake({ shareReads: true });
    const values = [client.get('k'), client.get('k')];
    await turn();
    const [first = '', second = ''] = cutAt(bulk(LONG), [4_000]);
    socket.feed(first);
    client.coalescer.detach();
    socket.feed(second);
    expect(await Promise.all(values)).toStrictEqual([LONG.toString(), LONG.toString()]);
    client.disconnect();
  });

  describe('and a reply transformer', () => {
    const { _transformer: transformers } = Command as unknown as { _transformer: { reply: Record<string, unknown> } };
    function transformGet(transform: (value: unknown) => unknown): void {
      transformers.reply.get = transform;
      onTestFinished(() => void Reflect.deleteProperty(transformers.reply, 'get'));
    }

    it('get what a plain client gives them', async () => {
      let calls = 0;
      transformGet((value) => {
        calls += 1;
        if (calls % 3 === 0) throw new RangeError(`${String(value).length} are too many`);
        return [value, value];
      });
      for (const cut of CUTS) {
        const chunks = cutAt(repliesOf(STEPS), [cut, END + 70]);
        calls = 1;
        const plain = await play({}, STEPS, chunks);
        calls = 1;
        expect((await play({ coalesce: {} }, STEPS, chunks)).seen).toStrictEqual(plain.seen);
        expect(JSON.stringify(plain.seen)).toContain('are too many');
      }
    });

    it.each(['detach', 'detach and attach', 'emit data'] as const)('may %s', async (what) => {
      const { client, socket } = await coalescedFake({ shareReads: true }, { protocol: 3 });
      const witness = new Witness(client);
      let acts = what === 'emit data' ? 1 : 0;
      transformGet((value) => {
        acts += 1;
        if (acts === 1 && what !== 'emit data') client.coalescer.detach();
        if (acts === 1 && what === 'detach and attach') coalesce(client);
        if (acts === 2 && what === 'emit data') socket.emit('data', bulk('fed inside'));
        return value;
      });
      issue(client, witness, [...STEPS.slice(0, 1), ...STEPS]);
      await turn();
      const inside = what === 'emit data' ? 1 : 0;
      const replies = repliesOf([STEPS[0] as Step, ...STEPS.slice(1 + inside)]);
      for (const chunk of cutAt(replies, [4_000, END + 30 + 4_000])) socket.feed(chunk);
      await turn();
      expect(Object.fromEntries(witness.seen)).toStrictEqual({
        '0 get': LONG.toString(),
        '1 get': LONG.toString(),
        '2 get': inside ? 'fed inside' : 'small',
        '3 call': 'cold',
        '4 get': filled('other ', 8_500).toString(),
        '5 getBuffer': Buffer.from('last'),
      });
      client.disconnect();
    });
  });

  it('goes to the host, the received half first, when the stream gets an encoding', async () => {
    const text = bulk(filled('plain text ', 9_001));
    const steps: Step[] = [{ command: GET, reply: text }, ...STEPS.slice(1)];
    const { plain, ours } = await playBoth({}, steps, () => [text.subarray(0, 4_000)], {
      after: 1,
      does: async ({ socket }) => {
        socket.setEncoding('utf8');
        socket.push(text.subarray(4_000));
        await turn();
      },
    });
    expect(ours.seen).toStrictEqual(plain.seen);
  });

  it.each(HOSTS)('$name: long replies of every kind from a real server, split at random', async (host) => {
    const proxy = await startProxy(redisUrl());
    const prefix = uniquePrefix('cut');
    const writer = await ready(host.create(redisUrl()));
    const plain = await ready(host.create(redisUrl()));
    const units = Object.entries(UNITS).flatMap(([title, unit]) => (title === 'broken' ? [] : [String(unit)]));
    const any = (exponent: number) => Math.floor(2 ** (Math.random() * exponent)) + 1;
    const keys = Array.from({ length: 15 }, (_, index) => `${prefix}${index}`);
    for (const [index, key] of keys.entries()) {
      const elements = Array.from(
        { length: any(8) },
        (_, nth) => `${nth} ${filled(units[nth % units.length] as string, any(index % 2 ? 7 : 11))}`,
      );
      await writer.set(`${key}s`, filled(units[index % units.length] as string, any(20)));
      await writer.rpush(`${key}l`, ...elements);
      await writer.hset(`${key}h`, new Map(elements.map((element, nth) => [`f${nth}`, element])));
      await writer.zadd(`${key}z`, ...elements.flatMap((element, nth) => [nth / 8, element]));
      await writer.sadd(`${key}m`, ...elements);
    }
    const readAll = (client: typeof plain) =>
      Promise.all(
        keys.flatMap((key): Promise<unknown>[] => [
          client.get(`${key}s`),
          client.getBuffer(`${key}s`),
          client.lrange(`${key}l`, 0, -1),
          client.lrangeBuffer(`${key}l`, 0, -1),
          client.hgetall(`${key}h`),
          client.zrange(`${key}z`, '0', '-1', 'WITHSCORES'),
          client.smembers(`${key}m`),
        ]),
      );
    const client = await ready(host.createCoalesced(proxy.url));
    let reading = true;
    const cutting = (async () => {
      for (; reading; await turn()) proxy.cutRepliesInto(127 + any(17));
    })();
    const [expected, values] = [await readAll(plain), await readAll(client)];
    reading = false;
    await cutting;
    const differing = values.flatMap((value, index) => (isDeepStrictEqual(value, expected[index]) ? [] : [index]));
    expect(differing).toEqual([]);
    expect(client.coalescer.stats().replies.fast).toBeGreaterThan(values.length / 2);
    await writer.del(keys.flatMap((key) => [...'slhzm'].map((kind) => key + kind)));
  });
});
