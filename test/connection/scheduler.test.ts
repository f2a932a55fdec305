import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Schedule } from '../../src/options.js';
import { scheduleFunction } from '../../src/util/schedule.js';
import { coalescedFake } from '../helpers/fake-connection.js';
import { ticked } from '../helpers/hosts.js';

describe('schedule', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('immediate: flushes after the I/O callbacks of this turn', async () => {
    const order: string[] = [];
    scheduleFunction('immediate')(() => order.push('flush'));
    process.nextTick(() => order.push('nextTick'));
    expect(order).toEqual([]);
    await turn();
    expect(order).toEqual(['nextTick', 'flush']);
  });

  it('tick: flushes when the running callback has ended', async () => {
    const order: string[] = [];
    await turn();
    setImmediate(() => order.push('immediate'));
    scheduleFunction('tick')(() => order.push('flush'));
    expect(order).toEqual([]);
    await turn();
    expect(order).toEqual(['flush', 'immediate']);
  });

  it('a function: called once the command is sent, flushes when it calls the flush', async () => {
    const flush = vi.fn();
    let kept = (): void => {};
    scheduleFunction((given) => {
      kept = given;
    })(flush);
    kept();
    await ticked();
    expect(flush).not.toHaveBeenCalled();
    kept();
    expect(flush).toHaveBeenCalledOnce();
  });

  it('a function that throws: flushes at once, and the error surfaces', async () => {
    const error = new Error('from the schedule');
    const surfaced = nextUncaught();
    const flush = vi.fn();
    scheduleFunction(() => {
      throw error;
    })(flush);
    expect(await surfaced).toBe(error);
    expect(flush).toHaveBeenCalledOnce();
  });

  it.each<Schedule>(['immediate', 'tick'])('%s: runs under fake timers too', async (schedule) => {
    vi.useFakeTimers({ toFake: ['setImmediate', 'setTimeout', 'queueMicrotask'] });
    const flush = vi.fn();
    scheduleFunction(schedule)(flush);
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
    await turn();
    expect(flush).toHaveBeenCalledOnce();
  });
});

/** A command whose caller does not care what becomes of it. */
function ask(client: { get(key: string): Promise<unknown> }, key: string): void {
  client.get(key).catch(() => {});
}

/** The next uncaught exception, kept from vitest, which would report it. */
function nextUncaught(): Promise<unknown> {
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  return new Promise((resolve) => {
    process.once('uncaughtException', (error) => {
      for (const listener of listeners) process.on('uncaughtException', listener);
      resolve(error);
    });
  });
}

describe('schedule of a connection', () => {
  it('asks for one flush per batch', async () => {
    const flushes: (() => void)[] = [];
    const { client, socket } = await coalescedFake({ schedule: (flush) => void flushes.push(flush) });
    ask(client, 'a');
    ask(client, 'b');
    await sleep(5);
    expect([flushes.length, socket.writes.length]).toEqual([1, 0]);
    flushes[0]?.();
    expect(socket.writes.length).toBe(1);
    flushes[0]?.();
    expect(socket.writes.length).toBe(1);
    ask(client, 'c');
    await ticked();
    expect(flushes.length).toBe(2);
    flushes[1]?.();
    expect(socket.writes.length).toBe(2);
    client.disconnect();
  });

  it('a manual flush leaves nothing for the scheduled flush, which does no harm', async () => {
    const flushes: (() => void)[] = [];
    const { client, socket } = await coalescedFake({ schedule: (flush) => void flushes.push(flush) });
    ask(client, 'a');
    client.coalescer.flush();
    expect(socket.writes.length).toBe(1);
    flushes[0]?.();
    expect(socket.writes.length).toBe(1);
    ask(client, 'b');
    await ticked();
    flushes.at(-1)?.();
    expect(socket.writes.length).toBe(2);
    expect(client.coalescer.stats().flushReasons).toMatchObject({ manual: 1, schedule: 1 });
    client.disconnect();
  });

  it('a flush that comes after the end of the connection does nothing', async () => {
    const flushes: (() => void)[] = [];
    const { client, socket } = await coalescedFake({ schedule: (flush) => void flushes.push(flush) });
    client.get('a').catch(() => {});
    socket.destroy();
    const writes = socket.writes.length;
    await turn();
    for (const flush of flushes) flush();
    expect(socket.writes.length).toBe(writes);
    client.disconnect();
  });

  it('a schedule that throws loses no command and leaves no caller without a reply', async () => {
    const surfaced = nextUncaught();
    const { client, socket } = await coalescedFake({
      schedule: () => {
        throw new Error('broken schedule');
      },
    });
    const value = client.get('a');
    await ticked();
    expect(socket.written.toString()).toBe('*2\r\n$3\r\nget\r\n$1\r\na\r\n');
    socket.feed(Buffer.from('$1\r\nx\r\n'));
    expect(await value).toBe('x');
    expect(await surfaced).toMatchObject({ message: 'broken schedule' });
    client.disconnect();
  });
});
