/** Batches may wait for hours: a process that sleeps, a schedule function that takes its time. */
import { describe, expect, it } from 'vitest';
import { Stats } from '../../src/stats.js';

const MINUTE = 60_000;

describe('the histogram of waits', () => {
  it.each([
    [35 * MINUTE, 2 ** 31],
    [36 * MINUTE, 2 ** 31],
    [71 * MINUTE, 2 ** 31],
    [72 * MINUTE, 2 ** 31],
    [143 * MINUTE, 2 ** 31],
    [24 * 60 * MINUTE, 2 ** 31],
    [365 * 24 * 60 * MINUTE, 2 ** 31],
  ])('counts %d ms in its last bucket', (wait, bucket) => {
    const stats = new Stats();
    stats.flushed('schedule', 1, 1, wait);
    expect(stats.snapshot('fast').flushWaits).toEqual({ [String(bucket)]: 1 });
  });
});
