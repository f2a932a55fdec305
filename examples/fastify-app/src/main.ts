import { buildApp } from './app.js';
import { readConfig } from './config.js';
import { type OwnRedis, startOwnRedis } from './own-redis.js';
import { closeRedis, connectRedis } from './redis.js';
import { seedIfMissing } from './seed.js';

const SHUTDOWN_TIMEOUT = 10_000;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const own = config.redisUrl === undefined ? await startOwnRedis() : undefined;
  try {
    await serve({ ...config, redisUrl: config.redisUrl ?? own?.url ?? '' }, own);
  } catch (error) {
    await own?.stop();
    throw error;
  }
}

async function serve(config: ReturnType<typeof readConfig> & { redisUrl: string }, own?: OwnRedis): Promise<void> {
  const redis = await connectRedis(config);
  const app = buildApp({ ...config, redis, logger: { level: config.logLevel } });
  redis.on('error', (error: Error) => app.log.error({ err: error }, 'Redis connection'));

  let closing = false;
  const shutDown = async (signal: NodeJS.Signals): Promise<void> => {
    if (closing) {
      return;
    }
    closing = true;
    app.log.info(`${signal}: closing`);
    setTimeout(() => process.exit(1), SHUTDOWN_TIMEOUT).unref();
    await app.close();
    await closeRedis(redis);
    await own?.stop();
    app.log.info('closed');
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      shutDown(signal).catch((error: unknown) => {
        app.log.error({ err: error }, 'closing failed');
        process.exit(1);
      });
    });
  }

  try {
    if (own) {
      app.log.info(
        `REDIS_URL is not set: started ${own.binary} ${own.version} at ${own.url}, it ends with this service`,
      );
    }
    if (await seedIfMissing(redis, config)) {
      app.log.info(`${config.products} products written under "${config.prefix}"`);
    }
    await app.listen({ host: config.host, port: config.port });
  } catch (error) {
    await app.close();
    redis.disconnect();
    throw error;
  }
  app.log.info(`Redis client: ${config.coalesce ? 'coalesced' : 'plain'}`);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
