/** `npm run seed`: writes the products to the Redis at REDIS_URL; `npm run seed -- --remove` removes them. */
import { readConfig } from './config.js';
import { closeRedis, connectRedis, settingOf } from './redis.js';
import { removeSeed, seed, seedKeys } from './seed.js';

async function main(): Promise<void> {
  const config = readConfig(process.env);
  if (config.redisUrl === undefined) {
    throw new Error('REDIS_URL is not set: expected something like redis://127.0.0.1:6379');
  }
  const remove = process.argv.includes('--remove');
  const redis = await connectRedis(config.redisUrl, settingOf(config.client, config.prefix));
  try {
    await (remove ? removeSeed(redis, config) : seed(redis, config));
    const what = `${config.products} products (${seedKeys(config).length} hashes under "${config.prefix}")`;
    console.log(`${what} ${remove ? 'removed' : 'written'}`);
  } finally {
    await closeRedis(redis);
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
