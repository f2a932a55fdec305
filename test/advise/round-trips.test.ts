import IORedis from 'ioredis';
import { roundTrips } from 'ioredis-coalesce/coalesce';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { Advisor } from '../../src/advise/advisor.js';
import { Commands } from '../../src/advise/commands.js';
import { Flow, Group, type Pair, Trip } from '../../src/advise/waits.js';
import { cold } from '../helpers/cold.js';
import { type Client, type CoalescedClient, HOSTS, ioredis6, ready, sleep, until } from '../helpers/hosts.js';
import { startProxy } from '../helpers/proxy.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { collectUncaught } from '../helpers/uncaught.js';

const prefix = uniquePrefix('advise');

/** Without lines: what waits for what, and whether it has to. */
async function found(program: () => unknown): Promise<{ commands: number; sequential: number; waits: string[] }> {
  const { commands, sequential, sites } = await roundTrips(program);
  const lines = sites.map(({ first, second, waits, times, dependent }) => {
    const what =
      first.place === second.place && first.command === second.command
        ? `${first.command} ×${waits / times + 1}`
        : `${first.command} → ${second.command}`;
    return `${what}, ${times}${dependent === 0 ? '' : ', dependent'}`;
  });
  return { commands, sequential, waits: lines };
}

describe.each(HOSTS)('roundTrips() on $name', (host) => {
  let client: CoalescedClient;
  const get = (key: string) => client.get(`${prefix}${key}`);

  beforeEach(async () => {
    client = host.createCoalesced(redisUrl());
    await ready(client as Client);
    const values = { user: 'u-4711', json: '{"cart":"c-815"}', 'user:c-815': '{"id":"c-815"}', short: 'q' };
    await client.mset(Object.fromEntries(Object.entries(values).map(([key, value]) => [prefix + key, value])));
    await client.hset(`${prefix}hash`, 'owner', 'o-12345');
    await client.hset(`${prefix}names`, 'item-17', '2', 'owner', 'x');
  });

  const shapes: [string, () => unknown, { commands: number; sequential: number; waits: string[] }][] = [
    [
      'a loop',
      async () => {
        for (let id = 0; id < 5; id += 1) await get(`${id}`);
      },
      { commands: 5, sequential: 5, waits: ['get ×5, 1'] },
    ],
    [
      'for await',
      async () => {
        async function* ids() {
          for (let id = 0; id < 4; id += 1) yield id;
        }
        for await (const id of ids()) await get(`${id}`);
      },
      { commands: 4, sequential: 4, waits: ['get ×4, 1'] },
    ],
    [
      'two helper functions',
      async () => {
        const user = async () => get('a');
        const cart = async () => client.llen(`${prefix}none`);
        await user();
        await cart();
      },
      { commands: 2, sequential: 2, waits: ['get → llen, 1'] },
    ],
    [
      'a helper of two round trips, then another',
      async () => {
        const both = async () => {
          await get('a');
          await client.strlen(`${prefix}b`);
        };
        await both();
        await client.exists(`${prefix}c`);
      },
      { commands: 3, sequential: 3, waits: ['get → strlen, 1', 'strlen → exists, 1'] },
    ],
    ['Promise.all', () => Promise.all(['a', 'b', 'c'].map(get)), { commands: 3, sequential: 1, waits: [] }],
    [
      'Promise.all of sequences',
      () =>
        Promise.all(
          ['a', 'b', 'c'].map(async (key) => {
            await get(key);
            await client.strlen(`${prefix}${key}`);
          }),
        ),
      { commands: 6, sequential: 2, waits: ['get → strlen, 3'] },
    ],
    [
      'Promise.all in a loop',
      async () => {
        for (let round = 0; round < 3; round += 1) await Promise.all([get('a'), client.strlen(`${prefix}b`)]);
      },
      { commands: 6, sequential: 3, waits: ['strlen → get, 2'] },
    ],
    [
      'two commands of one line, and many of it at once in a loop',
      async () => {
        for (let round = 0; round < 3; round += 1) await Promise.all(['a', 'b', 'c'].map((key) => get(key)));
        await sleep(2);
        await get('a').then(() => client.strlen(`${prefix}b`));
      },
      { commands: 11, sequential: 3, waits: ['get ×3, 1', 'get → strlen, 1'] },
    ],
    [
      'callbacks, of a command that is not fast, too',
      () =>
        new Promise((resolve) => {
          client.get(`${prefix}a`, () => {
            client.lastsave(() => {
              client.strlen(`${prefix}b`, resolve);
            });
          });
        }),
      { commands: 3, sequential: 3, waits: ['get → lastsave, 1', 'lastsave → strlen, 1'] },
    ],
    [
      'a reply in the next key',
      async () => {
        const user = await get('user');
        await get(`cart:${user}`).then(() => {});
      },
      { commands: 2, sequential: 2, waits: ['get ×2, 1, dependent'] },
    ],
    [
      'a short reply in the next key, as a word and as part of one',
      async () => {
        await client.get(`${prefix}short`);
        await client.strlen(`${prefix}quick`);
        await client.get(`${prefix}short`);
        await client.exists(`${prefix}q:1`);
      },
      {
        commands: 4,
        sequential: 4,
        waits: ['get → strlen, 1', 'strlen → get, 1', 'get → exists, 1, dependent'],
      },
    ],
    [
      'a blocking command after another one',
      async () => {
        await get('a');
        await client.wait(0, 1);
        await client.blpop(`${prefix}none`, 0.01);
      },
      { commands: 1, sequential: 1, waits: [] },
    ],
    [
      'a field of a JSON reply in the next key',
      async () => {
        const { cart } = JSON.parse((await get('json')) ?? '{}') as { cart: string };
        await client.hgetall(`${prefix}${cart}`);
      },
      { commands: 2, sequential: 2, waits: ['get → hgetall, 1, dependent'] },
    ],
    [
      'a field of a hash in the next key',
      async () => {
        const { owner } = await client.hgetall(`${prefix}hash`);
        await get(`${owner}`);
      },
      { commands: 2, sequential: 2, waits: ['hgetall → get, 1, dependent'] },
    ],
    [
      'the name of a field in the next key, which is an identity, and one that is not',
      async () => {
        await client.hgetall(`${prefix}names`);
        await client.strlen(`${prefix}item-17`);
        await client.hgetall(`${prefix}names`);
        await client.exists(`${prefix}owner`);
        await client.quit();
      },
      {
        commands: 4,
        sequential: 4,
        waits: ['hgetall → strlen, 1, dependent', 'strlen → hgetall, 1', 'hgetall → exists, 1'],
      },
    ],
    [
      'an identity in the next key that the first key and its reply have, too',
      async () => {
        await client.get(`${prefix}user:c-815`);
        await client.hgetall(`${prefix}c-815`);
      },
      { commands: 2, sequential: 2, waits: ['get → hgetall, 1'] },
    ],
    [
      'a transaction and a pipeline, each as one',
      async () => {
        await client.multi().get('a').get('b').exec();
        await client.pipeline().get('a').get('b').get('c').exec();
      },
      { commands: 2, sequential: 2, waits: ['multi → pipeline, 1'] },
    ],
    [
      'a timer in between',
      async () => {
        await get('a');
        await sleep(2);
        await client.strlen(`${prefix}b`);
      },
      { commands: 2, sequential: 1, waits: [] },
    ],
    [
      'computing in between',
      async () => {
        await get('a');
        const end = performance.now() + 5;
        while (performance.now() < end);
        await client.strlen(`${prefix}b`);
      },
      { commands: 2, sequential: 2, waits: ['get → strlen, 1'] },
    ],
    [
      'a promise that is awaited much later',
      async () => {
        const early = get('a');
        await sleep(10);
        await early;
        await sleep(0);
        await client.strlen(`${prefix}b`);
      },
      { commands: 2, sequential: 1, waits: [] },
    ],
    [
      'commands that the client sends, a view and a script',
      async () => {
        client.defineCommand('one', { numberOfKeys: 0, lua: 'return 1' });
        await client.time();
        await client.coalescer.withOptions({ timeout: 5_000 }).get('a');
        await (client as never as { one(): Promise<unknown> }).one();
      },
      { commands: 3, sequential: 3, waits: ['time → get, 1', 'get → evalsha, 1'] },
    ],
    [
      'two timers that run at once',
      () => Promise.all([sleep(1).then(() => get('a')), sleep(20).then(() => get('b'))]),
      { commands: 2, sequential: 1, waits: [] },
    ],
  ];
  it.each(shapes)('%s', async (_, program, expected) => {
    const { waits, ...counts } = await found(program);
    expect({ ...counts, waits: waits.toSorted() }).toEqual({ ...expected, waits: expected.waits.toSorted() });
  });

  it('values and errors are those of the command, and an error that is not caught is reported', async () => {
    await roundTrips(async () => {
      expect(await get('user')).toBe('u-4711');
      await expect(client.hget(`${prefix}user`, 'field')).rejects.toThrow('WRONGTYPE');
      expect(await client.multi().get(`${prefix}user`).exec()).toEqual([[null, 'u-4711']]);
    });
    await expect(
      roundTrips(() => {
        throw new Error('mine');
      }),
    ).rejects.toThrow('mine');
  });

  it('a failed command whose callback gets the error is no unhandled rejection; one without is', async () => {
    const unhandled = collectUncaught('unhandledRejection');
    client.defineCommand('fails', { numberOfKeys: 0, lua: 'return redis.error_reply("ERR mine")' });
    const { fails } = client as never as { fails: Client['call'] };
    const key = `${prefix}user`;
    type Told = (error: Error | null | undefined) => void;
    const calls: ((told: Told) => unknown)[] = [
      (told) => client.lpush(key, '1', told),
      (told) => cold(client, 'lpush', key, '1', told),
      (told) => client.call('nosuch', told),
      (told) => fails.call(client, told as never),
      // The host encodes a Date.
      (told) => fails.call(client, new Date() as never, told as never),
      (told) => client.multi().call('nosuch').exec(told),
      (told) => client.coalescer.withOptions({ timeout: 5_000 }).lpush(key, '1', told),
    ];
    await roundTrips(() =>
      Promise.all(calls.map((call) => new Promise<void>((resolve) => call((error) => error && resolve())))),
    );
    await sleep(0);
    expect(unhandled).toEqual([]);
    await roundTrips(() => {
      void client.lpush(key, '1');
      void cold(client, 'lpush', key, '1');
    });
    await until(() => unhandled.length === 2, 'both errors');
  });

  it('a callback gets as many arguments as on a plain client', async () => {
    const plain = await ready(host.create(redisUrl()));
    const counts = (one: Client) =>
      Promise.all(
        [one.lpush, one.strlen].map(
          (method) =>
            new Promise((resolve) => method.call(one, `${prefix}user`, (...args: unknown[]) => resolve(args.length))),
        ),
      );
    const found: unknown[] = [];
    await roundTrips(async () => {
      found.push(await counts(client));
    });
    expect(found).toEqual([await counts(plain)]);
  });

  it('a name that is not text fails as on a plain client', async () => {
    const plain = await ready(host.create(redisUrl()));
    const outcome = (one: Client) => {
      try {
        return String(one.call(['get'] as never, 'key'));
      } catch (error) {
        return String(error);
      }
    };
    await roundTrips(async () => {
      expect(outcome(client as Client)).toBe(outcome(plain));
    });
  });

  it('arguments become text once, as on a plain client', async () => {
    let calls = 0;
    const stateful = {
      toString() {
        calls += 1;
        return `${calls}`;
      },
    };
    const throwing = {
      toString() {
        throw new Error('mine');
      },
    };
    // Host: of the command that it has thrown for.
    collectUncaught('unhandledRejection');
    await roundTrips(async () => {
      await client.set(`${prefix}stateful`, stateful as never);
      expect(await get('stateful')).toBe('1');
      expect(() => client.get(throwing as never)).toThrow('must be of type string');
      expect(() => cold(client, 'get', throwing)).toThrow('must be of type string');
      await sleep(0);
    });
  });
});

