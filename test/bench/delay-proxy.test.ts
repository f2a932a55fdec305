import { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { startTlsServer } from '../../bench/suite/bench-server.js';
import { openDelayProxy } from '../../bench/suite/delay-proxy.js';
import { MissingError } from '../../bench/suite/tool.js';
import { redisUrl } from '../helpers/redis.js';

async function behindProxy(roundTripMs: number, target = redisUrl(), ca?: string): Promise<Redis> {
  const { url, close } = await openDelayProxy(target, roundTripMs);
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

const TEXTS = Array.from({ length: 200 }, (_, index) => `${index} `.repeat(2000));

it.each([0.2, 2])('passes everything on, in order, for a round trip of %s ms', async (roundTripMs) => {
  const redis = await behindProxy(roundTripMs);
  expect(await Promise.all(TEXTS.map((text) => redis.echo(text)))).toEqual(TEXTS);
});

it('passes TLS on to a server that has its own', async ({ skip }) => {
  const found = await startTlsServer().catch((error) => {
    if (!(error instanceof MissingError)) throw error;
    return undefined;
  });
  if (found === undefined) return skip('the server is built without TLS');
  onTestFinished(() => found.server.close());
  const redis = await behindProxy(2, found.url, found.ca);
  expect(await Promise.all(TEXTS.map((text) => redis.echo(text)))).toEqual(TEXTS);
});

it('has room for more than is on its way: what does not fit waits', async () => {
  const redis = await behindProxy(30);
  const texts = Array.from({ length: 12 }, (_, index) => `${index}`.repeat(4_000_000));
  const replies = await Promise.all(texts.map((text) => redis.echo(text)));
  expect(replies.map((reply, index) => reply === texts[index])).toEqual(texts.map(() => true));
});
