import type { CoalesceOptions } from 'ioredis-coalesce/coalesce';
import { describe, expect, it } from 'vitest';
import { cold } from '../helpers/cold.js';
import { type CoalescedClient, HOSTS, ioredis6, outcomes, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { commandNames, type SocketSpy, spyOnSocket } from '../helpers/sockets.js';

const prefix = uniquePrefix('batch');

async function spied(options?: CoalesceOptions): Promise<{ client: CoalescedClient; spy: SocketSpy }> {
  const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { schedule: 'immediate', ...options }));
  return { client, spy: spyOnSocket(client) };
}

describe.each(HOSTS)('$name: one batch', (host) => {
  it('200 GETs in one tick are one batch and one socket write', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { schedule: 'immediate' }));
    const spy = spyOnSocket(client);
    const before = client.coalescer.stats();
    const values = await Promise.all(Array.from({ length: 200 }, (_, index) => client.get(`${prefix}none:${index}`)));
    expect(values).toEqual(new Array(200).fill(null));
    expect(spy.writes).toHaveLength(1);
    const after = client.coalescer.stats();
    expect(after.batches - before.batches).toBe(1);
    expect(after.fastCommands - before.fastCommands).toBe(200);
    expect(after.bytesWritten - before.bytesWritten).toBe(spy.writes[0]?.length);
    expect((after.batchSizes['256'] ?? 0) - (before.batchSizes['256'] ?? 0)).toBe(1);
  });

  it('6 kinds of commands in one tick are one socket write, in program order', async () => {
    const client = await ready(host.createCoalesced(redisUrl(), {}, { schedule: 'immediate' }));
    await client.set(`${prefix}a`, '1');
    const spy = spyOnSocket(client);
    const settled = await outcomes([
      client.get(`${prefix}a`),
      client.hset(`${prefix}h`, { f: 'v', g: 'w' }),
      client.multi().incr(`${prefix}a`).get(`${prefix}a`).exec(),
      client.pipeline().incr(`${prefix}a`).get(`${prefix}a`).exec(),
      cold(client, 'GET', `${prefix}a`),
      client.publish(`${prefix}channel`, 'message'),
      client.get(`${prefix}a`),
    ]);
    expect(spy.writes).toHaveLength(1);
    expect(commandNames(spy.text()).join(' ')).toBe('get hset multi incr get exec incr get get publish get');
    expect(settled.map((outcome) => (outcome as { value: unknown }).value)).toEqual([
      '1',
      2,
      [
        [null, 2],
        [null, '2'],
      ],
      [
        [null, 3],
        [null, '3'],
      ],
      '3',
      0,
      '3',
    ]);
    await client.del(`${prefix}a`, `${prefix}h`);
  });
});

describe('schedule', () => {
  async function writesOver(options: CoalesceOptions): Promise<number> {
    const { client, spy } = await spied(options);
    const promises = [client.echo('a')];
    process.nextTick(() => promises.push(client.echo('b')));
    await new Promise((resolve) => process.nextTick(() => process.nextTick(resolve)));
    promises.push(client.echo('c'));
    expect(await Promise.all(promises)).toEqual(['a', 'b', 'c']);
    return spy.writes.length;
  }

  it("'immediate' takes everything of this turn of the event loop", async () => {
    expect(await writesOver({ schedule: 'immediate' })).toBe(1);
  });

  it("'tick' flushes when the running callback has ended", async () => {
    expect(await writesOver({ schedule: 'tick' })).toBeGreaterThan(1);
    const { client, spy } = await spied({ schedule: 'tick' });
    const pong = client.ping();
    expect(spy.writes).toHaveLength(0);
    await new Promise(process.nextTick);
    expect(spy.writes).toHaveLength(1);
    expect(await pong).toBe('PONG');
  });

  it('coalescer.flush() sends at once', async () => {
    const { client, spy } = await spied();
    const pong = client.ping();
    client.coalescer.flush();
    expect(spy.writes).toHaveLength(1);
    await pong;
    client.coalescer.flush();
    await new Promise(setImmediate);
    expect(spy.writes).toHaveLength(1);
    expect(client.coalescer.stats().flushReasons.manual).toBe(1);
  });
});

