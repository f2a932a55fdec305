import { buildApp } from './app.js';
import { type Config, readConfig } from './config.js';
import { type OwnRedis, startOwnRedis } from './own-redis.js';
import { closeRedis, connectRedis, settingOf } from './redis.js';
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

type RunConfig = Config & { redisUrl: string };

async function serve(config: RunConfig, own?: OwnRedis): Promise<void> {
  const seeded = await seedBeforeStart(config);
  const app = await buildApp({ ...config, logger: { level: config.logLevel } });
  app.redis.on('error', (error: Error) => app.log.error({ err: error }, 'Redis connection'));
  // The server that comes back may be another, empty one.
  app.redis.on('ready', () => {
    seedIfMissing(app.redis, config).then(
      (again) => again && app.log.info(`Redis came back empty: ${seededText(config)}`),
      (error: unknown) => app.log.error({ err: error }, 'seeding failed'),
    );
  });

  let closing = false;
  const shutDown = async (signal: NodeJS.Signals): Promise<void> => {
    if (closing) {
      return;
    }
    closing = true;
    app.log.info(`${signal}: closing`);
    setTimeout(() => process.exit(1), SHUTDOWN_TIMEOUT).unref();
    await app.close();
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
    if (seeded) {
      app.log.info(seededText(config));
    }
    await app.listen({ host: config.host, port: config.port });
  } catch (error) {
    await app.close();
    throw error;
  }
  app.log.info(`Redis client: ${config.client}`);
}

/** Also checks that Redis is there: if not, one clear error, at once. */
async function seedBeforeStart(config: RunConfig): Promise<boolean> {
  const redis = await connectRedis(config.redisUrl, settingOf(config.client, config.prefix));
  try {
    return await seedIfMissing(redis, config);
  } finally {
    await closeRedis(redis);
  }
}

function seededText({ products, prefix }: RunConfig): string {
  return `${products} products written under "${prefix}"`;
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
