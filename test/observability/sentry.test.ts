import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { redisUrl } from '../helpers/redis.js';

const run = promisify(execFile);
const program = fileURLToPath(new URL('./programs/sentry-service.ts', import.meta.url));

async function service(how: string): Promise<unknown> {
  const { stdout } = await run(process.execPath, ['--import', 'tsx', program, how], {
    env: { ...process.env, TEST_URL: redisUrl() },
  });
  return JSON.parse(stdout.trim().split('\n').at(-1) as string);
}

it('Sentry subscribes to each command, even with tracesSampleRate: 0, and all are fast', async () => {
  expect(await service('as-it-is')).toEqual({ fast: 100, watched: 100 });
});

it('with the recipe of docs/production.md, all commands are fast', async () => {
  expect(await service('without-redis')).toEqual({ fast: 100, watched: 0 });
});
