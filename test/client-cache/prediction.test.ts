/** What `cache.prefetch` may ask for, and what becomes of a prediction: credit, outcomes, those who wait for it. */
import { performance } from 'node:perf_hooks';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { PredictedEntry, type PredictionOrigin, Predictor } from '../../src/cache/prefetch/prediction.js';
import { UNLISTED } from '../../src/commands/fast-commands.js';
import { CallEntry, type Entry, variantOf } from '../../src/core/entry.js';
import type { EntryContext } from '../../src/host/command-facade.js';

const time = { ms: 0 };
vi.mock('../../src/util/clock.js', async (original) => ({ ...(await original<object>()), now: () => time.ms }));
vi.spyOn(performance, 'eventLoopUtilization').mockReturnValue({ idle: 0, active: 0, utilization: 0 });

const variant = (name: string) => variantOf({ ...UNLISTED, name, cacheable: true }, 'utf8');
const get = variant('get');
const smembers = variant('smembers');
const zrange = variant('zrange');

beforeEach(() => {
  time.ms = 10_000;
});

const context = { client: {}, commandClass: { prototype: {} } } as unknown as EntryContext;

/** A predictor, and the reads that it has asked for since they were last looked at. */
class Trial {
  readonly asked: string[] = [];
  readonly origins: PredictionOrigin[] = [];
  readonly predictor = new Predictor(() => ({
    predict: (origin, key) => {
      this.asked.push(key);
      this.origins.push(origin);
      return true;
    },
  }));

  read(key: string, prediction?: PredictedEntry): string[] {
    this.predictor.patterns.replies += 1;
    this.predictor.read({ variant: get, wireArgs: key }, prediction);
    return this.asked.splice(0);
  }

  list(key: string, elements: readonly string[], of = smembers, ...args: string[]): string[] {
    this.predictor.patterns.replies += 1;
    const wireArgs = args.length === 0 ? key : [key, ...args];
    this.predictor.read({ variant: of, wireArgs }, undefined);
    this.predictor.onReply({ variant: of, wireArgs }, elements, time.ms);
    return this.asked.splice(0);
  }

  /** Learns that each of some reads is followed by those behind it. */
  flows(count: number, ...kinds: string[]): void {
    for (let index = 0; index < count; index += 1) {
      time.ms += 1;
      for (const kind of kinds) this.read(`${kind}:${10_000 + index}`);
    }
  }

  /** Learns that the elements of lists are read. */
  lists(count: number, ...list: [of?: typeof smembers, ...args: string[]]): void {
    for (let index = 0; index < count; index += 1) {
      time.ms += 1;
      const [of, ...args] = list;
      const element = String(20_000 + index);
      this.list('list', args.length === 0 ? [element] : [element, '1'], of, ...args);
      this.read(`product:${element}`);
    }
  }
}

const SIXTY_FOUR = Array.from({ length: 64 }, (_, index) => String(50_000 + index));

it('reads may be predicted as callers have issued in this second, or 64 from the last one', () => {
  const trial = new Trial();
  trial.lists(1_000);
  expect(trial.list('list', SIXTY_FOUR)).toHaveLength(64);
  // A second with a single read, then the next.
  for (let second = 0; second < 2; second += 1) {
    time.ms += 1_000;
    trial.read('config:flags');
  }
  expect(trial.list('list', SIXTY_FOUR)).toHaveLength(64);
  expect(trial.list('list', SIXTY_FOUR).length).toBeLessThan(4);
});

describe('what is requested', () => {
  it('with a read are its followers, once: not again with a read that was predicted beside them', () => {
    const trial = new Trial();
    trial.flows(100, 'user', 'cart', 'plan');
    expect(trial.read('user:7').sort()).toEqual(['cart:7', 'plan:7']);
    const at = trial.origins.findLastIndex(
      ({ successor }) => successor.pattern.keyOf({ parts: ['7'], hash: 0 }) === 'cart:7',
    );
    const cart = new PredictedEntry(trial.origins[at] as PredictionOrigin, 'cart:7', context, 0, () => {});
    expect(trial.read('cart:7', cart)).toEqual([]);
    expect(trial.read('cart:8')).toEqual(['plan:8']);
  });

  it('with a list are its members, not their scores', () => {
    const trial = new Trial();
    trial.lists(100, zrange, '0', '-1', 'WITHSCORES');
    const asked = trial.list('list', ['1', '10', '2', '20'], zrange, '0', '-1', 'WITHSCORES');
    expect(asked).toEqual(['product:1', 'product:2']);
  });
});

describe('a prediction', () => {
  function predicted() {
    const trial = new Trial();
    trial.flows(100, 'user', 'cart');
    trial.read('user:7');
    const origin = trial.origins.at(-1) as PredictionOrigin;
    const refused: (readonly Entry[])[] = [];
    const entry = new PredictedEntry(origin, 'cart:7', context, 0, (_pattern, _message, followers) =>
      refused.push(followers),
    );
    const follow = () => {
      const follower = new CallEntry(get, context, ['cart:7'], 0);
      entry.followers ??= [];
      entry.followers.push(follower);
      return follower;
    };
    return { entry, successor: origin.successor, refused, follow };
  }

  it('has one outcome, however often it is used or forgotten', () => {
    const { entry, successor } = predicted();
    for (let time = 0; time < 3; time += 1) entry.used();
    entry.unused();
    expect([successor.used, successor.unused]).toEqual([1, 0]);
    const forgotten = predicted();
    for (let time = 0; time < 3; time += 1) forgotten.entry.unused();
    forgotten.entry.used();
    expect([forgotten.successor.used, forgotten.successor.unused]).toEqual([0, 1]);
  });

  it.each(['decoded', 'raw'] as const)('gives each waiting read its own reply: %s', (form) => {
    const { entry, follow } = predicted();
    const reply = ['a', ['b'], Buffer.from('c')];
    const got: unknown[] = [];
    for (let caller = 0; caller < 2; caller += 1) follow().answer = (given) => void got.push(given);
    entry.answer(reply, form);
    expect(got).toEqual([reply, reply]);
    const [one, other] = got as [typeof reply, typeof reply];
    (one[1] as string[]).push('changed');
    (one[2] as Buffer)[0] = 0;
    expect(other).toEqual(['a', ['b'], Buffer.from('c')]);
    expect(reply).toEqual(other);
  });

  it('fails with an error that no caller gets, decoded by either side: waiting reads are sent', () => {
    const here = predicted();
    const waits = here.follow();
    expect(here.entry.handlesError('WRONGTYPE')).toBe(true);
    expect(here.refused).toEqual([[waits]]);
    const there = predicted();
    const waiting = there.follow();
    there.entry.reject(Object.assign(new Error('WRONGTYPE'), { name: 'ReplyError' }));
    expect(there.refused).toEqual([[waiting]]);
  });

  it('that is lost with its connection rejects the waiting reads, as if they had been sent', async () => {
    const { entry, refused, follow } = predicted();
    const waiting = follow();
    entry.reject(new Error('Connection is closed.'));
    await expect(waiting.promise).rejects.toThrow('Connection is closed.');
    expect(refused).toEqual([]);
  });
});
