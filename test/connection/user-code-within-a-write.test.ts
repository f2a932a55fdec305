/**
 * Subscribers of `ioredis-coalesce:batch` and schedule functions are user code: they send, flush, end and throw.
 * Whenever they run, each caller gets the reply to its own command, and nothing is lost.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Client, type CoalescedClient, HOSTS, ioredis6, ready, ticked } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { collectUncaught } from '../helpers/uncaught.js';
import { MOMENTS, watchBatches } from '../helpers/watch-batches.js';

const prefix = uniquePrefix('user-code');
const key = (name: string): string => prefix + name;
const LARGE = 'z'.repeat(300_000);

beforeAll(async () => {
  const client = new ioredis6.Redis(redisUrl(), {});
  await client.mset(...['a', 'b', 'c', 'd', 'x'].flatMap((name) => [key(name), name.toUpperCase()]), key('é'), 'X');
  client.disconnect();
});

/** What a subscriber sends; every one of them is answered with X. */
const NESTED: Record<string, (client: Client) => Promise<unknown>> = {
  'a fast command': (c) => c.get(key('x')),
  'a cold command': (c) => c.call('GET', key('x')),
  'a fast command of text beyond ASCII': (c) => c.get(key('é')),
  'a pipeline': (c) =>
    c
      .pipeline()
      .get(key('x'))
      .exec()
      .then((replies) => replies?.[0]?.[1]),
  'a transaction': (c) =>
    c
      .multi()
      .get(key('x'))
      .exec()
      .then((replies) => replies?.[0]?.[1]),
};

/** Writes of the host's and of ours, that a limit flushes while they are being added. */
const FLUSHED_WITHIN: Record<string, { options: object; send(client: Client): Promise<unknown>; gives: unknown }> = {
  'a pipeline larger than maxBatchBytes, default options': {
    options: {},
    send: async (c) => {
      const pipeline = c.pipeline().get(key('a')).get(key('b')).set(key('big'), LARGE).get(key('c'));
      return (await pipeline.exec())?.map(([, value]) => value);
    },
    gives: ['A', 'B', 'OK', 'C'],
  },
  'a pipeline larger than maxBatchBytes behind fast commands': {
    options: {},
    send: async (c) => {
      const before = [c.get(key('d')), c.get(key('a'))];
      const pipeline = c.pipeline().get(key('b')).set(key('big'), LARGE).get(key('c'));
      const behind = c.get(key('d'));
      const exec = pipeline.exec();
      return [await Promise.all([...before, behind]), (await exec)?.map(([, value]) => value), await c.get(key('a'))];
    },
    gives: [['D', 'A', 'D'], ['B', 'OK', 'C'], 'A'],
  },
  'single commands, one of which reaches maxBatchSize': {
    options: { maxBatchSize: 2 },
    send: (c) => Promise.all([c.call('GET', key('a')), c.call('GET', key('b')), c.call('GET', key('c'))]),
    gives: ['A', 'B', 'C'],
  },
  'fast commands, one of which reaches maxBatchSize': {
    options: { maxBatchSize: 2 },
    send: (c) => Promise.all([c.get(key('a')), c.get(key('b')), c.get(key('c')), c.get(key('d'))]),
    gives: ['A', 'B', 'C', 'D'],
  },
  'commands of either kind, of which each reaches maxBatchBytes': {
    options: { maxBatchBytes: 8 },
    send: (c) => Promise.all([c.get(key('a')), c.call('GET', key('b')), c.get(key('c')), c.call('GET', key('d'))]),
    gives: ['A', 'B', 'C', 'D'],
  },
  'text beyond ASCII behind which the host writes': {
    options: { maxBatchSize: 3 },
    send: (c) => Promise.all([c.echo('é€'), c.get(key('a')), c.call('GET', key('b')), c.echo('ż'), c.get(key('c'))]),
    gives: ['é€', 'A', 'B', 'ż', 'C'],
  },
  'a transaction that reaches maxBatchSize': {
    options: { maxBatchSize: 2 },
    send: async (c) => (await c.multi().get(key('a')).get(key('b')).get(key('c')).exec())?.map(([, value]) => value),
    gives: ['A', 'B', 'C'],
  },
  'what was held back under maxInFlight, a large host write among it': {
    options: { maxInFlight: 2 },
    send: async (c) => {
      const singles = [c.get(key('a')), c.call('GET', key('b')), c.get(key('c'))];
      const pipeline = c.pipeline().get(key('a')).set(key('big'), LARGE).get(key('b')).exec();
      singles.push(c.get(key('d')), c.call('GET', key('a')));
      return [await Promise.all(singles), (await pipeline)?.map(([, value]) => value)];
    },
    gives: [
      ['A', 'B', 'C', 'D', 'A'],
      ['A', 'OK', 'B'],
    ],
  },
};

describe.each(HOSTS)('$name: a subscriber that sends on the same client', (host) => {
  describe.each(MOMENTS)('notified at the %s of each batch', (moment) => {
    it.each(Object.keys(FLUSHED_WITHIN))('%s: callers and the subscriber get their own values', async (title) => {
      const { options, send, gives } = FLUSHED_WITHIN[title] as (typeof FLUSHED_WITHIN)[string];
      for (const [what, nest] of Object.entries(NESTED)) {
        const client = await ready(host.createCoalesced(redisUrl(), {}, options));
        let nested: Promise<unknown>[] | undefined;
        watchBatches(moment, () => {
          if (nested !== undefined) return;
          nested = [];
          nested.push(nest(client), client.get(key('x')));
        });
        expect([await send(client), await Promise.all(nested ?? [])], what).toEqual([gives, ['X', 'X']]);
        expect(await client.get(key('a'))).toBe('A');
        client.disconnect();
      }
    });
  });
});

