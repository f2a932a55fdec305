/** Bursts of which the advisor notes a part; a corked client that is detached. Run with `IOREDIS_COALESCE=advise`. */
import { Redis as IORedis } from 'ioredis';
import { coalesce, Redis } from 'ioredis-coalesce';

const [url = ''] = process.argv.slice(2);
const redis = new Redis(url);
for (let burst = 0; burst < 100; burst += 1) {
  await Promise.all(Array.from({ length: 200 }, () => redis.get('none')));
}
for (let count = 0; count < 100; count += 1) {
  await redis.get('first');
  await redis.get('second');
}
redis.disconnect();

const corked = coalesce(new IORedis(url), { fastPath: false });
await corked.ping();
const own = () => ['sendCommand', 'pipeline', 'multi'].filter((name) => Object.hasOwn(corked, name));
const before = own();
corked.coalescer.detach();
console.log(JSON.stringify([before, own(), await corked.ping()]));
corked.disconnect();
