/**
 * Reads that a client comes to predict. Run with `IOREDIS_COALESCE=stats`; prints on standard output how many were
 * used.
 */
import { performance } from 'node:perf_hooks';
import Redis from 'ioredis-coalesce';
import { Relay } from '../../helpers/relay.js';

// Predictions rest while the loop is busy, and where the server is near.
performance.eventLoopUtilization = () => ({ idle: 0, active: 0, utilization: 0 });
class Distance extends Relay {
  protected override treat() {
    return { delay: () => 1 };
  }
}
const [url = '', prefix = ''] = process.argv.slice(2);
const distance = new Distance(Number(new URL(url).port));
await distance.listen();
const redis = new Redis(distance.url, { connectionName: 'reader', coalesce: { cache: { prefetch: true } } });
for (let id = 0; id < 200; id += 1) {
  await redis.get(`${prefix}:user:${id}`);
  await redis.get(`${prefix}:plan:${id}`);
}
const { predicted, predictionsUsed } = redis.coalescer.stats().cache ?? {};
console.log(`${predictionsUsed} round trips saved by ${predicted} predicted reads`);
redis.disconnect();
await distance.close();
