import { afterEach, describe, expect, it, vi } from 'vitest';
import { BusyPoll } from '../../src/util/busy-poll.js';
import { cold } from '../helpers/cold.js';
import { HOSTS, ioredis6, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { commandNames, spyOnSocket } from '../helpers/sockets.js';

const key = uniquePrefix('parts');

/** Whether it is near is measured, which a busy machine decides; `busy-poll.test.ts` has the rule. */
const serverIs = (where: 'near' | 'far') =>
  void vi.spyOn(BusyPoll.prototype, 'polls', 'get').mockReturnValue(where === 'near');

afterEach(() => void vi.restoreAllMocks());

describe.each(HOSTS)('$name: the turns of a server that is near', (host) => {
  it.each([
    [31, [31]],
    [32, [32]],
    [33, [32, 1]],
    [500, [32, 64, 128, 256, 20]],
    [1_100, [32, 64, 128, 256, 500, 120]],
  ])('a turn of %i commands leaves in parts of %j', async (commands, parts) => {
    serverIs('near');
    const client = await ready(host.createCoalesced(redisUrl(), {}, { maxBatchSize: 500 }));
    await client.set(key, 'value');
    const spy = spyOnSocket(client);
    for (const turn of [1, 2]) {
      const values = await Promise.all(Array.from({ length: commands }, () => client.get(key)));
      expect(values).toEqual(new Array(commands).fill('value'));
      const sizes = spy.writes.map((write) => commandNames(write.toString()).length);
      expect(sizes).toEqual(turn === 1 ? parts : [...parts, ...parts]);
    }
    expect(client.coalescer.stats().flushReasons.part).toBeGreaterThanOrEqual(commands < 32 ? 0 : 2);
  });

  it('a turn of reads that leave as one command has a first part of 128, two MGETs', async () => {
    serverIs('near');
    const client = await ready(host.createCoalesced(redisUrl(), {}, { fuseReads: true }));
    // Reads are fused once the server has answered an MGET.
    await client.get(key);
    const spy = spyOnSocket(client);
    await Promise.all(Array.from({ length: 200 }, () => client.get(key)));
    const names = spy.writes.map((write) => commandNames(write.toString()).map((name) => name.toLowerCase()));
    expect(names).toEqual([
      ['mget', 'mget'],
      ['mget', 'mget'],
    ]);
  });

  it('the order is that of the calls, on the fast path and beside it', async () => {
    serverIs('near');
    const client = await ready(host.createCoalesced(redisUrl()));
    await client.del(key);
    const lengths = Array.from({ length: 200 }, (_, index) =>
      index % 3 === 0 ? cold(client, 'RPUSH', key, `${index}`) : client.rpush(key, index),
    );
    expect(await Promise.all(lengths)).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
    expect(await client.lrange(key, 0, -1)).toEqual(Array.from({ length: 200 }, (_, index) => `${index}`));
  });
});

describe('a turn leaves in one write', () => {
  it.each([
    ['of a server that is far', 'far', {}],
    ['with a function as schedule', 'near', { schedule: (flush: () => void) => void setImmediate(flush) }],
  ] as const)('%s', async (_, where, options) => {
    serverIs(where);
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, options));
    const spy = spyOnSocket(client);
    await Promise.all(Array.from({ length: 500 }, () => client.get(`${key}none`)));
    expect(spy.writes).toHaveLength(1);
  });
});
