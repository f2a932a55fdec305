import { describe, expect, it, onTestFinished } from 'vitest';
import { openDelayProxy } from '../../bench/suite/delay-proxy.js';
import { Stats } from '../../src/stats.js';
import { BusyPoll, CLEARTEXT, ENCRYPTED, preemptionBy } from '../../src/util/busy-poll.js';
import { type CoalescedClient, ioredis6, ready } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

/** A connection whose clock and preemption the test owns. Its loop is the real one. */
function connection(setting = true, limits = CLEARTEXT) {
  const stats = new Stats();
  const state = { nowMs: 1_000, awaiting: 1, looks: 0, preempted: false };
  const awaiting = () => {
    state.looks += 1;
    return state.awaiting;
  };
  const isPreempted = () => state.preempted;
  const poll = new BusyPoll(setting, stats, awaiting, limits, isPreempted, () => state.nowMs);
  /** Whether a turn of `commands` is polled for. */
  const polls = (commands: number, alone = false): boolean => {
    const before = stats.polledTurns;
    poll.turnSent(commands, alone);
    return stats.polledTurns > before;
  };
  /** Ends the window that is open, without a reply. */
  const expire = async () => {
    state.nowMs += 1_000;
    await turn();
  };
  return { poll, polls, state, stats, expire };
}

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** The length of the window after a turn of `commands`, in microseconds. */
async function windowOf(commands: number, limits = CLEARTEXT): Promise<number> {
  const { poll, state } = connection(true, limits);
  const from = state.nowMs;
  poll.turnSent(commands, false);
  for (let looks = -1; looks !== state.looks; ) {
    looks = state.looks;
    state.nowMs += 0.001;
    await turn();
  }
  // The last turn only saw that nothing looks any more.
  return Math.round((state.nowMs - from) * 1_000) - 1;
}

describe('the window', () => {
  it.each([
    [1, 0],
    [2, 0],
    [3, 24],
    [8, 64],
    [12, 96],
    [13, 100],
    [1_000, 100],
  ])('after a turn of %i commands is of %i microseconds', async (commands, microseconds) => {
    const took = await windowOf(commands);
    expect(took).toBeGreaterThanOrEqual(microseconds);
    expect(took).toBeLessThanOrEqual(microseconds + 1);
  });

  it('is of 20 microseconds per command over TLS, at most 100', async () => {
    const took = [await windowOf(3, ENCRYPTED), await windowOf(8, ENCRYPTED)];
    for (const [index, microseconds] of [60, 100].entries()) {
      expect(took[index]).toBeGreaterThanOrEqual(microseconds);
      expect(took[index]).toBeLessThanOrEqual(microseconds + 1);
    }
  });

  it('never opens with `false`, nor for a turn that sent nothing', async () => {
    expect(connection(false).polls(100)).toBe(false);
    expect(connection(true).polls(0)).toBe(false);
  });

  it('looks once in each turn of the loop, and ends when nothing awaits its reply', async () => {
    const { poll, state } = connection();
    poll.turnSent(8, false);
    poll.turnSent(8, false);
    expect(state.looks).toBe(0);
    await turn();
    await turn();
    expect(state.looks).toBe(2);
    state.awaiting = 0;
    await turn();
    await turn();
    await turn();
    expect(state.looks).toBe(3);
  });
});

describe('turns pass without a window', () => {
  it('twice as many after each window without a reply, at most 1,024', async () => {
    const { polls, expire } = connection();
    const passed: number[] = [];
    for (let turns = 0, since = 0; turns < 5_000; turns += 1) {
      if (!polls(8)) {
        since += 1;
        continue;
      }
      passed.push(since);
      since = 0;
      await expire();
    }
    expect(passed).toEqual([0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1024, 1024]);
  });

  it('none after a window with a reply', async () => {
    const { poll, polls, expire } = connection();
    for (let turns = 0; turns < 3; turns += 1) if (polls(8)) await expire();
    while (!polls(8));
    poll.repliesCame();
    await expire();
    expect(polls(8)).toBe(true);
  });

  it('while the thread is often preempted', () => {
    const { polls, state } = connection();
    state.preempted = true;
    expect(polls(8)).toBe(false);
    state.preempted = false;
    expect(polls(8)).toBe(true);
  });

  it('where the first reply to an idle wire takes longer than 0.12 ms, until one comes sooner', async () => {
    const { poll, polls, state, expire } = connection();
    const replyAfter = async (ms: number, alone: boolean) => {
      poll.turnSent(1, alone);
      state.nowMs += ms;
      poll.repliesCame();
      await expire();
    };
    await replyAfter(5, false);
    expect(polls(8)).toBe(true);
    await expire();
    await replyAfter(0.2, true);
    for (let turns = 0; turns < 10; turns += 1) expect(polls(8)).toBe(false);
    await replyAfter(0.1, true);
    while (!polls(8));
    await expire();
    // A command that was slow once does not say that the server is far away.
    await replyAfter(0.3, true);
    poll.repliesCame();
    expect(polls(8) || polls(8) || polls(8) || polls(8)).toBe(true);
  });
});

