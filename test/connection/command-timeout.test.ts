import { spawnSync } from 'node:child_process';
import { setImmediate as turn } from 'node:timers/promises';
import type { RedisOptions } from 'ioredis';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { connectAs, expectAsPlain, type Kind } from '../helpers/beside.js';
import { cold } from '../helpers/cold.js';
import {
  type Client,
  type CoalescedClient,
  HOSTS,
  ioredis6,
  LONG_ENOUGH,
  outcomes,
  outcomesWithin,
  ready,
  sleep,
  until,
} from '../helpers/hosts.js';
import { type FaultyProxy, startProxy } from '../helpers/proxy.js';
import { redisUrl } from '../helpers/redis.js';

/** A number of milliseconds that no other timer has. */
const MS = 87;
/** Another one, for commands that are answered, however busy the machine is. */
const LONG_MS = 30_087;

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function stalled(
  host: (typeof HOSTS)[number],
  kind: Kind,
  options: RedisOptions = {},
): Promise<{ client: Client; proxy: FaultyProxy }> {
  const proxy = await startProxy(redisUrl());
  const client = await connectAs(kind, host, proxy.url, { commandTimeout: MS, ...options });
  proxy.stall();
  return { client, proxy };
}

describe.each(HOSTS)('$name: commandTimeout', (host) => {
  it('rejects with the error of a plain client', async () => {
    const plain = await expectAsPlain(async (kind) => {
      const { client } = await stalled(host, kind);
      return outcomes([client.get('k'), client.echo('é'), cold(client, 'ECHO', 'cold'), client.getBuffer('k')]);
    });
    expect(plain[0]).toMatchObject({ error: 'Error/Error: Command timed out' });
  });

  it('drops a late reply, and the next callers get their own', async () => {
    const { client, proxy } = await stalled(host, 'coalesced');
    const late = await outcomes([client.echo('late 1'), client.echo('late 2'), cold(client, 'ECHO', 'late 3')]);
    expect(late.every((outcome) => 'error' in (outcome as object))).toBe(true);
    client.options.commandTimeout = LONG_ENOUGH;
    const next = [client.echo('own 1'), cold(client, 'ECHO', 'own 2')];
    proxy.resume();
    expect(await Promise.all(next)).toEqual(['own 1', 'own 2']);
    expect(await client.echo('own 3')).toBe('own 3');
    expect(client.status).toBe('ready');
  });

  it('keeps running over a reconnect', async () => {
    await expectAsPlain(async (kind) => {
      const { client, proxy } = await stalled(host, kind, { commandTimeout: 300, retryStrategy: () => 10 });
      const start = performance.now();
      const replies = [client.echo('a'), client.echo('b')];
      await until(() => proxy.received().includes('echo'), 'the commands to be in flight');
      // The new connection does not answer either, so the commands are in flight or queued when their time is up.
      proxy.reset();
      let isLate = false;
      // Timers of the same time run in the order in which they were started; those that were held up, in an immediate.
      const late = setTimeout(() => setImmediate(() => (isLate = true)), 300);
      const settled = await outcomes(replies);
      expect(performance.now() - start).toBeGreaterThan(280);
      expect(isLate).toBe(false);
      clearTimeout(late);
      return settled;
    });
  });

  it('is cleared when the command is answered after a reconnect', async () => {
    const { client, proxy } = await stalled(host, 'coalesced', { commandTimeout: LONG_MS, retryStrategy: () => 10 });
    const set = vi.spyOn(globalThis, 'setTimeout');
    const clear = vi.spyOn(globalThis, 'clearTimeout');
    const replies = [client.echo('a'), client.echo('b')];
    await until(() => proxy.received().includes('echo'), 'the commands to be in flight');
    proxy.reset();
    await until(() => client.status !== 'ready', 'the connection to be lost');
    proxy.resume();
    expect(await Promise.all(replies)).toEqual(['a', 'b']);
    await turn();
    const timers = set.mock.results
      .filter((_, index) => set.mock.calls[index]?.[1] === LONG_MS)
      .map(({ value }) => value);
    const cleared = clear.mock.calls.map(([timer]) => timer);
    expect(timers.length).toBeGreaterThan(0);
    expect(timers.filter((timer) => !cleared.includes(timer))).toEqual([]);
  });
});

