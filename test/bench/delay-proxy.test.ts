import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { openDelayProxy } from '../../bench/suite/delay-proxy.js';
import { redisUrl } from '../helpers/redis.js';

async function behindProxy(roundTripMs: number, tls = false): Promise<Redis> {
  const { url, ca, close } = await openDelayProxy(redisUrl(), roundTripMs, tls);
  const redis = new Redis(url, ca === undefined ? {} : { tls: { ca } });
  onTestFinished(async () => {
    redis.disconnect();
    await close();
  });
  await redis.ping();
  return redis;
}

it.each([0.2, 5, 40])('keeps every reply back for a round trip of %s ms', async (roundTripMs) => {
  const redis = await behindProxy(roundTripMs);
  for (let time = 0; time < 5; time += 1) {
    const start = performance.now();
    await redis.ping();
    expect(performance.now() - start).toBeGreaterThanOrEqual(roundTripMs);
  }
});

it('delays each piece by itself: what is sent together arrives together', async () => {
  const redis = await behindProxy(400);
  const start = performance.now();
  await Promise.all(Array.from({ length: 20 }, () => redis.ping()));
  // Far from 20 round trips, on however slow a machine.
  expect(performance.now() - start).toBeLessThan(20 * 400);
});

it.each([
  ['at a distance', 2, false],
  ['at once', 0, false],
  ['over TLS', 0, true],
  ['over TLS at a distance', 2, true],
])('passes everything on, in order, %s', async (_, roundTripMs, tls) => {
  const redis = await behindProxy(roundTripMs, tls);
  const texts = Array.from({ length: 200 }, (_, index) => `${index} `.repeat(2000));
  expect(await Promise.all(texts.map((text) => redis.echo(text)))).toEqual(texts);
});
