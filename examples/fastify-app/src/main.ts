import { buildApp } from './app.js';
import { readConfig } from './config.js';
import { connectRedis } from './redis.js';

const SHUTDOWN_TIMEOUT = 10_000;

async function main(): Promise<void> {
  const config = readConfig(process.env);
  const redis = await connectRedis(config);
  const app = buildApp({
    redis,
    logger: { level: config.logLevel },
    prefix: config.prefix,
    products: config.products,
  });
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
    if (redis.status === 'ready') {
      await redis.quit();
    } else {
      redis.disconnect();
    }
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
    await app.listen({ host: config.host, port: config.port });
  } catch (error) {
    redis.disconnect();
    throw error;
  }
  app.log.info(`Redis client: ${config.coalesce ? 'coalesced' : 'plain'}`);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