describe('the timers of commandTimeout', () => {
  const ready6 = async (): Promise<CoalescedClient> =>
    ready(ioredis6.createCoalesced(redisUrl(), { commandTimeout: LONG_MS }));

  it('a batch has one timer', async () => {
    const client = await ready6();
    const set = vi.spyOn(globalThis, 'setTimeout');
    const count = () => set.mock.calls.filter(([, ms]) => ms === LONG_MS).length;
    let before = 0;
    for (let batch = 1; batch <= 3; batch += 1) {
      const start = performance.now();
      await Promise.all(Array.from({ length: 100 }, (_, index) => client.echo(String(index))));
      // And one more for each whole millisecond that passed on a slow machine: 1.2 ms can touch three of them.
      expect(count() - before).toBeGreaterThanOrEqual(1);
      expect(count() - before).toBeLessThanOrEqual(1 + Math.ceil(performance.now() - start));
      before = count();
      await turn();
    }
  });

  it('commands that follow at once share a timer for a millisecond', async () => {
    const client = await ready6();
    const set = vi.spyOn(globalThis, 'setTimeout');
    const start = performance.now();
    for (let batch = 1; batch <= 200; batch += 1) await client.echo(String(batch));
    const timers = set.mock.calls.filter(([, ms]) => ms === LONG_MS).length;
    expect(timers).toBeLessThanOrEqual(1 + Math.ceil(performance.now() - start));
  });

  it("a command's time begins when it is issued, behind others that were answered", async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(ioredis6.createCoalesced(proxy.url, { commandTimeout: 1_500 }));
    for (const until = performance.now() + 200; performance.now() < until; ) await client.echo('answered');
    const sent = performance.now();
    proxy.stall();
    await expect(client.echo('stalled')).rejects.toThrow('Command timed out');
    expect(performance.now() - sent).toBeGreaterThan(1_490);
  });

  it('timers are cleared one turn after all commands have settled', async () => {
    const client = await ready6();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const before = vi.getTimerCount();
    const replies = Array.from({ length: 50 }, (_, index) =>
      index % 5 === 0 ? cold(client, 'ECHO', 'x') : client.echo('x'),
    );
    expect(vi.getTimerCount()).toBeGreaterThan(before);
    await Promise.all([...replies, client.incr('\0not a number').catch(() => {})]);
    await client.del('\0not a number');
    await turn();
    expect(vi.getTimerCount()).toBe(before);
  });

  it('timers are cleared when the connection has ended', async () => {
    const { client } = await stalled(ioredis6, 'coalesced');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const before = vi.getTimerCount();
    const replies = [client.echo('a'), client.echo('b')];
    client.disconnect();
    await outcomes(replies);
    await turn();
    expect(vi.getTimerCount()).toBe(before);
  });

  it('timers follow a fake clock, as those of a plain client do', async () => {
    await expectAsPlain(async (kind) => {
      const { client } = await stalled(ioredis6, kind);
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      let settled = 0;
      const replies = [client.echo('a'), client.echo('b')];
      for (const reply of replies) reply.catch(() => (settled += 1));
      await sleep(MS * 2);
      expect(settled).toBe(0);
      vi.advanceTimersByTime(MS - 1);
      await sleep(0);
      expect(settled).toBe(0);
      vi.advanceTimersByTime(1);
      await sleep(0);
      expect(settled).toBe(2);
      vi.useRealTimers();
      return outcomes(replies);
    });
  });

  it('a fake clock that is turned between two commands gives each its own time, as in a plain client', async () => {
    await expectAsPlain(async (kind) => {
      const { client } = await stalled(ioredis6, kind);
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
      let passed = 0;
      const failedAt: Promise<unknown>[] = [];
      // All in one turn: mostly within a millisecond of the real clock.
      for (; passed < 80; passed += 20) {
        failedAt.push(client.echo('a').catch(() => passed));
        vi.advanceTimersByTime(20);
      }
      for (; passed < MS + 80; passed += 1) {
        await sleep(0);
        vi.advanceTimersByTime(1);
      }
      vi.useRealTimers();
      return Promise.all(failedAt);
    });
  });

  it('timers do not hold up the flush when all clocks are fake', async () => {
    const client = await ready6();
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate', 'setInterval', 'Date'],
    });
    expect(await outcomesWithin(LONG_ENOUGH, [client.echo('sent')])).toEqual([{ value: 'sent' }]);
  });

  it('commands with different timeouts have a timer each', async () => {
    const { client } = await stalled(ioredis6, 'coalesced', { commandTimeout: 40 });
    const start = performance.now();
    const order: string[] = [];
    const at = (name: string, reply: Promise<unknown>) =>
      reply.catch(() => {
        order.push(name);
        return performance.now() - start;
      });
    const short = at('short', client.echo('a'));
    client.options.commandTimeout = 1_500;
    const long = at('long', client.echo('b'));
    client.options.commandTimeout = 40;
    const shortAgain = at('short again', client.echo('c'));
    await Promise.all([short, shortAgain]);
    expect(await long).toBeGreaterThan(1_480);
    expect(order).toEqual(['short', 'short again', 'long']);
  });

  it('commands time out in the order of their timers, when the loop is blocked for too long for some', async () => {
    const { client } = await stalled(ioredis6, 'coalesced', { commandTimeout: 40 });
    const order: number[] = [];
    const replies: Promise<unknown>[] = [];
    const start = performance.now();
    for (let number = 0; number < 8; number += 1) {
      client.options.commandTimeout = 40;
      replies.push(client.echo('a').catch(() => order.push(number)));
      // Between others, each has a timer of its own, a millisecond apart: some are late, and the last ones are not.
      client.options.commandTimeout = 60_000;
      client.echo('b').catch(() => {});
      for (const until = performance.now() + 1.1; performance.now() < until; );
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
    while (performance.now() - start < 45);
    await Promise.all(replies);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('timers run for the backlog of maxInFlight too, whose late replies are dropped', async () => {
    const proxy = await startProxy(redisUrl());
    const client = await ready(ioredis6.createCoalesced(proxy.url, { commandTimeout: MS }, { maxInFlight: 1 }));
    proxy.stall();
    const late = await outcomes([client.echo('1'), client.echo('2'), cold(client, 'ECHO', '3')]);
    expect(late).toHaveLength(3);
    expect(late.every((outcome) => 'error' in (outcome as object))).toBe(true);
    client.options.commandTimeout = LONG_ENOUGH;
    const own = client.echo('own');
    proxy.resume();
    expect(await own).toBe('own');
  });
});

describe('a loop that is blocked for longer than commandTimeout', () => {
  /** Blocks this thread until the server has answered all that it had been sent, and the timeout has passed. */
  function block(url: string, ms: number): void {
    const start = performance.now();
    const { hostname, port } = new URL(url);
    const ping = `require('node:net').connect(${port}, '${hostname}').end('PING\\r\\n').resume()`;
    expect(spawnSync(process.execPath, ['-e', ping]).status).toBe(0);
    while (performance.now() - start < ms * 2);
  }

  it('replies that have come meanwhile are read before commands time out', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), { commandTimeout: MS }));
    for (let round = 0; round < 3; round += 1) {
      const replies = [client.echo('a'), client.echo('b')];
      client.coalescer.flush();
      block(redisUrl(), MS);
      expect(await outcomes(replies)).toEqual([{ value: 'a' }, { value: 'b' }]);
    }
  });

  it('commands time out that are not answered, on the old connection and on a new one', async () => {
    for (const reset of [false, true]) {
      const { client, proxy } = await stalled(ioredis6, 'coalesced', { retryStrategy: () => 1 });
      const replies = [client.echo('a'), client.echo('b')];
      (client as CoalescedClient).coalescer.flush();
      if (reset) proxy.reset();
      block(redisUrl(), MS);
      for (const outcome of await outcomes(replies)) {
        expect(outcome).toMatchObject({ error: 'Error/Error: Command timed out' });
      }
      proxy.resume();
      client.options.commandTimeout = LONG_ENOUGH;
      expect(await client.echo('own')).toBe('own');
    }
  });
});
