/** A cache whose answers scripts hold back does nothing, silently, unless it says so. */
import { CODES } from 'ioredis-coalesce/coalesce';
import { expect, it, onTestFinished, vi } from 'vitest';
import { HeldAnswersWarning } from '../../src/cache/issued-commands.js';
import { cached, keep } from '../helpers/client-cache/cached.js';
import { sleep } from '../helpers/hosts.js';
import { redisUrl, uniquePrefix } from '../helpers/redis.js';
import { expectWarnings } from '../helpers/warnings.js';

expectWarnings(CODES.CACHE_HELD);

/** The texts of the warnings that `action` brings about. */
async function warningsOf(action: () => unknown): Promise<string[]> {
  const texts: string[] = [];
  const listener = (warning: Error & { code?: string }) => {
    if (warning.code === CODES.CACHE_HELD) texts.push(warning.message);
  };
  process.on('warning', listener);
  onTestFinished(() => void process.off('warning', listener));
  await action();
  await sleep(5);
  return texts;
}

/** A script each second, in each of which `held` answers are held back and `hits` are given. */
function load(seconds: number, held: number, hits: number): void {
  const watch = new HeldAnswersWarning();
  for (let second = 0; second <= seconds; second += 1) {
    watch.scriptSent({ held: second * held, hits: second * hits }, second * 1_000);
  }
}

it('is silent while more answers are given than held back, for less than a minute, and under little load', async () => {
  const texts = await warningsOf(() => {
    load(180, 1_000, 1_001);
    load(59, 1_000, 0);
    load(180, 100, 0);
  });
  expect(texts).toEqual([]);
});

it('is called for scripts of a cached client that may change anything, and for no other command', async () => {
  const told = vi.spyOn(HeldAnswersWarning.prototype, 'scriptSent');
  onTestFinished(() => told.mockRestore());
  const k = uniquePrefix('held-answers-warning');
  const keysOnly = await cached(redisUrl(), { scripts: 'keys' });
  await keysOnly.eval('return 1', 0);
  const client = await cached(redisUrl(), true);
  await client.set(k, 'v');
  await keep(client, () => client.get(k));
  await Promise.all([client.keys('none'), client.call('NO.SUCH.COMMAND').catch(() => {}), client.get(k)]);
  expect(told).not.toHaveBeenCalled();
  await Promise.all([client.eval('return 1', 0), client.get(k)]);
  await client.eval('return 1', 0);
  expect(told).toHaveBeenCalledTimes(2);
  expect(told.mock.lastCall?.[0].held).toBeGreaterThan(0);
});

it('warns once after a minute in which scripts have held most answers back, and names the cure', async () => {
  const texts = await warningsOf(() => load(180, 1_000, 100));
  expect(texts).toEqual([expect.stringMatching(/scripts have held back .* `cache: \{ scripts: 'keys' \}` cures it/)]);
});
