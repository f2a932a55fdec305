import { type IRateLimiterRedisOptions, RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { describe, expect, it } from 'vitest';
import { type Client, ready } from '../helpers/hosts.js';
import { uniquePrefix } from '../helpers/redis.js';
import { CLIENT_KINDS, expectTookPart } from './helpers/clients.js';

type Options = Pick<IRateLimiterRedisOptions, 'insuranceLimiter' | 'rejectIfRedisNotReady'> & {
  points?: number;
  duration?: number;
};

const POINTS = 5;
const CALLERS = ['ann', 'bob', 'cem', 'dée', 'eve', 'fay', 'gus', 'ida'];

describe.each(CLIENT_KINDS)('rate-limiter-flexible with $name', (kind) => {
  it.each([
    ['with a window', 600],
    ['without one (a transaction a call)', 0],
  ])('grants each key exactly its points in one burst, %s', async (_, duration) => {
    const client = await ready(kind.create());
    const limiter = create(client, { duration });
    const attempts = await Promise.all(
      Array.from({ length: 4 * POINTS }, () => CALLERS.map((key) => ({ key, result: limiter.consume(key) })))
        .flat()
        .map(async ({ key, result }) => ({ key, granted: await isGranted(result) })),
    );
    // Before get(), which is a transaction and so a batch in any case.
    expectTookPart(kind, client, { batched: true, fast: true });
    for (const key of CALLERS) {
      const own = attempts.filter((attempt) => attempt.key === key);
      expect(own.map(({ granted }) => granted)).toEqual(own.map((_attempt, index) => index < POINTS));
      expect((await limiter.get(key))?.consumedPoints).toBe(4 * POINTS);
    }
  });

  it('rewards, penalizes, blocks and forgets', async () => {
    const client = await ready(kind.create());
    const limiter = create(client, {});
    expect(await limiter.get('ann')).toBeNull();
    expect((await limiter.penalty('ann', 3)).consumedPoints).toBe(3);
    expect((await limiter.reward('ann', 2)).consumedPoints).toBe(1);
    expect((await limiter.consume('ann', 4)).remainingPoints).toBe(0);
    expect(await isGranted(limiter.consume('ann'))).toBe(false);

    await limiter.block('bob', 600);
    const refusal: unknown = await limiter.consume('bob').catch((reason: unknown) => reason);
    expect(refusal).toBeInstanceOf(RateLimiterRes);
    expect((refusal as RateLimiterRes).msBeforeNext).toBeGreaterThan(500_000);

    expect(await limiter.delete('bob')).toBe(true);
    expect(await limiter.delete('bob')).toBe(false);
    expect(await isGranted(limiter.consume('bob'))).toBe(true);
    expectTookPart(kind, client, { batched: true, fast: true });
  });

  it('falls back to the insurance limiter when the client has ended', async () => {
    const client = await ready(kind.create());
    const insurance = create(kind.create(), { points: 1 });
    const limiter = create(client, { insuranceLimiter: insurance, rejectIfRedisNotReady: true });
    expect((await limiter.consume('ann')).remainingPoints).toBe(POINTS - 1);
    await client.quit();
    expect((await limiter.consume('ann')).remainingPoints).toBe(0);
    expect(await isGranted(limiter.consume('ann'))).toBe(false);
    expectTookPart(kind, client, { batched: false, fast: true });
  });
});

function create(storeClient: Client, options: Options): RateLimiterRedis {
  const keyPrefix = uniquePrefix('flexible');
  return new RateLimiterRedis({ storeClient, keyPrefix, points: POINTS, duration: 600, ...options });
}

/** The package refuses by rejecting with its own result; anything else is an error. */
async function isGranted(consumed: Promise<RateLimiterRes>): Promise<boolean> {
  try {
    await consumed;
    return true;
  } catch (reason) {
    if (reason instanceof RateLimiterRes) return false;
    throw reason;
  }
}
