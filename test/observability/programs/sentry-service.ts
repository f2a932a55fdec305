/** A service with Sentry's own SDK: prints how many of its commands were fast. */
import * as Sentry from '@sentry/node';

const withoutRedis = process.argv[2] === 'without-redis';
Sentry.init({
  dsn: 'http://key@127.0.0.1:9/1',
  tracesSampleRate: 0,
  // Nothing is sent.
  transport: () => ({ send: () => Promise.resolve({}), flush: () => Promise.resolve(true) }),
  ...(withoutRedis && { integrations: (all) => all.filter(({ name }) => name !== 'Redis') }),
});

const { default: Redis } = await import('ioredis-coalesce');
const redis = new Redis(process.env.TEST_URL as string);
await redis.ping();
const before = redis.coalescer.stats();
await Promise.all(Array.from({ length: 100 }, (_, index) => redis.get(`sentry:${index}`)));
const { fastCommands, observedCommands } = redis.coalescer.stats();
console.log(
  JSON.stringify({
    fast: fastCommands - before.fastCommands,
    watched: observedCommands - before.observedCommands,
  }),
);
redis.disconnect();
await Sentry.close(0);
process.exit(0);