it('a command after replies of two clients has waited for the later one, whichever was asked first', async () => {
  const proxy = await startProxy(redisUrl());
  const slow = await ready(ioredis6.createCoalesced(proxy.url));
  const fast = await ready(ioredis6.createCoalesced(redisUrl()));
  const { sequential } = await roundTrips(async () => {
    proxy.stall();
    const replies = Promise.all([slow.get(`${prefix}a`), fast.get(`${prefix}b`)]);
    await fast.strlen(`${prefix}c`);
    await sleep(1);
    proxy.resume();
    await replies;
    await fast.exists(`${prefix}d`);
  });
  expect(sequential).toBe(2);
});

it('a reply that a transformer has made cyclic, or with a getter that throws, reaches its caller', async () => {
  const client = await ready(ioredis6.createCoalesced(redisUrl()));
  const { Command } = IORedis as unknown as {
    Command: {
      setReplyTransformer(name: string, transform: () => unknown): void;
      _transformer: { reply: Record<string, unknown> };
    };
  };
  onTestFinished(() => {
    for (const name of ['get', 'strlen']) delete Command._transformer.reply[name];
  });
  const cyclic = { self: {} };
  cyclic.self = cyclic;
  const throwing = {
    get field() {
      throw new Error('mine');
    },
  };
  Command.setReplyTransformer('get', () => cyclic);
  Command.setReplyTransformer('strlen', () => throwing);
  await roundTrips(async () => {
    expect(await client.get('a')).toBe(cyclic);
    expect(await client.strlen('a')).toBe(throwing);
    expect(await new Promise((resolve) => client.get('a', (_, reply) => resolve(reply)))).toBe(cyclic);
  });
});

