import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { answersWait, endOfTurn, turnTime } from '../../src/util/turn.js';

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
    found ||= answersWait();
  }
  return found;
}

const nextCallback = () => new Promise<void>((resolve) => process.nextTick(resolve));

describe('answers without I/O', () => {
  beforeEach(async () => {
    await turn();
    expect(late()).toBe(false);
  });

  it('wait for the end of the turn once a callback has awaited them for more than a millisecond', async () => {
    clock.time += 1.1;
    expect(late()).toBe(true);
    await turn();
    expect(late()).toBe(false);
  });

  it('do not wait because the callback before took its time', async () => {
    for (let request = 0; request < 3; request += 1) {
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

  it('come together from the fifth callback of a turn on, and at once in a callback that has waited', async () => {
    for (let request = 2; request <= 4; request += 1) {
      await nextCallback();
      expect(late()).toBe(false);
    }
    const waited: boolean[] = [];
    const requests = Array.from({ length: 10 }, async () => {
      await nextCallback();
      expect(late()).toBe(true);
      await endOfTurn();
      waited.push(late());
    });
    await Promise.all(requests);
    expect(waited).toEqual(requests.map(() => false));
    // They count among the callbacks of the turn that follows.
    await nextCallback();
    expect(late()).toBe(true);
  });
});
