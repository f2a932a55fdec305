import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { redisUrl } from '../helpers/redis.js';
import { createQueue } from './helpers/bullmq-queue.js';
import { type ClientKind, COALESCED, expectTookPart, PLAIN } from './helpers/clients.js';

const VICTIM = fileURLToPath(new URL('helpers/bullmq-victim.ts', import.meta.url));

it('BullMQ gives the job of a worker that was killed to another one, as with a plain client', async () => {
  const [plain, coalesced] = await Promise.all([PLAIN, COALESCED].map(killAndRetry));
  expect(coalesced).toEqual(plain);
  expect(coalesced).toEqual({ result: 'done by the second', state: 'completed', started: 2, stalled: 1 });
}, 60_000);

async function killAndRetry(kind: ClientKind): Promise<object> {
  const { client, queue, events, work } = await createQueue(kind);
  const job = await queue.add('work', {});
  const victim = startVictim(queue.name, kind === COALESCED);
  await untilBusy(victim);
  expect(await job.getState()).toBe('active');
  victim.kill('SIGKILL');
  await once(victim, 'exit');

  work(async () => 'done by the second', { stalledInterval: 200 });
  const result: unknown = await job.waitUntilFinished(events);
  const after = (await queue.getJob(job.id!))!;
  expectTookPart(kind, client, { batched: false, fast: true });
  return {
    result,
    state: await after.getState(),
    started: after.attemptsStarted,
    stalled: after.stalledCounter,
  };
}

function startVictim(queueName: string, coalesced: boolean): ChildProcess {
  const victim = spawn(process.execPath, ['--import', 'tsx', VICTIM, redisUrl(), queueName, String(coalesced)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void victim.kill('SIGKILL'));
  return victim;
}

async function untilBusy(victim: ChildProcess): Promise<void> {
  const exit = once(victim, 'exit').then(([code]) => {
    throw new Error(`expected the worker to take the job, but it exited with code ${code}`);
  });
  exit.catch(() => {});
  await Promise.race([once(victim.stdout!, 'data'), exit]);
}
