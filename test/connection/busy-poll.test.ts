import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Batch } from '../../src/connection/batch.js';
import { BusyPoll } from '../../src/connection/busy-poll.js';
import { scheduleFunction } from '../../src/connection/scheduler.js';
import { DEFAULT_OPTIONS } from '../../src/options.js';
import { Stats } from '../../src/stats.js';
import { type CoalescedClient, ioredis6, ready, sleep } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';

/** A connection with commands that await their replies, and a count of how often its poll looked. */
function connection() {
  const state = { awaiting: 1, looks: 0 };
  const poll = new BusyPoll(() => {
    state.looks += 1;
    return state.awaiting;
  });
  return { poll, state };
}

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));

/** Until the poll has stopped to look. */
async function settled(state: { looks: number }): Promise<void> {
  for (let looks = -1; looks !== state.looks; ) {
    looks = state.looks;
    await new Promise((resolve) => void setTimeout(resolve, 2));
  }
}

const opened: { awaiting: number }[] = [];
afterEach(() => {
  for (const state of opened.splice(0)) state.awaiting = 0;
});

/** How many of the next `turns` turns were polled for, without a reply to any. */
async function unanswered({ poll, state }: ReturnType<typeof connection>, turns: number): Promise<number[]> {
  const polled: number[] = [];
  for (let number = 0; number < turns; number += 1) {
    if (poll.begin()) polled.push(number);
    await settled(state);
  }
  return polled;
}

it('looks for replies in each turn of the loop, and stops when nothing awaits one', async () => {
  const { poll, state } = connection();
  opened.push(state);
  expect(poll.begin()).toBe(true);
  expect(state.looks).toBe(0);
  await turn();
  expect(state.looks).toBeGreaterThan(0);
  state.awaiting = 0;
  await turn();
  const { looks } = state;
  await settled(state);
  expect(state.looks - looks).toBeLessThanOrEqual(1);
});

it('stops when the window of a tenth of a millisecond is over', async () => {
  const { poll, state } = connection();
  opened.push(state);
  const from = performance.now();
  poll.begin();
  while (performance.now() - from < 0.2) await turn();
  const { looks } = state;
  await turn();
  await turn();
  expect(state.looks).toBe(looks);
});

it('keeps one poll, however many turns are sent meanwhile', async () => {
  const { poll, state } = connection();
  opened.push(state);
  for (let times = 0; times < 5; times += 1) expect(poll.begin()).toBe(true);
  await turn();
  expect(state.looks).toBe(1);
});

it('passes over twice as many turns after each window without a reply', async () => {
  const server = connection();
  opened.push(server.state);
  expect(await unanswered(server, 24)).toEqual([0, 2, 6, 14]);
});

it('passes over no more than 1,024 turns', async () => {
  const { poll, state } = connection();
  opened.push(state);
  const passed: number[] = [];
  for (let turns = 0, since = 0; turns < 5000; turns += 1) {
    if (!poll.begin()) {
      since += 1;
      continue;
    }
    passed.push(since);
    since = 0;
    await settled(state);
  }
  expect(passed).toEqual([0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1024, 1024]);
});

it('polls for each turn again once a reply has come in time', async () => {
  const server = connection();
  opened.push(server.state);
  const { poll, state } = server;
  expect(await unanswered(server, 4)).toEqual([0, 2]);
  while (!poll.begin());
  poll.answered();
  await settled(state);
  expect(poll.begin()).toBe(true);
  await settled(state);
  expect(poll.begin()).toBe(false);
});

it('does not count replies to earlier turns', async () => {
  const { poll, state } = connection();
  opened.push(state);
  poll.answered();
  poll.begin();
  await settled(state);
  expect(poll.begin()).toBe(false);
});

it('is told of replies by the batch, as is the policy', async () => {
  const stats = new Stats();
  const owner = { address: () => '', awaiting: () => 1, turnEnded: () => {}, failed: () => {} };
  const told = vi.fn();
  const policy = { sendsNow: () => false, turnEnded: () => true, answered: told };
  const stream = new PassThrough();
  const batch = new Batch(
    stream,
    stream.write as Batch['write'],
    DEFAULT_OPTIONS,
    scheduleFunction('immediate'),
    policy,
    stats,
    owner,
  );
  const sendTurn = async (answered: boolean) => {
    batch.addExact(['PING\r\n'], 1, 1);
    await turn();
    if (answered) batch.answered();
    await sleep(2);
  };
  for (let number = 0; number < 10; number += 1) await sendTurn(true);
  expect(stats.polledTurns).toBe(10);
  for (let number = 0; number < 10; number += 1) await sendTurn(false);
  expect(stats.polledTurns).toBe(13);
  expect(told).toHaveBeenCalledTimes(10);
  stream.destroy();
});

describe.each([true, false])('a client with hotPath: %j', (hotPath) => {
  const key = uniquePrefix('busy-poll');

  /** One command at a time, for `seconds` at the most or until it was polled for replies. */
  async function sendOneByOne(client: CoalescedClient, seconds: number): Promise<void> {
    const until = performance.now() + seconds * 1000;
    for (let number = 0; performance.now() < until && client.coalescer.stats().polledTurns === 0; number += 1) {
      expect(await client.set(key, `${number}`)).toBe('OK');
      expect(await client.get(key)).toBe(`${number}`);
    }
  }

  it('tries to poll for the replies to few commands, and gets the same values', async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { hotPath }));
    await sendOneByOne(client, 20);
    const { polledTurns } = client.coalescer.stats();
    expect(polledTurns).toBeGreaterThan(0);
    await client.del(key);
  });

  it("never does with 'immediate'", async () => {
    const client = await ready(ioredis6.createCoalesced(redisUrl(), {}, { hotPath, schedule: 'immediate' }));
    await sendOneByOne(client, 0.5);
    expect(client.coalescer.stats().polledTurns).toBe(0);
    await client.del(key);
  });
});