describe('the advisor runs no code of users that would not run without it', () => {
  it('getters and Proxies in arguments are read once, and methods of Buffers are not called', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl()));
    let reads = 0;
    const getter = Object.defineProperty([`${prefix}a`, ''], 1, { get: () => `read ${++reads}` });
    const proxy = new Proxy([`${prefix}a`, 'a'], { get: (...all) => ++reads && Reflect.get(...all) });
    const buffer = Object.assign(Buffer.from('a'), { toString: () => JSON.parse('{') });
    const read = async (program: () => unknown) => {
      reads = 0;
      await program();
      return reads;
    };
    for (const send of [() => client.mset(getter), () => client.mset(proxy)]) {
      expect(await read(() => roundTrips(send))).toBe(await read(send));
    }
    await roundTrips(() => client.set(`${prefix}a`, buffer));
    expect(await client.get(`${prefix}a`)).toBe('a');
  });

  it.each<[string, PropertyDescriptor]>([
    ['throws', { value: () => JSON.parse('{') }],
    ['gives no text', { value: () => Object.create(null) }],
  ])('a process whose Error.prepareStackTrace %s', async (_, prepared) => {
    const client = await ready(ioredis6.createCoalesced(redisUrl()));
    const { prepareStackTrace } = Error;
    onTestFinished(() => {
      Error.prepareStackTrace = prepareStackTrace;
    });
    const { commands } = await roundTrips(() => {
      Object.defineProperty(Error, 'prepareStackTrace', { ...prepared, writable: true, configurable: true });
      return client.set(`${prefix}a`, '1');
    });
    expect([commands, await client.get(`${prefix}a`)]).toEqual([0, '1']);
  });

  it('a process whose Error.stackTraceLimit cannot be written', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl()));
    Object.defineProperty(Error, 'stackTraceLimit', { value: 10, writable: false });
    onTestFinished(() => void Object.defineProperty(Error, 'stackTraceLimit', { value: 10, writable: true }));
    const { commands } = await roundTrips(() => client.set(`${prefix}a`, '1'));
    expect([commands, await client.get(`${prefix}a`)]).toEqual([1, '1']);
  });
});

