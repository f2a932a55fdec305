import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { turnIsLate, turnTime } from '../../src/util/turn.js';

/** Milliseconds. */
const clock = vi.hoisted(() => ({ time: 0 }));
vi.mock('../../src/util/clock.js', async (original) => ({
  ...(await original<typeof import('../../src/util/clock.js')>()),
  now: () => clock.time,
}));

/** Answers that are asked for until the clock is read again. */
const ANSWERS = 16;

/** Whether one of the next answers is told to wait. */
function late(): boolean {
  let found = false;
  for (let answer = 0; answer < ANSWERS; answer += 1) {
    turnTime();
    found ||= turnIsLate();
  }
  return found;
}

const nextCallback = () => new Promise<void>((resolve) => process.nextTick(resolve));

describe('answers without I/O', () => {
  beforeEach(async () => {
    await turn();
    expect(late()).toBe(false);
  });

  it('wait for the next turn once a callback has awaited them for more than a millisecond', async () => {
    clock.time += 1.1;
    expect(late()).toBe(true);
    await turn();
    expect(late()).toBe(false);
  });

  it('do not wait because earlier callbacks of the turn took their time', async () => {
    for (let request = 0; request < 5; request += 1) {
      clock.time += 1.1;
      await nextCallback();
      expect(late()).toBe(false);
    }
  });

  it('wait when the callbacks of a turn have taken more than ten milliseconds', async () => {
    clock.time += 10.1;
    await nextCallback();
    expect(late()).toBe(true);
    await turn();
    expect(late()).toBe(false);
  });
});
