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

  it('come together, in one callback, from the fifth callback of a turn on', async () => {
    for (let request = 2; request <= 4; request += 1) {
      await nextCallback();
      expect(late()).toBe(false);
    }
    const order: string[] = [];
    const requests = [5, 6, 7, 8, 9, 10].map(async (request) => {
      await nextCallback();
      expect(late()).toBe(true);
      order.push(`asks ${request}`);
      await endOfTurn();
      order.push(`answered ${request}`);
      expect(late()).toBe(false);
      if (request === 5) process.nextTick(() => order.push('next tick'));
    });
    await Promise.all(requests);
    const all = [5, 6, 7, 8, 9, 10];
    expect(order).toEqual([...all.map((each) => `asks ${each}`), ...all.map((each) => `answered ${each}`)]);
    await nextCallback();
    expect(order.at(-1)).toBe('next tick');
  });

  it.each([1, 2])('that wait come at the end of the turn and not before (%i)', async () => {
    let ended = false;
    void endOfTurn().then(() => {
      ended = true;
    });
    await nextCallback();
    expect(ended).toBe(false);
    await turn();
    expect(ended).toBe(true);
  });
});