const trip = (advisor: Advisor, line: number): Trip => {
  const place = advisor.placeOf({ place: `a.ts:${line}`, functionName: 'load', command: 'get' });
  const commands = new Commands([{ name: 'get', args: [`key:${line}`] }]);
  const made = new Trip(place, commands, new Flow(undefined, undefined), 1, undefined, new Group());
  return Object.assign(made, { state: 'issued', tookMs: line });
};

it('answers from memory are not counted, but what their callbacks send is', async () => {
  const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { cache: true }));
  const hits = () => client.coalescer.stats().cache?.hits ?? 0;
  while (hits() === 0) await client.get(`${prefix}cached`);
  const { commands } = await roundTrips(async () => {
    for (let read = 0; read < 3; read += 1) await client.get(`${prefix}cached`);
    await new Promise((resolve) => {
      client.get(`${prefix}cached`, () => client.strlen(`${prefix}a`, resolve));
    });
  });
  expect({ commands, hits: hits() }).toEqual({ commands: 1, hits: 5 });
});

it('the report names the twenty places that cost the most time, and how many more there are', () => {
  const advisor = new Advisor();
  for (let line = 1; line <= 23; line += 1) {
    for (const time of [1, 2, 3]) {
      const [first, second] = [trip(advisor, line), trip(advisor, 1_000 + line)];
      first.settle(null, 'reply');
      first.tookMs = line;
      advisor.count(second, first);
      first.end();
      (second.pair as Pair).secondMs = line * time;
    }
  }
  const lines = advisor.report(false).split('\n');
  expect(lines[0]).toBe('23 places wait for one round trip after another without need (69 commands seen)');
  expect(lines[1]).toBe(
    '  a.ts:23 load → a.ts:1023 load  get, then get: independent, 3 times; together they would save 23.0 ms of 46.0',
  );
  expect(lines).toHaveLength(22);
  expect(lines[21]).toBe('  … and 3 more');
  expect(new Advisor().report(false)).toBe(
    'no place waits for one round trip after another without need (0 commands seen)',
  );
});

it('what is remembered is bounded: further places are not told apart, and cost no memory', () => {
  const advisor = new Advisor();
  for (let line = 0; line < 3_000; line += 1) advisor.count(trip(advisor, line), trip(advisor, line));
  expect(advisor.found().sites).toHaveLength(1_000);
  expect(advisor.found().commands).toBe(3_000);
});
