// Run by debug.test.ts with DEBUG set: `debug` reads it when it is loaded.
import { Redis } from 'ioredis-coalesce';

const secret = process.env.TEST_SECRET as string;
const redis = new Redis(process.env.TEST_URL as string, { coalesce: { schedule: 'immediate' } });
await new Promise<void>((resolve) => void redis.once('ready', resolve));
await Promise.all([redis.set(secret, secret), redis.get(secret), redis.call('STRLEN', secret)]);
await redis.set(secret, new Date() as unknown as string);
await redis.getBuffer(new String(secret) as string);
await redis
  .pipeline()
  .append(secret, new Date() as unknown as string)
  .exec();
await redis.del(secret);
redis.coalescer.detach();
console.log(JSON.stringify(!redis.coalescer.enabled));
redis.disconnect();
