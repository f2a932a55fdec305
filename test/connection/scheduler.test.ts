import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Schedule } from '../../src/options.js';
import { scheduleFunction } from '../../src/util/schedule.js';
import { coalescedFake } from '../helpers/fake-connection.js';
import { ticked } from '../helpers/hosts.js';

describe('schedule', () => {
  afterEach(() => {
    vi.useRealTimers();
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

describe('schedule of a connection', () => {
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
});
