import { describe, expect, it } from 'vitest';
import { AdaptivePolicy, GATHER } from '../../src/connection/flush-policy.js';
import type { Overlap, OverlapState, TurnSize } from '../../src/connection/overlap-trial.js';

/** A policy under a clock and a verdict on overlap that the test sets. */
function played(overlap: Overlap = 'parts') {
  const time = { now: 0 };
  const turns: (readonly [now: number, work: number, size: TurnSize])[] = [];
  const trial: OverlapState = {
    overlap,
    polls: false,
    turnEnded: (now, work, _, size) => void turns.push([now, work, size]),
  };
  return { policy: new AdaptivePolicy(trial, () => time.now), time, trial, turns };
}

/**
 * How the commands of one turn leave, each `work` units: the sizes of the parts, the last one at the end of the turn.
 * `awaiting` commands of earlier turns await their reply.
 */
function partsOf(
  policy: AdaptivePolicy,
  time: { now: number },
  commands: number,
  work = 1,
  msPerCommand = 0,
  awaiting = 0,
): number[] {
  const parts: number[] = [];
  let open = 0;
  let sent = awaiting;
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

/** Has the policy see turns of that size. */
function see(policy: AdaptivePolicy, time: { now: number }, commands: number, work = 1): void {
  for (let turn = 0; turn < 100; turn += 1) {
    partsOf(policy, time, commands, work);
    policy.turnEnded(0);
  }
}

describe('the adaptive flush policy, where overlap pays', () => {
  it('sends a lone command at once', () => {
    const { policy, time } = played();
    expect(partsOf(policy, time, 1)).toEqual([1]);
  });

  it('sends the first three commands one by one, as a plain client, and then parts of 8', () => {
    const { policy, time } = played();
    expect(partsOf(policy, time, 8)).toEqual([1, 1, 1, 5]);
    expect(partsOf(policy, time, 30)).toEqual([1, 1, 1, 8, 8, 8, 3]);
  });

  it('counts work, not commands: commands that cost a server 4 GETs each leave in parts of two', () => {
    const { policy, time } = played();
    expect(partsOf(policy, time, 9, 4)).toEqual([1, 1, 1, 2, 2, 2]);
  });

  it.each([
    [10, [8, 2]],
    [24, [8, 8, 8]],
    [40, [14, 14, 12]],
    [200, [67, 67, 66]],
    [500, [167, 167, 166]],
    [2000, [512, 512, 512, 464]],
  ])(
    'sends turns of %i commands in about three parts, once it has seen some, and none by itself',
    (commands, parts) => {
      const { policy, time } = played();
      see(policy, time, commands);
      expect(partsOf(policy, time, commands)).toEqual(parts);
    },
  );

  it.each([
    [8, 5, [1, 1, 1, 2, 2, 1]],
    [3, 17, [1, 1, 1]],
    [9, 5, [3, 3, 3]],
    [8, 16, [3, 3, 2]],
  ])('sends turns of %i commands of %i units as %j: a few longer values are a small turn', (commands, work, parts) => {
    const { policy, time } = played();
    see(policy, time, commands, work);
    expect(partsOf(policy, time, commands, work)).toEqual(parts);
  });

  it('forgets large turns: small ones are sent as from a plain client again', () => {
    const { policy, time } = played();
    for (const [commands, turns] of [
      [200, 40],
      [2, 30],
    ] as const) {
      for (let turn = 0; turn < turns; turn += 1) {
        partsOf(policy, time, commands);
        policy.turnEnded(0);
      }
    }
    expect(partsOf(policy, time, 2)).toEqual([1, 1]);
  });

  it.each([
    [200, 1, [67, 67, 66]],
    [12, 5, [4, 4, 4]],
  ])('estimates turns of %i commands of %i units, whether parts are sent or not', (commands, work, parts) => {
    const { policy, time, trial } = played();
    Object.assign(trial, { overlap: 'none' });
    see(policy, time, commands, work);
    Object.assign(trial, { overlap: 'parts' });
    expect(partsOf(policy, time, commands, work)).toEqual(parts);
  });

  it('sends commands that have waited for 20 µs in a long turn, and reads the clock every fourth command', () => {
    const { policy, time } = played();
    expect(partsOf(policy, time, 11, 1, 0.01)).toEqual([1, 1, 1, 4, 4]);
  });
});

describe('the adaptive flush policy, where it pays to wake the server first', () => {
  it.each([
    [10, [1, 9]],
    [40, [1, 39]],
    [50, [1, 25, 24]],
    [150, [1, 75, 74]],
    [200, [1, 67, 67, 65]],
    [380, [1, 127, 127, 125]],
    [500, [167, 167, 166]],
  ])('wakes an idle server with the first command of a turn of %i', (commands, parts) => {
    const { policy, time } = played('led');
    see(policy, time, commands);
    expect(partsOf(policy, time, commands)).toEqual(parts);
  });

  it('sends the others in parts if they are worth it', () => {
    const { policy, time } = played('led');
    see(policy, time, 12, 16);
    expect(partsOf(policy, time, 12, 16)).toEqual([1, 4, 4, 3]);
  });

  it('sends a turn in the usual parts while others await their replies: the server is awake', () => {
    const { policy, time } = played('led');
    see(policy, time, 40);
    expect(partsOf(policy, time, 40, 1, 0, 1)).toEqual([14, 14, 12]);
  });
});

describe('the adaptive flush policy, where overlap is not faster, and processors are idle', () => {
  it('sends small turns as a plain client does, and large ones at their end', () => {
    const { policy, time } = played('small');
    for (const [commands, parts] of [
      [2, [1, 1]],
      [200, [200]],
      [3, [1, 1, 1]],
    ] as const) {
      for (let turn = 0; turn < 40; turn += 1) {
        partsOf(policy, time, commands);
        policy.turnEnded(0);
      }
      expect(partsOf(policy, time, commands)).toEqual(parts);
    }
  });

  it('sends large turns of commands that are worth a write each in parts', () => {
    const { policy, time } = played('small');
    for (let turn = 0; turn < 40; turn += 1) {
      partsOf(policy, time, 10, 16);
      policy.turnEnded(0);
    }
    expect(partsOf(policy, time, 10, 16)).toEqual([4, 4, 2]);
    expect(partsOf(policy, time, 50, 5)).toEqual([50]);
  });
});

describe('the adaptive flush policy, where replies take long', () => {
  /** Has the policy see turns of `commands` that take `issue` milliseconds, and replies after `reply` milliseconds. */
  function seeReplies(
    { policy, time }: ReturnType<typeof played>,
    { commands = 2, issue = 0.005, reply = 0.3, awaiting = 0, early = false },
  ): void {
    for (let turn = 0; turn < 40; turn += 1) {
      partsOf(policy, time, commands, 1, issue / commands, awaiting);
      if (early) policy.answered();
      policy.turnEnded(time.now);
      time.now += reply;
      policy.answered();
    }
  }

  it.each(['parts', 'small'] as const)('sends small turns at their end, overlap: %s', (overlap) => {
    const world = played(overlap);
    seeReplies(world, {});
    expect(partsOf(world.policy, world.time, 8)).toEqual([8]);
  });

  it('sends lone commands at once: in a turn with much other work, they would wait for nothing', () => {
    const world = played('small');
    seeReplies(world, { commands: 1 });
    expect(world.policy.sendsNow(1, 1, 0, world.time.now)).toBe(true);
  });

  it('still sends large turns in parts', () => {
    const world = played('parts');
    seeReplies(world, {});
    see(world.policy, world.time, 200);
    expect(partsOf(world.policy, world.time, 200)).toEqual([67, 67, 66]);
  });

  it.each([
    ['replies come soon', { reply: 0.06 }],
    ['turns take long, too', { issue: 0.1 }],
    ['commands of earlier turns await theirs, so that nothing is known', { awaiting: 3 }],
    ['replies come before the end of a turn', { early: true }],
  ])('sends the first commands one by one where %s', (_, replies) => {
    const world = played('small');
    seeReplies(world, replies);
    expect(partsOf(world.policy, world.time, 5)).toEqual([1, 1, 1, 2]);
  });

  it('measures how long turns take that are sent in parts', () => {
    const { policy, time } = played('small');
    const parts = Array.from({ length: 40 }, () => {
      const sizes = partsOf(policy, time, 2, 1, 0.05);
      policy.turnEnded(time.now);
      time.now += 0.3;
      policy.answered();
      return sizes;
    });
    expect(parts).toEqual(new Array(40).fill([1, 1]));
  });

  it('measures from a turn with commands, not from a later one without', () => {
    const { policy, time, trial } = played('none');
    for (let turn = 0; turn < 40; turn += 1) {
      partsOf(policy, time, 4);
      policy.turnEnded(time.now);
      time.now += 0.25;
      policy.turnEnded(time.now);
      time.now += 0.05;
      policy.answered();
    }
    Object.assign(trial, { overlap: 'small' });
    expect(partsOf(policy, time, 5)).toEqual([5]);
  });

  it('measures turns that are sent at their end as well', () => {
    const world = played('none');
    seeReplies(world, {});
    Object.assign(world.trial, { overlap: 'small' });
    expect(partsOf(world.policy, world.time, 5)).toEqual([5]);
    world.policy.turnEnded(world.time.now);
    Object.assign(world.trial, { overlap: 'none' });
    seeReplies(world, { reply: 0.06 });
    Object.assign(world.trial, { overlap: 'small' });
    expect(partsOf(world.policy, world.time, 5)).toEqual([1, 1, 1, 2]);
  });
});

describe('the adaptive flush policy, where overlap is slower', () => {
  it('sends no part before the end of the turn', () => {
    const { policy, time } = played('none');
    expect(partsOf(policy, time, 500, 8, 1)).toEqual([500]);
  });

  it('tells the trial of each turn, and of the work that was sent in it, in parts or not', () => {
    const { policy, time, turns } = played();
    partsOf(policy, time, 30, 2);
    policy.turnEnded(1);
    policy.turnEnded(2);
    expect(turns).toEqual([
      [1, 60, 'small'],
      [2, 0, 'small'],
    ]);
  });
});

describe('the adaptive flush policy, where it pays to poll for replies', () => {
  it.each([
    [1, 1, 'small'],
    [8, 1, 'small'],
    [9, 1, 'medium'],
    [24, 1, 'medium'],
    [25, 1, 'large'],
    [8, 5, 'small'],
    [3, 17, 'small'],
    [9, 2, 'medium'],
    [9, 5, 'large'],
    [8, 16, 'large'],
    [160, 1, 'large'],
    [162, 1, 'huge'],
  ] as const)(
    'turns of %i commands of %i units are %s, and small and medium ones are polled for',
    (commands, work, size) => {
      const { policy, time, trial, turns } = played();
      Object.assign(trial, { polls: true });
      see(policy, time, commands, work);
      partsOf(policy, time, commands, work);
      expect(policy.turnEnded(0)).toBe(size === 'small' || size === 'medium');
      expect(turns.at(-1)).toEqual([0, commands * work, size]);
    },
  );

  it('waits for replies where polling is not faster', () => {
    const { policy, time } = played();
    partsOf(policy, time, 1);
    expect(policy.turnEnded(0)).toBe(false);
  });
});

describe("the policy of 'immediate'", () => {
  it('never sends before the schedule says so', () => {
    expect(GATHER.sendsNow(999, 1_000_000, 0, 0)).toBe(false);
  });

  it('waits for replies', () => {
    expect(GATHER.turnEnded(0)).toBe(false);
  });
});