describe('the server is near', () => {
  const answeredAfter = (setting: boolean, ms: number, { alone = true, commands = 1, preempted = false } = {}) => {
    const { poll, state } = connection(setting);
    state.preempted = preempted;
    poll.turnSent(commands, alone);
    state.nowMs += ms;
    poll.repliesCame();
    if (preempted) poll.turnSent(3, false);
    return poll;
  };

  it('once it has answered on an idle wire within 0.12 ms', () => {
    expect(connection().poll.isNear).toBe(false);
    expect(answeredAfter(true, 0.11)).toMatchObject({ isNear: true, polls: true });
    expect(answeredAfter(true, 0.13)).toMatchObject({ isNear: false, polls: false });
    expect(answeredAfter(true, 0.11, { alone: false })).toMatchObject({ isNear: false, polls: false });
  });

  it('over TLS, within 0.2 ms: both sides encrypt', () => {
    for (const [ms, isNear] of [
      [0.19, true],
      [0.21, false],
    ] as const) {
      const { poll, state } = connection(true, ENCRYPTED);
      poll.turnSent(1, true);
      state.nowMs += ms;
      poll.repliesCame();
      expect(poll.isNear).toBe(isNear);
    }
  });

  it('a large turn may take 0.3 µs longer for each command, of at most 256', () => {
    expect(answeredAfter(true, 0.17, { commands: 200 }).isNear).toBe(true);
    expect(answeredAfter(true, 0.19, { commands: 200 }).isNear).toBe(false);
    expect(answeredAfter(true, 0.2, { commands: 10_000 }).isNear).toBe(false);
    expect(answeredAfter(true, 0, { commands: 10_000 }).isNear).toBe(true);
  });

  it('is not polled by a thread that is often preempted, nor with `busyPoll: false`', () => {
    expect(answeredAfter(true, 0.05, { preempted: true })).toMatchObject({ isNear: true, polls: false });
    expect(answeredAfter(false, 0.05)).toMatchObject({ isNear: true, polls: false });
  });
});

it('stats: counts turns that were polled for, and those with a reply in time', async () => {
  const { poll, polls, stats, expire } = connection();
  expect(polls(8)).toBe(true);
  poll.repliesCame();
  poll.repliesCame();
  await expire();
  expect(polls(8)).toBe(true);
  await expire();
  // Too late for the window.
  poll.repliesCame();
  expect(polls(1)).toBe(false);
  expect(stats.polledTurns).toBe(2);
  expect(stats.polledTurnsAnswered).toBe(1);
});

it('preemption: is frequent with more than 16 involuntary switches in 64 turns', () => {
  let switches: number | undefined = 1_000;
  const isPreempted = preemptionBy(() => switches);
  const after64Turns = (more: number) => {
    if (switches !== undefined) switches += more;
    let frequent = false;
    for (let turns = 0; turns < 64; turns += 1) frequent = isPreempted();
    return frequent;
  };
  // The first look only notes the counter: it counts from the start of the process.
  expect(after64Turns(5_000)).toBe(false);
  expect(after64Turns(16)).toBe(false);
  expect(after64Turns(17)).toBe(true);
  expect(after64Turns(0)).toBe(false);
  switches = undefined;
  expect(after64Turns(0)).toBe(false);
});

describe.each([true, false])('a client with fastPath: %j', (fastPath) => {
  const key = uniquePrefix('busy-poll');
  /** Four: the first of a cork's turn goes at once, and is no part of what it polls for. */
  const few = (client: CoalescedClient, value: string) =>
    Promise.all([client.set(key, value), client.get(key), client.strlen(key), client.exists(key)]);

  it('polls for the replies to a few commands, and gets the same values', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { fastPath }));
    for (let number = 10; number < 60; number += 1)
      expect(await few(client, `${number}`)).toEqual(['OK', `${number}`, 2, 1]);
    // How often, the machine decides: whether windows had a reply, and whether the process was preempted.
    // A cork has measured lone commands before: a busy machine may have seemed far.
    if (fastPath) expect(client.coalescer.stats().polledTurns).toBeGreaterThan(0);
    await client.del(key);
  });

  it('does not with `busyPoll: false`', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { fastPath, busyPoll: false }));
    for (let number = 10; number < 60; number += 1) await few(client, `${number}`);
    expect(client.coalescer.stats().polledTurns).toBe(0);
    await client.del(key);
  });

  it('learns from its first turns that a server is far away', async () => {
    const proxy = await openDelayProxy(redisUrl(), 2);
    onTestFinished(() => proxy.close());
    const client = await ready(ioredis6.createCoalesced(proxy.url, {}, { fastPath }));
    for (let number = 10; number < 60; number += 1) await few(client, `${number}`);
    expect(client.coalescer.stats().polledTurns).toBeLessThanOrEqual(1);
    await client.del(key);
  });
});
