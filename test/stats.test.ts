import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Stats } from '../src/stats.js';
import { coalescedFake } from './helpers/fake-connection.js';

describe('stats', () => {
  it.each([
    [1, '1'],
    [2, '2'],
    [3, '4'],
    [4, '4'],
    [5, '8'],
    [200, '256'],
    [1000, '1024'],
    [1024, '1024'],
    [1025, '2048'],
    [1_000_000, '1048576'],
  ])('counts a batch of %i under %s', (commands, bucket) => {
    const stats = new Stats();
    stats.flushed('schedule', commands, 10, 0);
    stats.flushed('size', commands, 5, 0);
    const { batches, batchSizes, bytesWritten, flushReasons } = stats.snapshot('fast');
    expect({ batches, batchSizes, bytesWritten }).toEqual({
      batches: 2,
      batchSizes: { [bucket]: 2 },
      bytesWritten: 15,
    });
    expect(flushReasons).toMatchObject({ schedule: 1, size: 1, bytes: 0 });
  });

  it('counts a million-command batch without losing it', () => {
    const stats = new Stats();
    stats.flushed('large', 2 ** 31, 1, 0);
    expect(stats.snapshot('fast').batchSizes).toEqual({ [String(2 ** 31)]: 1 });
  });

  it('counts how long batches waited, in microseconds', () => {
    const stats = new Stats();
    for (const milliseconds of [0, 0.0004, 0.002, 0.0025, 1.5]) stats.flushed('schedule', 1, 1, milliseconds);
    const { flushWaits, flushWaitTotal } = stats.snapshot('fast');
    expect(flushWaits).toEqual({ 1: 2, 2: 1, 4: 1, 2048: 1 });
    expect(flushWaitTotal).toBeCloseTo(1.5049);
  });

  it('returns copies that do not change', () => {
    const stats = new Stats();
    const before = stats.snapshot('fast', 1, 2);
    stats.commands += 1;
    stats.countFallback('traced');
    stats.flushed('exit', 1, 1, 0);
    expect(before).toMatchObject({ commands: 0, batches: 0, inFlight: 1, queued: 2, batchSizes: {} });
    expect(before.flushReasons.exit).toBe(0);
    expect(before.fallbacks.traced).toBe(0);
    (before.flushReasons as Record<string, number>).exit = 99;
    expect(stats.snapshot('fast').flushReasons.exit).toBe(1);
    expect(new Stats().snapshot('fast').flushReasons.exit).toBe(0);
  });

  it('is plain data', () => {
    const snapshot = new Stats().snapshot('fast');
    expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot);
  });

  it('counts each command, batch, byte and reply of a connection', async () => {
    const { client, socket } = await coalescedFake({ schedule: 'immediate', maxInFlight: 4 });
    const before = client.coalescer.stats();
    const answers = [client.get('a'), client.get('b'), client.call('info'), client.incr('c'), client.get('waits')];
    expect(client.coalescer.stats()).toMatchObject({ inFlight: 5, queued: 1, batches: before.batches });
    await turn();
    expect(client.coalescer.stats()).toMatchObject({
      commands: before.commands + 5,
      fastCommands: 4,
      batches: before.batches + 1,
      bytesWritten: socket.written.length,
      queued: 1,
      replies: { fast: 0, fallback: 0 },
    });
    socket.feed('$1\r\n1\r\n$1\r\n2\r\n');
    expect(client.coalescer.stats()).toMatchObject({ inFlight: 3, queued: 0, replies: { fast: 2, fallback: 0 } });
    expect(client.coalescer.stats().flushReasons.capacity).toBe(1);
    socket.feed('+info\r\n:1\r\n-ERR no\r\n');
    expect(await Promise.allSettled(answers)).toMatchObject([
      { value: '1' },
      { value: '2' },
      { value: 'info' },
      { value: 1 },
      { reason: { message: 'ERR no' } },
    ]);
    expect(client.coalescer.stats()).toMatchObject({ inFlight: 0, queued: 0, replies: { fast: 3, fallback: 2 } });
    expect(client.coalescer.stats().bytesWritten).toBe(socket.written.length);
    client.disconnect();
  });

  it('counts the bytes of text that is not ASCII, of calls that may be aborted too', async () => {
    const { client, socket } = await coalescedFake({ schedule: 'immediate' });
    const { signal } = new AbortController();
    void client.coalescer
      .withOptions({ signal })
      .set('zwierzę', 'żółw')
      .catch(() => {});
    void client.set('zwierzę', 'żółw').catch(() => {});
    await turn();
    expect(socket.written.length).toBeGreaterThan(0);
    expect(client.coalescer.stats().bytesWritten).toBe(socket.written.length);
    client.disconnect();
  });

  it('counts by reason the commands that were left to the host', async () => {
    const { client, socket } = await coalescedFake({});
    const answers = [
      client.get('a'),
      client.set('b', 1n as unknown as number),
      client.set('c', null as unknown as string),
    ];
    await turn();
    socket.feed('$1\r\n1\r\n+OK\r\n+OK\r\n');
    await Promise.all(answers);
    expect(client.coalescer.stats().fallbacks).toMatchObject({ arguments: 2, connection: 0, patched: 0 });
    client.disconnect();
  });
});