describe('a slow turn', () => {
  const compute = () => {
    for (const until = performance.now() + 1; performance.now() < until; );
  };
  const scripted = async (options?: CoalesceOptions) => {
    const { client, spy } = await spied(options);
    client.defineCommand('batchEcho', { numberOfKeys: 0, lua: 'return ARGV[1]' });
    const { batchEcho } = client as unknown as { batchEcho(text: string): Promise<string> };
    const echo = batchEcho.bind(client);
    await echo('loaded');
    spy.clear();
    return { client, spy, echo };
  };

  it('sends its scripts while it lasts, since Redis takes its time for them', async () => {
    const { client, spy, echo } = await scripted();
    const before = client.coalescer.stats().flushReasons.script;
    const replies = ['a', 'b', 'c'].map((text) => {
      const reply = echo(text);
      compute();
      return reply;
    });
    const { length } = spy.writes;
    expect(length).toBeGreaterThan(0);
    replies.push(client.echo('d'));
    expect(spy.writes).toHaveLength(length);
    expect(await Promise.all(replies)).toEqual(['a', 'b', 'c', 'd']);
    expect(spy.writes).toHaveLength(length + 1);
    expect(client.coalescer.stats().flushReasons.script - before).toBe(length);
  });

  it('sends other commands at its end', async () => {
    const { client, spy } = await spied();
    const replies = ['a', 'b', 'c'].map((text) => {
      const reply = client.echo(text);
      compute();
      return reply;
    });
    expect(spy.writes).toHaveLength(0);
    expect(await Promise.all(replies)).toEqual(['a', 'b', 'c']);
    expect(spy.writes).toHaveLength(1);
  });

  it('sends its scripts when a function of the user says so', async () => {
    const { spy, echo } = await scripted({ schedule: (flush) => void setImmediate(flush) });
    const replies = ['a', 'b'].map((text) => {
      const reply = echo(text);
      compute();
      return reply;
    });
    expect(await Promise.all(replies)).toEqual(['a', 'b']);
    expect(spy.writes).toHaveLength(1);
  });
});

describe('maxBatchSize', () => {
  it('flushes when the command that reaches it is issued, of whatever kind', async () => {
    const { client, spy } = await spied({ maxBatchSize: 3 });
    const replies = [client.echo('a'), cold(client, 'ECHO', 'b')];
    expect(spy.writes).toHaveLength(0);
    replies.push(client.echo('c'));
    expect(spy.writes).toHaveLength(1);
    for (let index = 0; index < 7; index += 1) replies.push(client.echo(String(index)));
    expect(spy.writes).toHaveLength(3);
    expect(await Promise.all(replies)).toEqual(['a', 'b', 'c', '0', '1', '2', '3', '4', '5', '6']);
    expect(spy.writes).toHaveLength(4);
    expect(client.coalescer.stats().flushReasons.size).toBe(3);
  });

  it('maxBatchSize: 1 makes one write per command', async () => {
    const { client, spy } = await spied({ maxBatchSize: 1 });
    await Promise.all([client.echo('a'), client.echo('b'), cold(client, 'ECHO', 'c')]);
    expect(spy.writes).toHaveLength(3);
  });
});

describe('maxBatchBytes', () => {
  it('flushes when the command that reaches it is issued; 64 bytes of each do not count', async () => {
    const { client, spy } = await spied({ maxBatchBytes: 1_000 });
    const replies = [client.echo('a'), client.echo('b'.repeat(600))];
    expect(spy.writes).toHaveLength(0);
    replies.push(client.echo('c'.repeat(600)));
    expect(spy.writes).toHaveLength(1);
    for (let index = 0; index < 100; index += 1) replies.push(client.echo('d'.repeat(40)));
    expect((await Promise.all(replies)).map((value) => value[0]).join('')).toBe(`abc${'d'.repeat(100)}`);
    expect(spy.writes).toHaveLength(2);
    expect(client.coalescer.stats().flushReasons.bytes).toBe(1);
  });

  it('by default, values of 8 KiB do not wait for the end of the turn', async () => {
    const { client, spy } = await spied();
    const value = 'x'.repeat(8 * 1_024);
    const replies = [1, 2, 3].map(() => client.echo(value));
    expect(spy.writes.length).toBeGreaterThan(0);
    expect(await Promise.all(replies)).toEqual([value, value, value]);
    expect(client.coalescer.stats().flushReasons.bytes).toBe(3);
  });

  it('a write of the host that is larger than a batch follows the pending bytes, unchanged', async () => {
    const { client, spy } = await spied({ maxBatchBytes: 1_000 });
    const replies = [client.echo('a'), cold(client, 'ECHO', 'b'.repeat(5_000)), client.echo('c')];
    expect((await Promise.all(replies)).map((value) => String(value)[0])).toEqual(['a', 'b', 'c']);
    expect(commandNames(spy.text())).toEqual(['echo', 'echo', 'echo']);
  });
});