const ACTIONS: Record<string, (client: CoalescedClient) => void> = {
  'flushes again': (client) => client.coalescer.flush(),
  detaches: (client) => client.coalescer.detach(),
  'sends, flushes and detaches': (client) => {
    void client.echo('nested').catch(() => {});
    client.coalescer.flush();
    client.coalescer.detach();
  },
};

describe.each(HOSTS)('$name: a subscriber that', (host) => {
  it.each(MOMENTS.flatMap((moment) => Object.keys(ACTIONS).map((action) => [action, moment] as const)))(
    '%s at the %s of a batch leaves all callers their own values',
    async (action, moment) => {
      for (const { options, send, gives } of Object.values(FLUSHED_WITHIN)) {
        const client = await ready(host.createCoalesced(redisUrl(), {}, options));
        let acted = false;
        watchBatches(moment, () => {
          if (acted) return;
          acted = true;
          ACTIONS[action]?.(client);
        });
        expect(await send(client)).toEqual(gives);
        expect(await client.get(key('a'))).toBe('A');
        client.disconnect();
      }
    },
  );
});

describe.each(HOSTS)('$name: a subscriber of the batches that detach() or an end flushes', (host) => {
  const ENDINGS: Record<string, (client: CoalescedClient) => void> = {
    'detach()': (client) => client.coalescer.detach(),
    'stream.end()': (client) => client.stream.end(),
  };

  it.each(MOMENTS.flatMap((moment) => Object.keys(ENDINGS).map((ending) => [ending, moment] as const)))(
    '%s, notified at the %s: what it sends does not overtake what is still held back',
    async (ending, moment) => {
      const client = await ready(
        host.createCoalesced(redisUrl(), { retryStrategy: () => 5 }, { maxInFlight: 4, maxBatchSize: 3 }),
      );
      const names = Array.from({ length: 30 }, (_, index) => `number ${index}`);
      const replies = names.map((name, index) => (index % 3 === 2 ? client.call('ECHO', name) : client.echo(name)));
      const nested: Promise<unknown>[] = [];
      watchBatches(moment, () => {
        if (nested.length < 3) nested.push(client.echo('nested fast'), client.call('ECHO', 'nested cold'));
      });
      ENDINGS[ending]?.(client);
      expect(await Promise.all(replies)).toEqual(names);
      expect(await Promise.all(nested)).toEqual(nested.map((_, index) => `nested ${index % 2 ? 'cold' : 'fast'}`));
      expect(nested.length).toBeGreaterThan(0);
    },
  );
});

describe.each(HOSTS)('$name: a schedule function that is called for a command', (host) => {
  type Schedule = (client: () => CoalescedClient, flush: () => void) => void;
  const SCHEDULES: Record<string, Schedule> = {
    'flushes at once': (_client, flush) => flush(),
    'flushes at once and again later': (_client, flush) => {
      flush();
      setImmediate(flush);
    },
    'calls coalescer.flush(), and the flush later': (client, flush) => {
      client().coalescer.flush();
      setImmediate(flush);
    },
    throws: () => {
      throw new Error('by the schedule function');
    },
  };

  it.each(Object.keys(SCHEDULES))('%s: each caller gets its own value', async (title) => {
    const uncaught = collectUncaught();
    let active = false;
    const client: CoalescedClient = await ready(
      host.createCoalesced(
        redisUrl(),
        {},
        {
          schedule: (flush) => {
            if (active) SCHEDULES[title]?.(() => client, flush);
            else setImmediate(flush);
          },
        },
      ),
    );
    active = true;
    const replies = [client.get(key('a')), client.call('GET', key('b')), client.get(key('c')), client.echo('é')];
    await ticked();
    active = false;
    expect(await Promise.all(replies)).toEqual(['A', 'B', 'C', 'é']);
    expect([...new Set(uncaught.map(String))]).toEqual(title === 'throws' ? ['Error: by the schedule function'] : []);
  });

  it.each([
    ['a fast command', (c: Client) => c.get(key('x'))],
    ['a cold command', (c: Client) => c.call('GET', key('x'))],
  ])('sends %s: each caller gets its own value', async (_, nest) => {
    let nested: Promise<unknown> | undefined;
    let active = false;
    const client: CoalescedClient = await ready(
      host.createCoalesced(
        redisUrl(),
        {},
        {
          schedule: (flush) => {
            if (active) nested ??= nest(client);
            setImmediate(flush);
          },
        },
      ),
    );
    for (const send of [
      () => [client.call('GET', key('a')), client.get(key('b'))],
      () => [client.get(key('a')), client.call('GET', key('b'))],
      () => [
        client
          .pipeline()
          .get(key('a'))
          .exec()
          .then((replies) => replies?.[0]?.[1]),
        client.get(key('b')),
      ],
    ]) {
      nested = undefined;
      active = true;
      const replies = await Promise.all(send());
      active = false;
      expect([replies, await nested]).toEqual([['A', 'B'], 'X']);
    }
  });
});
