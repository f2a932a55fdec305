import { describe, expect, it } from 'vitest';
import { AdaptivePolicy, GATHER, type LoopState } from '../../src/connection/flush-policy.js';

/** A policy under a clock and a loop that the test sets. */
function played({ waits = true } = {}) {
  const time = { now: 0 };
  const loop: LoopState & { turns: number[] } = { waits, turns: [], turnEnded: (now) => void loop.turns.push(now) };
  return { policy: new AdaptivePolicy(loop, () => time.now), time, loop };
}

/** How the commands of one turn leave, each `work` units: the sizes of the parts, the last one at the end of the turn. */
function partsOf(
  policy: AdaptivePolicy,
  time: { now: number },
  commands: number,
  work = 1,
  msPerCommand = 0,
): number[] {
  const parts: number[] = [];
  let open = 0;
  let sent = 0;
  let openedAt = 0;
  for (let command = 0; command < commands; command += 1) {
    if (open === 0) openedAt = time.now;
    open += 1;
    if (policy.sendsNow(open, open * work, sent, openedAt)) {
      parts.push(open);
      sent += open;
      open = 0;
    }
    time.now += msPerCommand;
  }
  return open > 0 ? [...parts, open] : parts;
}

describe('the adaptive flush policy, where the loop waits', () => {
  it('sends a lone command at once', () => {
    const { policy, time } = played();
    expect(partsOf(policy, time, 1)).toEqual([1]);
  });

  it('sends the first three commands one by one, as a plain client, and then parts of 16', () => {
    const { policy, time } = played();
    expect(partsOf(policy, time, 8)).toEqual([1, 1, 1, 5]);
    expect(partsOf(policy, time, 60)).toEqual([1, 1, 1, 16, 16, 16, 9]);
  });

  it('counts work, not commands: commands that cost a server 8 GETs each leave in parts of two', () => {
    const { policy, time } = played();
    expect(partsOf(policy, time, 9, 8)).toEqual([1, 1, 1, 2, 2, 2]);
  });

  it('sends commands that have waited for 20 µs in a long turn, and reads the clock every fourth command', () => {
    const { policy, time } = played();
    expect(partsOf(policy, time, 11, 1, 0.01)).toEqual([1, 1, 1, 4, 4]);
  });
});

describe('the adaptive flush policy, where the loop is saturated', () => {
  it('gathers to the end of the turn', () => {
    const { policy, time } = played({ waits: false });
    expect(partsOf(policy, time, 500, 8, 1)).toEqual([500]);
  });

  it('tells the loop watch of each turn', () => {
    const { policy, loop } = played();
    policy.turnEnded(1);
    policy.turnEnded(2);
    expect(loop.turns).toEqual([1, 2]);
  });
});

describe("the policy of 'immediate'", () => {
  it('never sends before the schedule says so', () => {
    expect(GATHER.sendsNow(999, 1_000_000, 0, 0)).toBe(false);
  });
});
